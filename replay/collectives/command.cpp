#include "replay/collectives/command.h"

#include <boost/program_options.hpp>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>

#include "replay/io/collective_record.h"
#include "replay/io/measurement_file.h"

namespace fulcrum::replay::collectives {
namespace {

namespace po = boost::program_options;

struct Parsed {
  CommandOptions options;
  std::string help;
  bool help_asked = false;
  std::optional<PriorLink> prior;
  int prior_ranks = 2;
};

std::vector<LaunchKind> parse_launches(const std::string& text) {
  std::vector<LaunchKind> kinds;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, ',');) {
    bool known = false;
    for (const LaunchKind kind : {LaunchKind::kGraph, LaunchKind::kEager, LaunchKind::kSingle}) {
      if (part != to_string(kind)) continue;
      kinds.push_back(kind);
      known = true;
    }
    if (!known) {
      throw std::invalid_argument("--launch: found '" + part + "', allowed: graph, eager, single");
    }
  }
  if (kinds.empty()) throw std::invalid_argument("--launch: is empty");
  return kinds;
}

double positive(const std::string& key, const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !std::isfinite(value) || value <= 0.0) {
    throw std::invalid_argument("--predict " + key + ": found '" + text +
                                "', allowed: a number above 0");
  }
  return value;
}

void parse_prior(const std::string& text, Parsed& parsed) {
  std::map<std::string, std::string> values;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, ',');) {
    const std::size_t equals = part.find('=');
    const std::string key = part.substr(0, equals);
    if (equals == std::string::npos || (key != "link_bytes_per_second" && key != "hop_seconds" &&
                                        key != "ranks" && key != "link")) {
      throw std::invalid_argument(
          "--predict: found '" + part +
          "', allowed: link_bytes_per_second=N, hop_seconds=N, ranks=N, link=nvlink|pcie");
    }
    values[key] = part.substr(equals + 1);
  }
  PriorLink link;
  for (const char* needed : {"link_bytes_per_second", "hop_seconds"}) {
    if (!values.contains(needed)) {
      throw std::invalid_argument(std::string("--predict: ") + needed + " is missing");
    }
  }
  link.link_bytes_per_second = positive("link_bytes_per_second", values["link_bytes_per_second"]);
  link.hop_seconds = positive("hop_seconds", values["hop_seconds"]);
  if (values.contains("ranks")) {
    const double ranks = positive("ranks", values["ranks"]);
    constexpr double kMaxRanks = 65536.0;
    if (ranks < 2.0 || ranks > kMaxRanks || ranks != std::floor(ranks)) {
      throw std::invalid_argument("--predict ranks: found '" + values["ranks"] +
                                  "', allowed: whole numbers from 2");
    }
    parsed.prior_ranks = static_cast<int>(ranks);
  }
  if (values.contains("link")) {
    if (values["link"] != "nvlink" && values["link"] != "pcie") {
      throw std::invalid_argument("--predict link: found '" + values["link"] +
                                  "', allowed: nvlink, pcie");
    }
    link.nvlink = values["link"] == "nvlink";
  }
  parsed.prior = link;
}

