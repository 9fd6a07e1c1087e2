#include "replay/options.h"

#include <boost/program_options.hpp>
#include <sstream>
#include <stdexcept>

#include "replay/registry.h"
#include "replay/scenario_options.h"

namespace fulcrum::replay {
namespace {

namespace po = boost::program_options;

std::vector<KernelEntry> select_kernels(const std::vector<std::string>& names) {
  std::vector<KernelEntry> kernels;
  for (const std::string& name : names) {
    const KernelEntry* kernel = find_kernel(name);
    if (kernel == nullptr) {
      throw std::invalid_argument("unknown kernel '" + name + "'; --list shows those there are");
    }
    kernels.push_back(*kernel);
  }
  return kernels;
}

std::vector<CacheState> parse_cache(const std::string& text) {
  if (text == "cold") return {CacheState::kCold};
  if (text == "warm") return {CacheState::kWarm};
  if (text == "both") return {CacheState::kCold, CacheState::kWarm};
  throw std::invalid_argument("--cache: found '" + text + "', allowed: cold, warm, both");
}

std::vector<LaunchMode> parse_launch(const std::string& text) {
  if (text == "graph") return {LaunchMode::kGraph};
  if (text == "single") return {LaunchMode::kSingle};
  if (text == "both") return {LaunchMode::kSingle, LaunchMode::kGraph};
  throw std::invalid_argument("--launch: found '" + text + "', allowed: single, graph, both");
}

Roofline parse_roofline(const std::string& text) {
  Roofline roofline;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    const std::size_t equals = part.find('=');
    const std::string key = part.substr(0, equals);
    std::size_t used = 0;
    const std::string digits = equals == std::string::npos ? "" : part.substr(equals + 1);
    double value = 0;
    try {
      value = std::stod(digits, &used);
    } catch (const std::exception&) {
      used = 0;
    }
    double* target = key == "bytes_per_second"  ? &roofline.bytes_per_second
                     : key == "flop_per_second" ? &roofline.flop_per_second
                     : key == "launch_seconds"  ? &roofline.launch_seconds
                                                : nullptr;
    if (target == nullptr || used == 0 || used != digits.size() || value <= 0) {
      throw std::invalid_argument(
          "--predict: found '" + part +
          "', allowed: bytes_per_second, flop_per_second, launch_seconds, each a "
          "positive number");
    }
    *target = value;
  }
  if (roofline.bytes_per_second <= 0 || roofline.flop_per_second <= 0) {
    throw std::invalid_argument("--predict needs bytes_per_second and flop_per_second");
  }
  return roofline;
}

po::options_description describe(ReplayOptions& options) {
  po::options_description visible("Options");
  // clang-format off
  visible.add_options()
    ("help,h", "show this text")
    ("list", "list kernels, their dimensions and defaults")
    ("shapes", po::value<std::string>()->default_value(""),
     "shapes for the named kernels: 'm=1,n=4096,k=512;m=16,...'; missing dimensions take their default")
    ("plan", po::value<std::string>(),
     "calibration: what `calibrate` needs for this GPU; verify: check every kernel, time nothing. "
     "Named kernels restrict the plan")
    ("cache", po::value<std::string>()->default_value("cold"), "cold, warm or both")
    ("launch", po::value<std::string>()->default_value("graph"), "single, graph or both")
    ("verify-only", "check against the reference, do not time")
    ("no-verify", "time without checking (only after --plan verify has passed on this build)")
    ("out,o", po::value<std::string>(&options.out_path),
     "measurement file to append to; entries that it already holds from this device and build are kept")
    ("remeasure", "measure again what the file already holds")
    ("predict", po::value<std::string>(),
     "print what a roofline predicts for the items instead of running them (needs no GPU): "
     "'bytes_per_second=4.8e12,flop_per_second=989e12,launch_seconds=1e-6'")
    ("seed", po::value<std::uint64_t>(&options.worker.seed)->default_value(1), "of the random inputs")
    ("precision", po::value<double>(&options.worker.stopping.relative_half_width)
                      ->default_value(options.worker.stopping.relative_half_width),
     "stop when the median is known to this share (half of its 95 % interval)")
    ("max-samples", po::value<std::size_t>(&options.worker.stopping.max_samples)
                        ->default_value(options.worker.stopping.max_samples), "per entry")
    ("timeout", po::value<double>(&options.item_timeout_seconds)
                    ->default_value(options.item_timeout_seconds),
     "seconds after which a hung entry is given up");
  // clang-format on
  add_scenario_options(visible);
  return visible;
}

// The named kernels at every named shape, cache state and launch mode; each is checked once.
std::vector<PlanItem> shape_items(const po::variables_map& values,
                                  const std::vector<std::pair<std::string, std::string>>& named) {
  std::vector<PlanItem> items;
  for (const auto& [name, shapes] : named) {
    select_kernels({name});
    const KernelEntry* kernel = find_kernel(name);
    for (const Shape& shape : parse_shapes(shapes, kernel->dimensions)) {
      if (values.count("verify-only") > 0) {
        items.push_back({.kernel = kernel, .shape = shape, .verify = true, .time = false});
        continue;
      }
      bool verify = values.count("no-verify") == 0;
      for (const CacheState cache : parse_cache(values["cache"].as<std::string>())) {
        for (const LaunchMode launch : parse_launch(values["launch"].as<std::string>())) {
          items.push_back({.kernel = kernel,
                           .shape = shape,
                           .verify = verify,
                           .time = true,
                           .cache = cache,
                           .launch = launch});
          verify = false;  // The same numbers need no second check.
        }
      }
    }
  }
  return items;
}

std::vector<PlanItem> items_for(const po::variables_map& values,
                                const std::optional<ScenarioStep>& scenario) {
  const bool named = values.count("kernel") > 0;
  if (values.count("plan") > 0) {
    // Plans point into the registry, so a restricted plan is filtered afterwards.
    const std::string plan = values["plan"].as<std::string>();
    if (plan != "calibration" && plan != "verify") {
      throw std::invalid_argument("--plan: found '" + plan + "', allowed: calibration, verify");
    }
    if (scenario) throw std::invalid_argument("give --plan or --scenario, not both");
    std::vector<PlanItem> items =
        plan == "verify" ? verification_plan(registry()) : calibration_plan(registry());
    if (!named) return items;
    const auto kernels = select_kernels(values["kernel"].as<std::vector<std::string>>());
    std::erase_if(items, [&](const PlanItem& item) {
      for (const KernelEntry& kernel : kernels) {
        if (kernel.name == item.kernel->name) return false;
      }
      return true;
    });
    return items;
  }
  std::vector<std::pair<std::string, std::string>> wanted;
  if (scenario) {
    if (named) throw std::invalid_argument("--scenario chooses the kernels; name none beside it");
    for (const ScenarioKernel& k : distinct_kernels(*scenario))
      wanted.emplace_back(k.kernel, k.shape);
  } else if (named) {
    for (const std::string& name : values["kernel"].as<std::vector<std::string>>()) {
      wanted.emplace_back(name, values["shapes"].as<std::string>());
    }
  } else {
    throw std::invalid_argument("name a kernel, or give --plan, --scenario or --list");
  }
  return shape_items(values, wanted);
}

}  // namespace

