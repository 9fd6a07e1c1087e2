#include "cli/explain_compare.h"

#include <cmath>
#include <iostream>
#include <string>
#include <vector>

#include "model/io/write_explanations.h"
#include "model/memory_change.h"
#include "model/predict.h"

namespace fulcrum::cli {
namespace {

std::string batch_text(const EffectiveBatch& batch) {
  return format_count(batch.requests) + " (" + std::string(name_of(batch.limiter)) + ")";
}

void print_causes(const BatchChange& change, const std::string& before, const std::string& after) {
  std::cout << "\nthe pool holds " << format_number(change.fits_before) << " such requests in "
            << before << " and " << format_number(change.fits_after) << " in " << after << ": "
            << format_number(change.fits_after / change.fits_before) << "x, the product of\n";
  Table table({{"ledger entry", Align::kLeft}, {"factor"}});
  for (const LedgerCause& cause : change.causes) {
    table.add({cause.entry, format_number(cause.factor) + "x"});
  }
  table.print(std::cout, TerminalStyle{});
}

}  // namespace

void explain_compare_topic(const Deployment& before, const Deployment& after, bool json,
                           const TerminalStyle& style) {
  std::vector<BatchChange> changes;
  std::vector<double> gains;
  for (double c : after.workload.concurrency) {
    changes.push_back(explain_batch(before, after, c));
    const double from = closed_loop_throughput(before, c).output_tokens_per_second;
    const double to = closed_loop_throughput(after, c).output_tokens_per_second;
    gains.push_back(from > 0.0 ? to / from : 0.0);
  }
  if (json) {
    nlohmann::ordered_json points = nlohmann::ordered_json::array();
    for (std::size_t i = 0; i < changes.size(); ++i) {
      nlohmann::ordered_json point = io::to_json(changes[i]);
      point["gain_ratio"] =
          gains[i] > 0.0 ? nlohmann::ordered_json(gains[i]) : nlohmann::ordered_json();
      points.push_back(std::move(point));
    }
    std::cout << nlohmann::ordered_json{{"schema", "fulcrum/explanation/1"},
                                        {"scenario", after.name},
                                        {"against", before.name},
                                        {"topic", "compare"},
                                        {"points", points}}
                     .dump(1)
              << '\n';
    return;
  }
  std::cout << bold(after.name + " against " + before.name, style) << '\n';
  Table table({{"C"},
               {"batch " + before.name, Align::kLeft},
               {"batch " + after.name, Align::kLeft},
               {"tok/s"},
               {"comparable", Align::kLeft}});
  const BatchChange* differs = nullptr;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    const BatchChange& change = changes[i];
    table.add({format_count(change.concurrency), batch_text(change.before),
               batch_text(change.after), gains[i] > 0.0 ? format_number(gains[i]) + "x" : "-",
               change.comparable() ? "yes" : "no: the batches differ"});
    if (!change.comparable()) differs = &change;
  }
  table.print(std::cout, style);
  if (differs == nullptr) {
    std::cout << "\nboth serve the same batch everywhere: a difference is that of the step\n";
  } else if (!differs->by_memory()) {
    std::cout << "\nmax_running_requests makes the difference, not memory\n";
  } else if (!differs->causes.empty()) {
    std::cout << "\nan A/B at C=" << format_count(differs->concurrency)
              << " measures the batch as much as the change; " << differs->causes.front().entry
              << " does most of it\n";
  }
  if (!changes.empty() && !changes.back().causes.empty() && changes.back().fits_before > 0.0) {
    print_causes(changes.back(), before.name, after.name);
  }
}

}  // namespace fulcrum::cli
