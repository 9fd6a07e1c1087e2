// Bad scenarios and files: one clear error each, naming file and place.
#include <gtest/gtest.h>

#include "model/errors.h"
#include "model/io/json_reader.h"
#include "model/io/load_hardware.h"
#include "tests/model/test_support.h"

namespace fulcrum {
namespace {

std::string error_of(const test::Changes& changes) {
  try {
    test::deployment("campaign-a", changes);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

struct BadInput {
  const char* what;
  const char* pointer;
  nlohmann::json value;
  const char* expected;  ///< part of the message
};

TEST(BadScenario, EachMistakeIsNamedWithItsPlace) {
  const BadInput kCases[] = {
      {"TP 3", "/tensor_parallel", 3, "/tensor_parallel: is 3: o_groups = 8 is not divisible"},
      {"TP above the GPUs", "/tensor_parallel", 8, "/tensor_parallel: is 8 on 4 GPUs"},
      {"concurrency 0", "/workload/concurrency", {0}, "/workload/concurrency/0: is 0"},
      {"no concurrency", "/workload/concurrency", nlohmann::json::array(), "names no concurrency"},
      {"concurrency text", "/workload/concurrency", "many", "/workload/concurrency: is \"many\""},
      {"unknown kernel set", "/kernel_set", "sglang-2026-07-sm120", "did you mean"},
      {"unknown hardware", "/hardware", "rtx-pro-6000", "is not in data/hardware"},
      {"unknown model", "/model", "llama", "is not in data/models"},
      {"unreadable file", "/model", "no/such.json", "cannot be read"},
      {"unknown key", "/engine/cuda_graphs", true, "did you mean \"cuda_graph\"?"},
      {"unknown top key", "/engines", 1, "/engines: is not a known key"},
      {"negative fraction", "/engine/memory_fraction", -0.5, "/engine/memory_fraction: is -0.5"},
      {"zero fraction", "/engine/memory_fraction", 0, "/engine/memory_fraction: is 0"},
      {"wrong schema", "/schema", "fulcrum/scenario/2", "allowed: fulcrum/scenario/1"},
      {"context too long", "/workload/input_tokens", 2000000, "/workload: input plus output"},
      {"topology", "/topology", "nvlink", "does not have"},
      {"acceptance above one",
       "/speculation",
       {{"method", "mtp"},
        {"draft_tokens", 1},
        {"acceptance", {1.5}},
        {"acceptance_standard_error", 0},
        {"acceptance_source", "x"}},
       "/speculation/acceptance/0: is 1.5"},
      {"acceptance count",
       "/speculation",
       {{"method", "mtp"},
        {"draft_tokens", 3},
        {"acceptance", {0.9}},
        {"acceptance_standard_error", 0},
        {"acceptance_source", "x"}},
       "one per draft token: 3"},
      {"fraction of a GPU", "/num_gpus", 2.5, "a whole number"},
      {"null", "/engine", nullptr, "/engine"},
      {"unknown slot", "/kernels", {{"fp8_gem", "sglang-2026-08-sm120"}}, "not an op or a slot"},
  };
  for (const BadInput& bad : kCases) {
    const std::string message = error_of({{bad.pointer, bad.value}});
    EXPECT_NE(message.find(bad.expected), std::string::npos) << bad.what << ": " << message;
    EXPECT_NE(message.find(".json"), std::string::npos) << bad.what << " names no file";
  }
}

TEST(BadScenario, SeveralMistakesAreReportedTogether) {
  const std::string message =
      error_of({{"/engine/memory_fraction", 2}, {"/workload/output_tokens", 0}});
  EXPECT_NE(message.find("/engine/memory_fraction"), std::string::npos);
  EXPECT_NE(message.find("/workload/output_tokens"), std::string::npos);
}

TEST(BadScenario, AnArchitectureWithoutTheKernelSetIsRefused) {
  const std::string message = error_of({{"/hardware", "h200-sxm"}, {"/topology", "nvlink"}});
  EXPECT_NE(message, "no error");
}

TEST(BadAssignment, WithoutAnEqualsSignIsRefused) {
  EXPECT_THROW(io::split_assignment("engine.cuda_graph"), InputError);
  EXPECT_THROW(io::split_assignment("=3"), InputError);
  EXPECT_EQ(io::split_assignment("a.b=c=d").second, "c=d");
}

TEST(BadHardware, WrongUnitKeysAndNegativeBandwidthsAreNamed) {
  nlohmann::json gpu = io::read_json_file(test::data_path("hardware/h200-sxm.json"));
  gpu["memory_bandwidth_tb_per_s"] = gpu["memory_bandwidth_gb_per_s"];
  gpu["memory_bandwidth_gb_per_s"]["value"] = -4800;
  const std::string path = ::testing::TempDir() + "fulcrum-bad-hardware.json";
  FILE* file = fopen(path.c_str(), "w");
  ASSERT_NE(file, nullptr);
  fputs(gpu.dump().c_str(), file);
  fclose(file);
  std::string message;
  try {
    io::load_hardware(path);
  } catch (const InputError& error) {
    message = error.what();
  }
  EXPECT_NE(message.find("/memory_bandwidth_gb_per_s/value: is -4800"), std::string::npos);
  EXPECT_NE(message.find("/memory_bandwidth_tb_per_s: is not a known key"), std::string::npos);
}

}  // namespace
}  // namespace fulcrum