ReplayOptions parse_options(int argc, const char* const* argv) {
  ReplayOptions options;
  const po::options_description visible = describe(options);
  po::options_description hidden;
  hidden.add_options()("kernel", po::value<std::vector<std::string>>());
  po::options_description all;
  all.add(visible).add(hidden);
  po::positional_options_description positional;
  positional.add("kernel", -1);
  po::variables_map values;
  po::store(po::command_line_parser(argc, argv).options(all).positional(positional).run(), values);
  po::notify(values);

  std::ostringstream help;
  help << "Usage: " << argv[0] << " [KERNEL ...] [options]\n"
       << "Runs real kernels on this machine's GPU: checks their numbers, then times them.\n\n"
       << "Example: " << argv[0]
       << " gemm_fp8_block --shapes 'm=1,n=4096,k=512;m=16,n=4096,k=512' -o h200.jsonl\n"
       << "         " << argv[0] << " --plan calibration -o h200.jsonl\n"
       << "         " << argv[0] << " --scenario campaign-a --concurrency 16\n\n"
       << visible;
  options.help_text = help.str();
  options.remeasure = values.count("remeasure") > 0;
  if (values.count("help") > 0) {
    options.action = ReplayOptions::Action::kHelp;
    return options;
  }
  options.scenario = scenario_of(values);
  if (values.count("list") > 0) {
    options.action = ReplayOptions::Action::kList;
  } else {
    options.items = items_for(values, options.scenario);
    if (values.count("predict") > 0) {
      options.action = ReplayOptions::Action::kPredict;
      options.roofline = parse_roofline(values["predict"].as<std::string>());
    }
  }
  return options;
}

}  // namespace fulcrum::replay
