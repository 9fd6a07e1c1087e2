#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/options.h"
#include "cli/table.h"
#include "model/io/data_dir.h"
#include "model/io/load_calibration.h"
#include "model/io/load_hardware.h"
#include "model/match_hardware.h"
#include "replay/io/machine_record.h"
#include "replay/machine/findings.h"
#include "replay/machine/read_machine.h"

namespace fulcrum::cli {
namespace {

namespace fs = std::filesystem;
namespace machine = replay::machine;
using Json = nlohmann::ordered_json;

/// What the project knows of one card.
struct Known {
  std::string hardware;                   ///< "" when it is not described
  std::vector<std::string> calibrations;  ///< shipped for it
};

std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(fs::path(io::data_dir()) / folder, ignored)) {
    if (entry.path().extension() == ".json") paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::vector<Known> recognise(const std::vector<machine::GpuFacts>& gpus) {
  if (gpus.empty()) return {};
  std::vector<Hardware> described;
  for (const std::string& path : files_in("hardware")) {
    described.push_back(io::load_hardware(path));
  }
  std::vector<Known> known;
  for (const machine::GpuFacts& gpu : gpus) {
    DeviceIdentity identity{.name = gpu.name};
    if (gpu.compute_capability) {
      identity.compute_capability = std::to_string(*gpu.compute_capability / 10) + "." +
                                    std::to_string(*gpu.compute_capability % 10);
    }
    constexpr double kBytesPerMib = 1048576.0;
    if (gpu.memory_bytes) identity.memory_mib = *gpu.memory_bytes / kBytesPerMib;
    known.emplace_back();
    const auto index = match_hardware(identity, described);
    if (!index) continue;
    known.back().hardware = described[*index].name;
    for (const std::string& path : files_in("calibration")) {
      if (io::load_calibration(path).hardware == known.back().hardware) {
        known.back().calibrations.push_back(fs::path(path).stem().string());
      }
    }
  }
  return known;
}

void add_unknown_gpus(const std::vector<machine::GpuFacts>& gpus, const std::vector<Known>& known,
                      std::vector<machine::Finding>& findings) {
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    const std::string where = "GPU " + std::to_string(gpus[i].index);
    if (known[i].hardware.empty()) {
      findings.push_back({machine::Severity::kNote, "unknown_gpu", where,
                          gpus[i].name + " is not in data/hardware/",
                          "nothing can be predicted for it until it is described",
                          "write its file after one of data/hardware/"});
    } else if (known[i].calibrations.empty()) {
      findings.push_back(
          {machine::Severity::kNote, "no_calibration", where,
           "no calibration is shipped for " + known[i].hardware,
           "predictions rest on assumed or transferred parameters, with wide intervals",
           "fulcrum replay --plan calibration -o here.jsonl, then fulcrum calibrate"});
    }
  }
}

bool built_with_cuda() {
#ifdef HAVE_CUDA_KERNELS
  return true;
#else
  return false;
#endif
}

void print_json(const machine::MachineFacts& facts, const std::vector<Known>& known,
                const std::vector<machine::Finding>& findings) {
  Json json = {{"schema", "fulcrum/doctor/1"},
               {"version", FULCRUM_VERSION},
               {"built_with_cuda", built_with_cuda()},
               {"machine", Json::parse(replay::machine_to_json(facts))}};
  json["known"] = Json::array();
  for (std::size_t i = 0; i < known.size(); ++i) {
    Json entry = {{"gpu", facts.gpus[i].index}};
    if (!known[i].hardware.empty()) entry["hardware"] = known[i].hardware;
    entry["calibrations"] = known[i].calibrations;
    json["known"].push_back(entry);
  }
  json["findings"] = Json::array();
  for (const machine::Finding& f : findings) {
    Json entry = {{"severity", machine::to_string(f.severity)},
                  {"code", f.code},
                  {"where", f.where},
                  {"what", f.what},
                  {"why", f.why}};
    if (!f.remedy.empty()) entry["remedy"] = f.remedy;
    json["findings"].push_back(entry);
  }
  std::cout << json.dump(1) << '\n';
}

std::string or_unknown(const std::optional<std::string>& text) { return text.value_or("unknown"); }

std::string ratio(const std::optional<double>& value, const std::optional<double>& limit,
                  double unit, const char* name) {
  if (!value && !limit) return "unknown";
  const auto part = [&](const std::optional<double>& x) {
    return x ? format_count(std::round(*x / unit)) : std::string("?");
  };
  return part(value) + " / " + part(limit) + " " + name;
}

std::string links_of(const machine::GpuFacts& gpu) {
  std::string text;
  if (gpu.nvlinks_active > 0) {
    text = std::to_string(gpu.nvlinks_active) + " NVLink" +
           (gpu.nvlink_version ? " " + *gpu.nvlink_version : "") + ", ";
  }
  if (!gpu.pcie_lanes || !gpu.pcie_generation) return text + "PCIe unknown";
  return text + "PCIe " + std::to_string(*gpu.pcie_generation) + " x" +
         std::to_string(*gpu.pcie_lanes);
}

std::string switched(const std::optional<bool>& on) {
  if (!on) return "unknown";
  return *on ? "on" : "off";
}

void print_gpus(const machine::MachineFacts& facts, const std::vector<Known>& known,
                const TerminalStyle& style) {
  Table table({{"GPU"},
               {"name", Align::kLeft, true},
               {"SM clock / max"},
               {"power limit / default"},
               {"temp"},
               {"ECC", Align::kLeft},
               {"links", Align::kLeft},
               {"calibrations that apply", Align::kLeft, true}});
  constexpr double kMegahertz = 1e6;
  for (std::size_t i = 0; i < facts.gpus.size(); ++i) {
    const machine::GpuFacts& gpu = facts.gpus[i];
    std::string applies;
    for (const std::string& name : known[i].calibrations) {
      applies += (applies.empty() ? "" : ", ") + name;
    }
    table.add({std::to_string(gpu.index), gpu.name,
               ratio(gpu.sm_clock_hertz, gpu.sm_clock_max_hertz, kMegahertz, "MHz"),
               ratio(gpu.power_limit_watts, gpu.power_limit_default_watts, 1.0, "W"),
               gpu.temperature_celsius ? format_count(*gpu.temperature_celsius) + " C" : "unknown",
               switched(gpu.ecc_mode), links_of(gpu), applies.empty() ? "none" : applies});
  }
  table.print(std::cout, style);
}

void print_peers(const std::vector<machine::PeerFacts>& peers) {
  if (peers.empty()) return;
  std::cout << "\npeer access:";
  for (const machine::PeerFacts& p : peers) {
    if (p.from > p.to) continue;
    std::cout << "  " << p.from << "-" << p.to << " " << switched(p.read);
    if (p.nvlink.value_or(false)) std::cout << ", NVLink";
    if (!p.ancestor.empty()) std::cout << " (PCIe: " << p.ancestor << ")";
  }
  std::cout << '\n';
}

void print_text(const machine::MachineFacts& facts, const std::vector<Known>& known,
                const std::vector<machine::Finding>& findings) {
  const TerminalStyle style = TerminalStyle::of_stdout();
  std::cout << "driver " << or_unknown(facts.driver_version) << ", CUDA up to "
            << or_unknown(facts.driver_cuda_version) << "; this build "
            << (built_with_cuda() ? "has" : "has no") << " CUDA kernels; NCCL "
            << facts.nccl_version.value_or("not found") << '\n';
  const auto& host = facts.host;
  std::cout << "host: " << (host.cpu.empty() ? "unknown CPU" : host.cpu);
  if (host.num_cpus) std::cout << ", " << *host.num_cpus << " CPUs";
  std::cout << '\n';
  if (!facts.gpus.empty()) std::cout << '\n';
  if (!facts.gpus.empty()) print_gpus(facts, known, style);
  print_peers(facts.peers);
  if (!facts.environment.empty()) std::cout << "\nsettings:";
  for (const auto& [name, value] : facts.environment) std::cout << " " << name << "=" << value;
  if (!facts.environment.empty()) std::cout << '\n';
  if (findings.empty()) {
    std::cout << "\nnothing here would distort a measurement\n";
    return;
  }
  std::cout << '\n';
  for (const machine::Finding& f : findings) {
    std::cout << bold(machine::to_string(f.severity), style) << "  " << f.where << ": " << f.what
              << "\n    " << f.why << '\n';
    if (!f.remedy.empty()) std::cout << "    -> " << f.remedy << '\n';
  }
}

}  // namespace

int run_doctor(const Arguments& arguments) {
  boost::program_options::options_description options;
  options.add_options()("json", "print JSON (schema fulcrum/doctor/1)");
  boost::program_options::variables_map values;
  const HelpText help{
      .usage = "fulcrum doctor [OPTIONS]",
      .description =
          "What this machine has - GPUs, clocks, limits, links, driver, NCCL and their settings -\n"
          "what would distort a measurement here, and which shipped calibration applies. Reads\n"
          "only; changes nothing. Without a GPU it says so, and exits with 0 all the same.",
      .example = "  fulcrum doctor --json | jq '.findings[] | select(.severity == \"distorts\")'"};
  if (!parse(arguments, help, options, {}, values)) return 0;
  const machine::MachineFacts facts = machine::read_machine();
  const std::vector<Known> known = recognise(facts.gpus);
  std::vector<machine::Finding> findings = machine::find(facts);
  add_unknown_gpus(facts.gpus, known, findings);
  if (values.count("json") != 0) {
    print_json(facts, known, findings);
  } else {
    print_text(facts, known, findings);
  }
  return 0;
}

}  // namespace fulcrum::cli
