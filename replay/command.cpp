#include "replay/command.h"

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <ctime>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "replay/build_info.h"
#include "replay/collectives/command.h"
#include "replay/options.h"
#include "replay/registry.h"
#include "replay/scenario_options.h"
#include "replay/supervisor.h"

namespace fulcrum::replay {
namespace {

volatile sig_atomic_t interrupt_requested = 0;

// Restores the previous handler when the command ends.
class InterruptGuard {
 public:
  InterruptGuard() {
    interrupt_requested = 0;
    struct sigaction action = {};
    action.sa_handler = [](int) { interrupt_requested = 1; };
    sigaction(SIGINT, &action, &previous_);
  }
  ~InterruptGuard() { sigaction(SIGINT, &previous_, nullptr); }
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

 private:
  struct sigaction previous_ = {};
};

void print_list() {
  for (const KernelEntry& kernel : registry()) {
    std::printf("%-28s %s: %s\n", kernel.name.c_str(), kernel.family.c_str(),
                kernel.summary.c_str());
    for (const Dimension& d : kernel.dimensions) {
      std::printf("    %-8s %s (default %lld, %lld..%lld%s)\n", d.name.c_str(), d.meaning.c_str(),
                  static_cast<long long>(d.default_value), static_cast<long long>(d.min),
                  static_cast<long long>(d.max),
                  d.multiple > 1 ? (", multiples of " + std::to_string(d.multiple)).c_str() : "");
    }
  }
}

int predict(const ReplayOptions& options) {
  std::unique_ptr<MeasurementFile> file;
  if (!options.out_path.empty()) file = std::make_unique<MeasurementFile>(options.out_path);
  for (const PlanItem& item : options.items) {
    if (!item.time || item.kernel->family == "selftest") continue;
    const std::string line = prediction_to_line(item, options.roofline);
    if (file) {
      file->write(line);
    } else {
      std::printf("%s\n", line.c_str());
    }
  }
  return 0;
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

struct Counts {
  std::size_t failed = 0;
  std::size_t flagged = 0;  // Noisy or throttled.
};

// Progress on stderr: what was measured, and how long the rest will take at the mean rate so far.
class Progress {
 public:
  explicit Progress(std::size_t total) : total_(total) {}
  void report(const PlanItem& item, const LineSummary& summary) {
    ++done_;
    const double elapsed =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    const double left = elapsed / static_cast<double>(done_) * static_cast<double>(total_ - done_);
    std::fprintf(stderr, "[%zu/%zu, about %.0f s left] %s: %s\n", done_, total_, left,
                 item.key().c_str(), summary.text.c_str());
  }

 private:
  std::size_t total_;
  std::size_t done_ = 0;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// Bindings leave dimensions at their defaults out; a measured shape names them all.
MeasuredSeconds by_binding(const ScenarioStep& step, const MeasuredSeconds& measured) {
  MeasuredSeconds seconds;
  for (const ScenarioKernel& k : distinct_kernels(step)) {
    const Shape shape = parse_shape(k.shape, find_kernel(k.kernel)->dimensions);
    const auto found = measured.find(k.kernel + " " + shape.to_string());
    if (found != measured.end()) seconds[k.kernel + " " + k.shape] = found->second;
  }
  return seconds;
}

int run(const ReplayOptions& options, int argc, char** argv) {
  constexpr double kProbeTimeoutSeconds = 60;
  Session session = session_from_line(
      run_in_child([] { return session_to_line(describe_device()); }, kProbeTimeoutSeconds));
  session.argv.assign(argv, argv + argc);
  session.git_sha = FULCRUM_GIT_SHA;
  session.started_at = utc_now();
  session.id = session.started_at + "-" + std::to_string(getpid());
  std::fprintf(stderr, "%s, driver %s%s\n", session.device_name.c_str(),
               session.driver_version.empty() ? "unknown" : session.driver_version.c_str(),
               session.nvml_absence.empty()
                   ? ""
                   : (", clocks and throttling unknown: " + session.nvml_absence).c_str());

  std::vector<PlanItem> items = options.items;
  std::unique_ptr<MeasurementFile> file;
  if (!options.out_path.empty()) {
    if (!options.remeasure) {
      const auto finished = finished_keys(options.out_path, session);
      const std::size_t kept =
          std::erase_if(items, [&](const PlanItem& i) { return finished.contains(i.key()); });
      if (kept > 0) {
        std::fprintf(stderr, "%zu entries are already in %s\n", kept, options.out_path.c_str());
      }
    }
    file = std::make_unique<MeasurementFile>(options.out_path);
    if (!items.empty()) file->write(session_to_line(session));
  }

  Counts counts;
  MeasuredSeconds measured;  // By kernel and shape; of several launch modes the last one.
  Progress progress(items.size());
  const auto keep = [&](const PlanItem& item, const std::string& line) {
    const LineSummary summary = summarize_line(line);
    if (summary.status == "failed") ++counts.failed;
    if (summary.status == "noisy" || summary.status == "throttled") ++counts.flagged;
    if (summary.median_seconds) {
      measured[item.kernel->name + " " + item.shape.to_string()] = *summary.median_seconds;
    }
    if (file) file->write(line);
    progress.report(item, summary);
  };
  const InterruptGuard guard;
  const bool complete =
      supervise(items,
                [&]() -> RunItem {
                  const auto nvml = std::make_shared<Nvml>(pci_bus_id());
                  return [&, nvml](const PlanItem& item, bool& context_lost) {
                    return entry_to_line(
                        run_item(item, options.worker, session, *nvml, context_lost), session.id);
                  };
                },
                {.item_timeout_seconds = options.item_timeout_seconds},
                {.finished = [&](std::size_t i, const std::string& line) { keep(items[i], line); },
                 .died =
                     [&](std::size_t i, const std::string& reason) {
                       EntryResult lost;
                       lost.item = items[i];
                       lost.claim = items[i].kernel->claim(items[i].shape);
                       lost.reason = reason;
                       keep(items[i], entry_to_line(lost, session.id));
                     },
                 .interrupted = [] { return interrupt_requested != 0; }});

  if (!complete) {
    std::fprintf(stderr, "interrupted%s\n",
                 file ? "; the same command continues where this one stopped" : "");
    return 1;
  }
  std::fprintf(stderr, "%zu entries, %zu failed, %zu noisy or throttled\n", items.size(),
               counts.failed, counts.flagged);
  if (options.scenario) print_step(*options.scenario, by_binding(*options.scenario, measured));
  return counts.failed == 0 ? 0 : 1;
}

}  // namespace

int run_replay_command(int argc, char** argv) {
  if (argc > 1 && std::string(argv[1]) == "collectives") {
    const std::string name = std::string(argv[0]) + " collectives";
    std::vector<char*> rest(argv + 1, argv + argc);
    rest[0] = const_cast<char*>(name.c_str());  // Only read.
    return collectives::run_collectives_command(argc - 1, rest.data());
  }
  ReplayOptions options;
  try {
    options = parse_options(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
    return 2;
  }
  try {
    switch (options.action) {
      case ReplayOptions::Action::kHelp:
        std::printf("%s", options.help_text.c_str());
        return 0;
      case ReplayOptions::Action::kList:
        if (options.scenario) {
          print_step(*options.scenario);
        } else {
          print_list();
        }
        return 0;
      case ReplayOptions::Action::kPredict:
        return predict(options);
      case ReplayOptions::Action::kRun:
        return run(options, argc, argv);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
  }
  return 1;
}

}  // namespace fulcrum::replay
