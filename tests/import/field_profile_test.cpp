// The published kernel profiles against the shipped rules: how much of their GPU time is mapped,
// and whether their kernels add up to the step time their own source states.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "calibrate/io/load_trace_rules.h"

namespace fulcrum::calibrate {
namespace {

using nlohmann::json;

std::string field_file() {
  const char* folder = std::getenv("FULCRUM_FIELD_DIR");
  const std::string base = folder != nullptr ? folder : FULCRUM_SOURCE_DIR "/../shared/field";
  return base + "/public_measurements.jsonl";
}

/// Kernel rows (not component or graph sums) of the records with kind "profile", by source file.
std::map<std::string, std::vector<json>> published_profiles() {
  std::map<std::string, std::vector<json>> profiles;
  std::ifstream file(field_file());
  std::string line;
  while (std::getline(file, line)) {
    json record = json::parse(line);
    if (record["kind"] != "profile" || !record.contains("source_file")) continue;
    profiles[record["source_file"]].push_back(std::move(record));
  }
  return profiles;
}

bool is_kernel_row(const json& record) {
  return record.contains("kernel_count") && record.contains("kernel_us") &&
         record["kernel"].get<std::string>().front() != '[';
}

class PublishedProfiles : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(field_file())) {
      GTEST_SKIP() << "no public measurements; FULCRUM_FIELD_DIR names their folder";
    }
    profiles_ = published_profiles();
    rules_ = io::shipped_trace_rules();
  }
  std::vector<KernelTotal> kernels_of(const std::string& file_part) {
    std::vector<KernelTotal> kernels;
    for (const auto& [file, records] : profiles_) {
      if (file.find(file_part) == std::string::npos) continue;
      for (const json& record : records) {
        if (!is_kernel_row(record)) continue;
        const double count = record["kernel_count"].get<double>();
        kernels.push_back({record["kernel"].get<std::string>(), count,
                           count * record["kernel_us"].get<double>() * 1e-6});
      }
    }
    return kernels;
  }
  double step_seconds_of(const std::string& file_part, const std::string& component) {
    for (const auto& [file, records] : profiles_) {
      if (file.find(file_part) == std::string::npos) continue;
      for (const json& record : records) {
        if (record["kernel"].get<std::string>().find(component) != std::string::npos) {
          return record["kernel_us"].get<double>() * 1e-6;
        }
      }
    }
    return 0.0;
  }
  std::map<std::string, std::vector<json>> profiles_;
  TraceRules rules_;
};

TEST_F(PublishedProfiles, NinetyEightPercentOfTheirGpuTimeIsMapped) {
  for (const char* file : {"sm120_nomtp_decode_64tok/torch_kernel_summary.md",
                           "p1_stability_followup/decode_profile/torch_kernel_summary.md",
                           "code-c1-rank0.json", "prose-code-c2-rank0.json"}) {
    SCOPED_TRACE(file);
    const std::vector<KernelTotal> kernels = kernels_of(file);
    ASSERT_GE(kernels.size(), 15U);
    const RuleCoverage found = coverage(rules_, kernels);
    std::string unknown;
    for (const KernelTotal& kernel : found.unknown) unknown += "\n  " + kernel.name;
    EXPECT_GE(found.mapped_fraction(), 0.98) << unknown;
  }
}

// The table's rows are the largest kernels of the step; the source states the step's own sum
// (all kernels, 2471 launches). The named rows must make up most of it and never exceed it.
TEST_F(PublishedProfiles, KernelsOfTheVerifyStepAddUpToItsStatedSum) {
  const double stated = step_seconds_of("code-c1-rank0.json", "[component] TOTAL");
  ASSERT_GT(stated, 0.0);
  double sum = 0.0;
  for (const KernelTotal& kernel : kernels_of("code-c1-rank0.json")) sum += kernel.seconds;
  EXPECT_LE(sum, stated * 1.001);
  EXPECT_GE(sum, stated * 0.95);
}

}  // namespace
}  // namespace fulcrum::calibrate
