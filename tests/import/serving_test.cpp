// Results of benchmark clients, one fixture per tool and version (fixtures/manifest.md), against
// values worked out by hand from what the fixture holds.
#include <gtest/gtest.h>

#include <string>

#include "model/errors.h"
#include "model/io/import/serving_formats.h"
#include "model/io/serving_result_file.h"

namespace fulcrum {
namespace {

std::vector<ServingResult> read(const std::string& name) {
  return io::read_serving_results(FULCRUM_SOURCE_DIR "/tests/import/fixtures/" + name);
}

std::vector<ServingResult> import_text(const std::string& text) {
  io::ByteSource source = io::ByteSource::from_memory(text, "memory");
  return io::import_serving_results(io::parse_import_json(source), "memory");
}

/// The whole message of the InputError, "" when none is thrown.
std::string refusal(const std::string& text) {
  try {
    import_text(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(SglangBench, EachLineIsARunInSeconds) {
  const auto results = read("sglang_0_5.jsonl");
  ASSERT_EQ(results.size(), 3U);
  const ServingResult& last = results[2];
  EXPECT_EQ(last.id, "line 3");
  EXPECT_EQ(last.tool, "sglang.bench_serving");
  EXPECT_EQ(last.label, "run-c16");
  EXPECT_EQ(last.engine, "sglang");
  EXPECT_EQ(last.concurrency, 16.0);
  EXPECT_FALSE(last.request_rate_per_second) << "Infinity is no rate";
  EXPECT_EQ(last.num_completed, 48.0);
  EXPECT_DOUBLE_EQ(*last.output_tokens_per_second, 48.0 * 256.0 / 60.0);
  EXPECT_DOUBLE_EQ(*last.output_tokens_per_request, 256.0);
  EXPECT_DOUBLE_EQ(*last.tpot.mean_seconds, 0.018);
  EXPECT_DOUBLE_EQ(*last.itl.p95_seconds, 0.040);
  EXPECT_DOUBLE_EQ(*last.mean_concurrency, 15.68);
  EXPECT_EQ(last.accept_length, 1.87);
  EXPECT_EQ(last.peak_concurrency, 16.0);
}

TEST(SglangBench, DetailsOfEachRequestAreDropped) {
  const auto results = read("sglang_0_4_details.jsonl");
  ASSERT_EQ(results.size(), 1U);
  EXPECT_EQ(results[0].request_rate_per_second, 2.0);
  EXPECT_FALSE(results[0].accept_length);
  EXPECT_DOUBLE_EQ(*results[0].ttft.p99_seconds, 0.5);
}

TEST(VllmBench, CarriesSpeculationPerPosition) {
  const auto results = read("vllm_0_15_mtp.json");
  ASSERT_EQ(results.size(), 1U);
  const ServingResult& r = results[0];
  EXPECT_EQ(r.tool, "vllm bench serve");
  EXPECT_EQ(r.model, "deepseek-ai/DeepSeek-V4-Flash");
  EXPECT_EQ(r.num_prompts, 80.0);
  EXPECT_EQ(r.num_failed, 0.0);
  EXPECT_EQ(r.accept_length, 2.374);
  EXPECT_EQ(r.num_draft_tokens, 2.0);  // 12636 drafts in 6318 steps
  EXPECT_EQ(r.accepted_fraction_at_position, (std::vector<double>{0.82, 0.554}));
  EXPECT_DOUBLE_EQ(*r.end_to_end.p99_seconds, 2.9);
  EXPECT_DOUBLE_EQ(*r.total_tokens_per_second, 20520.0 / 52.0);
}

TEST(VllmBench, TheOldScriptStatesLess) {
  const auto results = read("vllm_0_8.json");
  EXPECT_EQ(results[0].tool, "vllm bench serve");
  EXPECT_TRUE(results[0].end_to_end.empty());
  EXPECT_FALSE(results[0].accept_length);
  EXPECT_EQ(results[0].concurrency, 4.0);
}

TEST(GenaiPerf, InterTokenLatencyIsTpot) {
  for (const char* file : {"genai_perf_0_0_8.json", "aiperf_0_3.json"}) {
    SCOPED_TRACE(file);
    const ServingResult r = read(file).at(0);
    EXPECT_EQ(r.concurrency, 4.0);
    EXPECT_EQ(r.model, "deepseek-v4-flash");
    EXPECT_DOUBLE_EQ(*r.tpot.mean_seconds, 0.0196);
    EXPECT_DOUBLE_EQ(*r.tpot.p99_seconds, 0.022);
    EXPECT_DOUBLE_EQ(*r.output_tokens_per_second, 192.0);
    EXPECT_DOUBLE_EQ(*r.output_tokens_per_request, 128.0);
  }
  EXPECT_TRUE(read("genai_perf_0_0_8.json")[0].itl.empty());
  const ServingResult aiperf = read("aiperf_0_3.json")[0];
  EXPECT_DOUBLE_EQ(*aiperf.itl.p50_seconds, 0.044);
  EXPECT_DOUBLE_EQ(*aiperf.duration_seconds, 40.0);
  EXPECT_EQ(aiperf.num_completed, 60.0);
}

TEST(Inferencex, ThroughputPerGpuBecomesThatOfTheDeployment) {
  const auto aggregate = read("inferencex_agg.json");
  ASSERT_EQ(aggregate.size(), 2U);
  EXPECT_EQ(aggregate[1].id, "/1");
  EXPECT_EQ(aggregate[1].hardware, "h200");
  EXPECT_DOUBLE_EQ(*aggregate[1].output_tokens_per_second, 40.0 * 16.0 * 8.0);
  EXPECT_DOUBLE_EQ(*aggregate[1].total_tokens_per_second, 80.0 * 16.0 * 8.0);
  EXPECT_DOUBLE_EQ(*aggregate[1].tpot.mean_seconds, 0.02);
  const ServingResult row = read("inferencex_rows.json").at(0);
  EXPECT_EQ(row.hardware, "h200");
  EXPECT_DOUBLE_EQ(*row.output_tokens_per_second, 40.0 * 4.0 * 8.0);
  EXPECT_DOUBLE_EQ(*row.ttft.p50_seconds, 0.2 * 0.98);
}

TEST(ServingResults, SurviveARoundTrip) {
  for (const char* file :
       {"sglang_0_5.jsonl", "vllm_0_15_mtp.json", "aiperf_0_3.json", "inferencex_agg.json"}) {
    SCOPED_TRACE(file);
    const auto results = read(file);
    const auto once = io::serving_results_json(results, file);
    const auto again = io::parse_serving_results(nlohmann::json::parse(once.dump()), file);
    EXPECT_EQ(io::serving_results_json(again, file), once);
  }
}

TEST(ServingResults, ZeroLatenciesAreUnknown) {
  const auto results = import_text(
      R"({"output_throughput": 10.0, "mean_tpot_ms": 0.0, "median_tpot_ms": NaN, "p99_tpot_ms": Infinity})");
  EXPECT_TRUE(results.at(0).tpot.empty());
}

TEST(ServingResults, MistakesAreNamedWithTheirPlace) {
  EXPECT_NE(refusal("").find("is empty"), std::string::npos);
  EXPECT_NE(refusal("{\"a\": 1").find("line 1: is not valid JSON"), std::string::npos);
  EXPECT_NE(refusal("{\"hello\": 1}").find("known benchmark client"), std::string::npos);
  EXPECT_NE(refusal("{\"output_throughput\": -1}").find("/output_throughput: is -1"),
            std::string::npos);
  EXPECT_NE(refusal("{\"output_throughput\": \"fast\"}").find("/output_throughput: is \"fast\""),
            std::string::npos);
  EXPECT_NE(refusal("{\"output_throughput\": 1e999}").find("no double"), std::string::npos);
  EXPECT_NE(refusal("{\"output_throughput\": 1, \"output_throughput\": 2}").find("twice"),
            std::string::npos);
  EXPECT_NE(refusal("{\"a\": \"\xff\"}").find("is not valid JSON"), std::string::npos);
  EXPECT_NE(refusal(std::string(100'000, '[')).find("nested deeper"), std::string::npos);
  EXPECT_NE(refusal("{\"completed\": 0}").find("known benchmark client"), std::string::npos);
  EXPECT_NE(refusal("{\"request_throughput\": 0}").find("neither a throughput"), std::string::npos);
  const std::string second = refusal("{\"output_throughput\": 1}\n{\"output_throughput\": []}");
  EXPECT_NE(second.find("line 2 /output_throughput"), std::string::npos) << second;
}

}  // namespace
}  // namespace fulcrum
