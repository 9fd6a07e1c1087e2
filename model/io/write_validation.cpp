#include "model/io/write_validation.h"

#include "model/io/write_results.h"

namespace fulcrum::io {

using nlohmann::ordered_json;

namespace {

ordered_json summary_json(const std::optional<ScoreSummary>& summary) {
  ordered_json out = ordered_json::object();
  if (!summary) {
    out["n"] = 0;
    return out;
  }
  out["mape"] = summary->mape;
  out["median_ape"] = summary->median_ape;
  out["p90_ape"] = summary->p90_ape;
  out["bias"] = summary->bias;
  out["shape_error"] = nullptr;
  if (summary->shape_error) out["shape_error"] = *summary->shape_error;
  out["coverage"] = summary->coverage;
  out["n"] = summary->n;
  return out;
}

ordered_json excluded_json(const std::vector<ExcludedCase>& excluded) {
  ordered_json out = ordered_json::array();
  for (const ExcludedCase& one : excluded) out.push_back({{"id", one.id}, {"why", one.why}});
  return out;
}

}  // namespace

ordered_json validation_json(const std::vector<Score>& scores, const CaseSet& set) {
  ordered_json out;
  out["schema"] = "fulcrum/validation/1";
  out["cases"] = ordered_json::array();
  std::vector<Score> counted;
  for (const Score& score : scores) {
    ordered_json entry;
    entry["id"] = score.id;
    entry["quantity"] = name_of(score.quantity);
    entry["concurrency"] = score.concurrency;
    entry["predicted"] = to_json(score.predicted);
    entry["measured"] = score.measured;
    entry["ape"] = score.ape;
    entry["covered"] = score.covered;
    entry["kernel_set"] = score.kernel_set;
    entry["speculation"] = score.speculation;
    entry["hardware"] = score.hardware;
    if (!score.panel.empty()) entry["panel"] = score.panel;
    if (!score.split.empty()) entry["split"] = score.split;
    if (score.does_not_fit) entry["ledger_says_it_does_not_fit"] = true;
    out["cases"].push_back(std::move(entry));
    if (score.quantity != MeasuredQuantity::kTtft) counted.push_back(score);
  }
  out["summary"] = summary_json(summarise(counted));
  out["splits"] = ordered_json::array();
  for (const char* key : {"quantity", "split", "kernel_set", "speculation", "hardware"}) {
    const bool all = std::string(key) == "quantity";
    for (const SplitSummary& split : split_by(key, all ? scores : counted)) {
      ordered_json entry{{"key", split.key}, {"value", split.value}};
      entry.update(summary_json(split.summary));
      out["splits"].push_back(std::move(entry));
    }
  }
  out["excluded"] = excluded_json(set.excluded);
  out["warnings"] = set.warnings;
  return out;
}

ordered_json gains_json(const GainScores& gains) {
  ordered_json out;
  out["schema"] = "fulcrum/gain-validation/1";
  out["pairs"] = ordered_json::array();
  double errors = 0.0;
  std::size_t right = 0;
  for (const GainScore& gain : gains.gains) {
    out["pairs"].push_back({{"pair", gain.pair},
                            {"before", gain.before},
                            {"after", gain.after},
                            {"quantity", name_of(gain.quantity)},
                            {"predicted_ratio", to_json(gain.predicted_ratio)},
                            {"measured_ratio", gain.measured_ratio},
                            {"error_points", gain.error_points},
                            {"sign_right", gain.sign_right},
                            {"covered", gain.covered}});
    errors += std::abs(gain.error_points);
    right += gain.sign_right ? 1 : 0;
  }
  const std::size_t n = gains.gains.size();
  out["summary"] = {{"n", n}};
  if (n > 0) {
    out["summary"]["mean_error_points"] = errors / static_cast<double>(n);
    out["summary"]["signs_right"] = static_cast<double>(right) / static_cast<double>(n);
  }
  out["excluded"] = excluded_json(gains.excluded);
  return out;
}

ordered_json check_json(const CheckReport& report) {
  ordered_json out;
  out["verdict"] = name_of(report.verdict);
  out["findings"] = ordered_json::array();
  for (const Finding& finding : report.findings) {
    ordered_json entry{
        {"verdict", name_of(finding.verdict)}, {"rule", finding.rule}, {"text", finding.text}};
    if (finding.measured) entry["measured"] = *finding.measured;
    if (finding.limit) entry["limit"] = *finding.limit;
    out["findings"].push_back(std::move(entry));
  }
  return out;
}

}  // namespace fulcrum::io
