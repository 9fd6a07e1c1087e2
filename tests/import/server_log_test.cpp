// Start-up logs as changes to a scenario.
#include "model/io/import/server_log.h"

#include <gtest/gtest.h>

#include "model/errors.h"
#include "model/io/load_scenario.h"

namespace fulcrum::io {
namespace {

ServerLog read(const std::string& name) {
  ByteSource source = ByteSource::from_file(FULCRUM_SOURCE_DIR "/tests/import/fixtures/" + name);
  return read_server_log(source);
}

nlohmann::json change(const ServerLog& log, const std::string& pointer) {
  std::vector<std::string> notes;
  for (const ScenarioChange& one : scenario_changes(log, notes)) {
    if (one.pointer == pointer) return one.value;
  }
  return nullptr;
}

TEST(ServerLog, OfSglangStatesWhatTheSchedulerResolved) {
  const ServerLog log = read("sglang_0_5_server.log");
  EXPECT_EQ(log.engine, "sglang");
  EXPECT_EQ(log.pool_tokens, 3080960.0);
  EXPECT_EQ(log.pool_bytes_per_token, 15955.85);
  EXPECT_EQ(log.max_running_requests, 8.0) << "resolved, not the None of the arguments";
  EXPECT_EQ(log.max_context_tokens, 1048576.0);
  EXPECT_EQ(log.peak_running_requests, 8.0);
  EXPECT_DOUBLE_EQ(*log.accept_length, 1.85);
  EXPECT_NEAR(*log.accept_length_standard_error, 0.05, 1e-12);  // of 1.8 and 1.9
  EXPECT_EQ(log.attention_backend, "compressed");
  // 8 requests of two verified tokens each.
  EXPECT_EQ(change(log, "/engine/graph_capture_max_tokens"), 16);
  EXPECT_EQ(change(log, "/speculation").at("draft_tokens"), 1);
}

TEST(ServerLog, OfVllmStatesItsArguments) {
  const ServerLog log = read("vllm_0_20_server.log");
  EXPECT_EQ(log.engine, "vllm");
  EXPECT_EQ(log.engine_version, "0.20.0");
  EXPECT_EQ(log.pool_tokens, 301529.0);
  EXPECT_EQ(log.available_kv_gib, 7.75);
  EXPECT_EQ(log.weights_gib, 78.67);
  EXPECT_EQ(change(log, "/tensor_parallel"), 2);
  EXPECT_EQ(change(log, "/expert_parallel"), 2);
  EXPECT_EQ(change(log, "/engine/memory_fraction"), 0.94);
  EXPECT_EQ(change(log, "/engine/graph_capture_max_tokens"), 24);
  EXPECT_EQ(change(log, "/engine/chunked_prefill_tokens"), 8192);
  EXPECT_NEAR(change(log, "/speculation").at("accept_length").get<double>(), 2.38, 1e-12);
}

TEST(ServerLog, ItsChangesMakeAValidScenario) {
  for (const char* file : {"sglang_0_5_server.log", "vllm_0_20_server.log"}) {
    SCOPED_TRACE(file);
    ScenarioDocument scenario = read_scenario("campaign-stock");
    std::vector<std::string> notes;
    for (const ScenarioChange& one : scenario_changes(read(file), notes)) {
      set_value(scenario, one.pointer, one.value);
    }
    std::vector<std::string> warnings;
    EXPECT_NO_THROW(resolve_scenario(scenario, warnings));
    EXPECT_TRUE(notes.empty());
  }
}

TEST(ServerLog, WithoutAcceptanceLeavesSpeculationToTheReader) {
  const std::string text =
      "INFO non-default args: {'model': 'm', 'speculative_config': {'method': 'mtp', "
      "'num_speculative_tokens': 2}}\n";
  ByteSource source = ByteSource::from_memory(text, "memory");
  std::vector<std::string> notes;
  scenario_changes(read_server_log(source), notes);
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_NE(notes[0].find("accept length"), std::string::npos);
}

TEST(ServerLog, OfNeitherEngineIsRefused) {
  const std::string text = "hello\nworld\n";
  ByteSource source = ByteSource::from_memory(text, "memory");
  EXPECT_THROW(read_server_log(source), InputError);
}

}  // namespace
}  // namespace fulcrum::io
