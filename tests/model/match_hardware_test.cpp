#include "model/match_hardware.h"

#include <gtest/gtest.h>

#include <vector>

namespace fulcrum {
namespace {

Hardware described(const char* name, const char* label, const char* capability, double mib) {
  Hardware hardware;
  hardware.name = name;
  hardware.label = label;
  hardware.compute_capability = capability;
  hardware.memory_capacity_mib.value = mib;
  return hardware;
}

const std::vector<Hardware> kDescribed = {
    described("h100-sxm", "NVIDIA H100 SXM5 80GB", "9.0", 81920),
    described("h200-sxm", "NVIDIA H200 SXM 141GB", "9.0", 143771),
    described("rtx-5090", "NVIDIA GeForce RTX 5090", "12.0", 32768),
    described("maxq", "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", "12.0", 98304),
    described("server", "NVIDIA RTX PRO 6000 Blackwell Server Edition", "12.0", 97887),
    described("workstation", "NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "12.0", 98304),
    described("gb10", "NVIDIA GB10 (DGX Spark)", "12.1", 131072),
};

std::string match(const DeviceIdentity& device) {
  const auto index = match_hardware(device, kDescribed);
  return index ? kDescribed[*index].name : "none";
}

TEST(MatchHardware, FindsACardByWhatTheDriverCallsIt) {
  EXPECT_EQ(match({"NVIDIA H200", "9.0", 143771}), "h200-sxm");
  EXPECT_EQ(match({"NVIDIA H100 80GB HBM3", "9.0", 81559}), "h100-sxm");
  EXPECT_EQ(match({"NVIDIA GB10", "12.1", 122500}), "gb10");
}

TEST(MatchHardware, TellsEditionsOfOneCardApart) {
  EXPECT_EQ(match({"NVIDIA RTX PRO 6000 Blackwell Server Edition", "12.0", 97887}), "server");
  EXPECT_EQ(match({"NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "12.0", 97887}),
            "workstation");
  EXPECT_EQ(match({"NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", "12.0", 97887}),
            "maxq");
}

TEST(MatchHardware, NeverTakesASimilarCard) {
  EXPECT_EQ(match({"NVIDIA H100 NVL", "9.0", 95830}), "none");           // another memory
  EXPECT_EQ(match({"NVIDIA H200", "9.1", 143771}), "none");              // another capability
  EXPECT_EQ(match({"NVIDIA GeForce RTX 5080", "12.0", 16303}), "none");  // another card
  EXPECT_EQ(match({"NVIDIA L40S", "8.9", 46068}), "none");
  EXPECT_EQ(match({"", "", {}}), "none");
}

}  // namespace
}  // namespace fulcrum