Parsed parse(int argc, const char* const* argv) {
  Parsed parsed;
  SettingLists lists;
  CommandOptions& o = parsed.options;
  std::string sizes;
  std::string launches;
  po::options_description visible("options");
  // clang-format off
  visible.add_options()
    ("help,h", "show this help")
    ("collectives", po::value(&lists.operations)->default_value(lists.operations),
     "all_reduce, all_gather")
    ("carriers", po::value(&lists.carriers)->default_value(lists.carriers),
     "nccl, and the repo's own all-reduce over peer memory: peer_one_shot, peer_two_shot")
    ("protocols", po::value(&lists.protocols)->default_value(lists.protocols),
     "of NCCL: default, LL, LL128, Simple")
    ("algorithms", po::value(&lists.algorithms)->default_value(lists.algorithms),
     "of NCCL: default, Ring, Tree")
    ("channels", po::value(&lists.channels)->default_value(lists.channels),
     "of NCCL: default, or numbers")
    ("sizes", po::value(&sizes)->default_value("256:64M"),
     "bytes of the whole result of a rank: FROM:TO in powers of two, or a list")
    ("launch", po::value(&launches)->default_value("graph,eager,single"),
     "graph: many in one graph, per collective; eager: as many launched by the host; "
     "single: one, wait and transfer told apart")
    ("gpus", po::value<std::string>(), "devices of this process, default all")
    ("output,o", po::value(&o.out_path), "append records to this file")
    ("json", "print the records (schema fulcrum/collectives/1) instead of a table")
    ("predict", po::value<std::string>(),
     "measure nothing; write what NCCL's tuning model and this link give: "
     "link_bytes_per_second=450e9,hop_seconds=0.6e-6,ranks=2,link=nvlink")
    ("timeout", po::value(&o.setting_timeout_seconds)->default_value(o.setting_timeout_seconds),
     "seconds after which a hung setting is given up");
  // clang-format on
  po::variables_map values;
  const po::positional_options_description none;
  po::store(po::command_line_parser(argc, argv).options(visible).positional(none).run(), values);
  po::notify(values);
  std::ostringstream help;
  help << "Usage: " << argv[0] << " [options]\n"
       << "Checks every element of all-reduces and all-gathers among this machine's GPUs, then\n"
       << "times them by size, protocol and way of launching. One process drives all GPUs; under\n"
       << "torchrun, mpirun or srun each process drives the GPU of its local rank.\n\n"
       << "Example: " << argv[0] << " --sizes 256:64M -o links.jsonl\n"
       << "         torchrun --no-python --nproc-per-node 2 " << argv[0] << " -o links.jsonl\n\n"
       << visible;
  parsed.help = help.str();
  parsed.help_asked = values.count("help") > 0;
  if (parsed.help_asked) return parsed;
  o.settings = settings_of(lists);
  o.sizes_bytes = parse_sizes(sizes);
  o.launches = parse_launches(launches);
  o.json = values.count("json") > 0;
  if (!(o.setting_timeout_seconds > 0.0)) {
    throw std::invalid_argument("--timeout: must be above 0");
  }
  if (values.count("gpus") > 0) o.devices = parse_devices(values["gpus"].as<std::string>());
  if (values.count("predict") > 0) parse_prior(values["predict"].as<std::string>(), parsed);
  return parsed;
}

int predict(const Parsed& parsed) {
  const CommandOptions& o = parsed.options;
  std::unique_ptr<MeasurementFile> file;
  if (!o.out_path.empty()) file = std::make_unique<MeasurementFile>(o.out_path);
  for (const Setting& setting : o.settings) {
    for (const std::int64_t size : o.sizes_bytes) {
      const std::int64_t bytes = message_bytes(setting.operation, size, parsed.prior_ranks);
      const auto seconds = prior_seconds(setting, bytes, parsed.prior_ranks, *parsed.prior);
      const std::string line = collective_prediction_to_line(setting, bytes, parsed.prior_ranks,
                                                             *parsed.prior, seconds.value());
      if (file) {
        file->write(line);
      } else {
        std::printf("%s\n", line.c_str());
      }
    }
  }
  return 0;
}

}  // namespace

int run_collectives_command(int argc, char** argv) {
  Parsed parsed;
  try {
    parsed = parse(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
    return 2;
  }
  try {
    if (parsed.help_asked) {
      std::printf("%s", parsed.help.c_str());
      return 0;
    }
    if (parsed.prior) return predict(parsed);
    return run_collectives(parsed.options, std::vector<std::string>(argv, argv + argc));
  } catch (const std::invalid_argument& error) {
    std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
  }
  return 1;
}

}  // namespace fulcrum::replay::collectives
