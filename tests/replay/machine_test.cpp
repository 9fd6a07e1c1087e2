#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>

#include "replay/machine/findings.h"
#include "replay/machine/read_machine.h"

namespace fulcrum::replay::machine {
namespace {

GpuFacts healthy_gpu(int index) {
  GpuFacts gpu;
  gpu.index = index;
  gpu.name = "NVIDIA H200";
  gpu.memory_bytes = 150e9;
  gpu.memory_used_bytes = 0.5e9;
  gpu.sm_clock_hertz = 345e6;  // idle
  gpu.sm_clock_max_hertz = gpu.sm_clock_application_hertz = 1980e6;
  gpu.power_limit_watts = gpu.power_limit_default_watts = 700;
  gpu.temperature_celsius = 30;
  gpu.slowdown_temperature_celsius = 89;
  gpu.throttle_reasons = 0x1;  // idle
  gpu.persistence_mode = gpu.ecc_mode = true;
  gpu.mig_mode = false;
  gpu.ecc_uncorrected_errors = 0;
  gpu.compute_processes = 0;
  gpu.utilization_fraction = 0.0;
  gpu.pcie_generation = gpu.pcie_generation_max = 5;
  gpu.pcie_lanes = gpu.pcie_lanes_max = 16;
  gpu.nvlinks_active = 18;
  return gpu;
}

MachineFacts healthy_pair() {
  MachineFacts facts;
  facts.driver_version = "580.1";
  facts.nccl_version = "2.28.9";
  facts.host.frequency_governor = "performance";
  facts.host.iommu = false;
  facts.gpus = {healthy_gpu(0), healthy_gpu(1)};
  facts.peers = {{.from = 0, .to = 1, .read = true, .write = true, .nvlink = true},
                 {.from = 1, .to = 0, .read = true, .write = true, .nvlink = true}};
  return facts;
}

std::vector<std::string> codes(const MachineFacts& facts) {
  std::vector<std::string> result;
  for (const Finding& finding : find(facts)) result.push_back(finding.code);
  return result;
}

TEST(Findings, AHealthyIdleMachineHasNone) { EXPECT_TRUE(find(healthy_pair()).empty()); }

TEST(Findings, NothingKnownIsNotAnythingWrong) {
  MachineFacts facts = healthy_pair();
  facts.host = {};
  for (GpuFacts& gpu : facts.gpus) gpu = {.index = gpu.index, .name = gpu.name};
  facts.peers = {{.from = 0, .to = 1}};
  EXPECT_TRUE(find(facts).empty());
}

TEST(Findings, EachFaultIsFoundAloneAndNamedWithItsPlace) {
  struct Case {
    const char* code;
    Severity severity;
    const char* where;
    std::function<void(MachineFacts&)> spoil;
  };
  using F = MachineFacts;
  constexpr Severity kDistorts = Severity::kDistorts;
  const Case cases[] = {
      {"power_capped", kDistorts, "GPU 1", [](F& f) { f.gpus[1].power_limit_watts = 500; }},
      {"clock_set_low", kDistorts, "GPU 0",
       [](F& f) { f.gpus[0].sm_clock_application_hertz = 1200e6; }},
      {"throttled", kDistorts, "GPU 0", [](F& f) { f.gpus[0].throttle_reasons = 0x4; }},
      {"hot", kDistorts, "GPU 0", [](F& f) { f.gpus[0].temperature_celsius = 80; }},
      {"persistence_off", Severity::kNote, "GPU 0",
       [](F& f) { f.gpus[0].persistence_mode = false; }},
      {"mig", kDistorts, "GPU 0", [](F& f) { f.gpus[0].mig_mode = true; }},
      {"other_processes", kDistorts, "GPU 1", [](F& f) { f.gpus[1].compute_processes = 2; }},
      {"busy", kDistorts, "GPU 0", [](F& f) { f.gpus[0].utilization_fraction = 0.5; }},
      {"memory_taken", Severity::kNote, "GPU 0", [](F& f) { f.gpus[0].memory_used_bytes = 80e9; }},
      {"ecc_off", Severity::kNote, "GPU 0", [](F& f) { f.gpus[0].ecc_mode = false; }},
      {"ecc_errors", kDistorts, "GPU 0", [](F& f) { f.gpus[0].ecc_uncorrected_errors = 1; }},
      {"pcie_narrow", kDistorts, "GPU 0", [](F& f) { f.gpus[0].pcie_lanes = 8; }},
      {"pcie_generation_low", Severity::kNote, "GPU 0",
       [](F& f) { f.gpus[0].pcie_generation = 1; }},
      {"nvlink_down", kDistorts, "GPU 0",
       [](F& f) { f.gpus[0].nvlinks_active = 17, f.gpus[0].nvlinks_inactive = 1; }},
      {"no_peer_access", kDistorts, "GPU 0 - GPU 1",
       [](F& f) { f.peers[0].read = f.peers[1].read = false; }},
      {"mixed_gpus", Severity::kNote, "GPU 1", [](F& f) { f.gpus[1].name = "NVIDIA H100"; }},
      {"no_nccl", kDistorts, "host",
       [](F& f) { f.nccl_version.reset(), f.nccl_absence = "libnccl.so.2 cannot be loaded"; }},
      {"cpu_governor", kDistorts, "host", [](F& f) { f.host.frequency_governor = "powersave"; }},
      {"iommu", Severity::kNote, "host", [](F& f) { f.host.iommu = true; }},
      {"virtual_machine", Severity::kNote, "host", [](F& f) { f.host.virtual_machine = true; }},
      {"launch_blocking", kDistorts, "environment",
       [](F& f) { f.environment["CUDA_LAUNCH_BLOCKING"] = "1"; }},
      {"nccl_p2p_off", kDistorts, "environment",
       [](F& f) { f.environment["NCCL_P2P_DISABLE"] = "1"; }},
      {"nccl_proto_set", Severity::kNote, "environment",
       [](F& f) { f.environment["NCCL_PROTO"] = "LL"; }},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.code);
    MachineFacts facts = healthy_pair();
    c.spoil(facts);
    const std::vector<Finding> findings = find(facts);
    ASSERT_FALSE(findings.empty());
    EXPECT_EQ(findings[0].code, c.code);
    EXPECT_EQ(findings[0].severity, c.severity);
    EXPECT_EQ(findings[0].where, c.where);
    EXPECT_FALSE(findings[0].what.empty());
    EXPECT_FALSE(findings[0].why.empty());
    EXPECT_LE(findings.size(), 2u);
  }
}

TEST(Findings, ABrokenPairIsReportedOnce) {
  MachineFacts facts = healthy_pair();
  facts.peers[0].read = facts.peers[1].read = false;
  EXPECT_EQ(codes(facts), std::vector<std::string>{"no_peer_access"});
}

TEST(Findings, AHarmlessSettingIsNoFinding) {
  MachineFacts facts = healthy_pair();
  facts.environment = {{"NCCL_P2P_DISABLE", "0"}, {"NCCL_DEBUG", "WARN"}};
  EXPECT_TRUE(find(facts).empty());
}

TEST(Findings, WithoutADriverOnlyThatIsSaid) {
  MachineFacts facts;
  facts.nvml_absence = "libnvidia-ml.so.1 cannot be loaded";
  EXPECT_EQ(codes(facts), std::vector<std::string>{"no_driver"});
  facts.nvml_absence.clear();
  EXPECT_EQ(codes(facts), std::vector<std::string>{"no_gpu"});
}

TEST(Findings, TheMostSevereComeFirst) {
  MachineFacts facts = healthy_pair();
  facts.gpus[0].persistence_mode = false;
  facts.gpus[1].mig_mode = true;
  EXPECT_EQ(codes(facts), (std::vector<std::string>{"mig", "persistence_off"}));
}

// A driver with two cards, of which it knows little: most functions are missing, one fails.
namespace fake {
int devices[2];
int init() { return kNvmlSuccess; }
int shutdown() { return kNvmlSuccess; }
int count(unsigned* n) { return *n = 2, kNvmlSuccess; }
int by_index(unsigned i, NvmlDevice* device) { return *device = &devices[i], kNvmlSuccess; }
int name(NvmlDevice device, char* text, unsigned size) {
  std::strncpy(text, device == &devices[0] ? "Zero" : "One", size);
  return kNvmlSuccess;
}
int clock(NvmlDevice, unsigned which, unsigned* mhz) {
  return *mhz = which == 1 ? 1980 : 3201, kNvmlSuccess;
}
int power(NvmlDevice, unsigned*) { return 3; }  // NVML_ERROR_NOT_SUPPORTED
int processes(NvmlDevice device, unsigned* n, void*) {
  return *n = device == &devices[0] ? 0 : 3, *n == 0 ? kNvmlSuccess : kNvmlInsufficientSize;
}
int mig(NvmlDevice, unsigned* now, unsigned* pending) {
  return *now = 1, *pending = 0, kNvmlSuccess;
}
int link_state(NvmlDevice, unsigned link, unsigned* active) {
  return *active = link < 4 ? 1 : 0, link < 6 ? kNvmlSuccess : 2;
}
int peer(NvmlDevice from, NvmlDevice, unsigned what, unsigned* status) {
  return *status = what == 2 && from == &devices[0] ? 1 : 0, kNvmlSuccess;
}
int ancestor(NvmlDevice, NvmlDevice, unsigned* level) { return *level = 30, kNvmlSuccess; }
}  // namespace fake

TEST(ReadGpus, TakesWhatTheDriverTellsAndLeavesTheRestUnknown) {
  NvmlTable table;
  table.init = fake::init;
  table.shutdown = fake::shutdown;
  table.count = fake::count;
  table.by_index = fake::by_index;
  table.name = fake::name;
  table.clock = fake::clock;
  table.power = fake::power;
  table.processes = fake::processes;
  table.mig = fake::mig;
  table.nvlink_state = fake::link_state;
  table.peer_status = fake::peer;
  table.common_ancestor = fake::ancestor;
  MachineFacts facts;
  read_gpus(table, facts);
  ASSERT_EQ(facts.gpus.size(), 2u);
  EXPECT_EQ(facts.gpus[1].name, "One");
  EXPECT_DOUBLE_EQ(*facts.gpus[0].sm_clock_hertz, 1980e6);
  EXPECT_DOUBLE_EQ(*facts.gpus[0].memory_clock_hertz, 3201e6);
  EXPECT_FALSE(facts.gpus[0].power_watts);
  EXPECT_FALSE(facts.gpus[0].ecc_mode);
  EXPECT_EQ(*facts.gpus[0].compute_processes, 0);
  EXPECT_EQ(*facts.gpus[1].compute_processes, 3);
  EXPECT_TRUE(*facts.gpus[0].mig_mode);
  EXPECT_EQ(facts.gpus[0].nvlinks_active, 4);
  EXPECT_EQ(facts.gpus[0].nvlinks_inactive, 2);
  ASSERT_EQ(facts.peers.size(), 2u);
  EXPECT_TRUE(*facts.peers[0].read);
  EXPECT_FALSE(*facts.peers[0].nvlink);
  EXPECT_TRUE(*facts.peers[1].nvlink);
  EXPECT_EQ(facts.peers[0].ancestor, "host bridge");
}

TEST(ReadGpus, ADriverThatDoesNotStartSaysWhy) {
  NvmlTable table;
  table.init = [] { return 9; };
  table.error_string = [](int) { return "Driver Not Loaded"; };
  MachineFacts facts;
  read_gpus(table, facts);
  EXPECT_NE(facts.nvml_absence.find("Driver Not Loaded"), std::string::npos);
  EXPECT_TRUE(facts.gpus.empty());
}

TEST(ReadHost, ReadsProcAndSysAndLeavesTheRestUnknown) {
  namespace fs = std::filesystem;
  const fs::path root = fs::path(testing::TempDir()) / "fulcrum_machine_test";
  fs::remove_all(root);
  EXPECT_FALSE(read_host(root.string()).num_cpus);
  EXPECT_FALSE(read_host(root.string()).iommu);
  fs::create_directories(root / "proc");
  fs::create_directories(root / "sys/class/iommu");
  fs::create_directories(root / "sys/devices/system/cpu/cpu0/cpufreq");
  std::ofstream(root / "proc/cpuinfo") << "processor : 0\nmodel name : Some CPU\n"
                                          "flags : fpu hypervisor lm\nprocessor : 1\n";
  std::ofstream(root / "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor") << "powersave\n";
  HostFacts host = read_host(root.string());
  EXPECT_EQ(host.cpu, "Some CPU");
  EXPECT_EQ(*host.num_cpus, 2);
  EXPECT_TRUE(*host.virtual_machine);
  EXPECT_EQ(*host.frequency_governor, "powersave");
  EXPECT_FALSE(*host.iommu);
  fs::create_directories(root / "sys/class/iommu/dmar0");
  EXPECT_TRUE(*read_host(root.string()).iommu);
  fs::remove_all(root);
}

TEST(Environment, KeepsWhatCudaAndNcclRead) {
  const char* variables[] = {"HOME=/x",     "NCCL_PROTO=LL", "CUDA_VISIBLE_DEVICES=0,1",
                             "NCCL_EMPTY=", "NCCL_BROKEN",   nullptr};
  const auto kept = relevant_environment(variables);
  EXPECT_EQ(kept.size(), 3u);
  EXPECT_EQ(kept.at("NCCL_PROTO"), "LL");
  EXPECT_EQ(kept.at("NCCL_EMPTY"), "");
}

}  // namespace
}  // namespace fulcrum::replay::machine
