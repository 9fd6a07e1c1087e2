// Request traces as people have them.
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

#include "model/errors.h"
#include "model/io/load_trace.h"

namespace fulcrum {
namespace {

class Trace : public testing::Test {
 protected:
  std::vector<TraceRequest> load(const std::string& text) {
    const std::string path = testing::TempDir() + "fulcrum_trace_test.jsonl";
    std::ofstream(path) << text;
    const auto trace = io::load_trace(path);
    std::remove(path.c_str());
    return trace;
  }
};

TEST_F(Trace, MooncakeLinesHaveMilliseconds) {
  const auto trace = load(
      "{\"timestamp\": 1500, \"input_length\": 10, \"output_length\": 3, \"hash_ids\": [1]}\n"
      "{\"timestamp\": 1000, \"input_length\": 20, \"output_length\": 4, \"hash_ids\": []}\n\n");
  ASSERT_EQ(trace.size(), 2u);
  EXPECT_DOUBLE_EQ(trace[0].arrival_seconds, 0.0);
  EXPECT_DOUBLE_EQ(trace[0].input_tokens, 20.0);
  EXPECT_DOUBLE_EQ(trace[1].arrival_seconds, 0.5);
}

TEST_F(Trace, BenchmarkLinesHaveSeconds) {
  const auto trace =
      load("{\"arrival_time\": 2.0, \"prompt_len\": 7, \"output_len\": 9, \"prompt\": \"x\"}\n");
  ASSERT_EQ(trace.size(), 1u);
  EXPECT_DOUBLE_EQ(trace[0].output_tokens, 9.0);
}

TEST_F(Trace, BadLinesAreNamed) {
  for (const char* text : {"", "[1]\n", "{\"timestamp\": 1}\n",
                           "{\"timestamp\": 1, \"input_length\": 0, \"output_length\": 1}\n"}) {
    EXPECT_THROW(load(text), InputError) << text;
  }
}

}  // namespace
}  // namespace fulcrum
