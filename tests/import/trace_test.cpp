// From a torch-profiler trace to the parts of a step, on loops whose parts are known.
#include <gtest/gtest.h>

#include "calibrate/io/import/chrome_trace.h"
#include "calibrate/io/load_trace_rules.h"
#include "calibrate/trace/profile.h"
#include "model/errors.h"
#include "tests/import/synthetic_decode.h"

namespace fulcrum::calibrate {
namespace {

using import_test::SyntheticLoop;

KernelTrace read(const std::string& text) {
  auto source = fulcrum::io::ByteSource::from_memory(text, "trace.json");
  return io::read_chrome_trace(source);
}

StepProfile profile(const SyntheticLoop& loop) {
  const KernelTrace trace = read(import_test::synthetic_trace(loop, 1));
  return *profile_device(trace, 0, io::shipped_trace_rules());
}

double seconds_of(const StepProfile& p, const std::string& op) {
  for (const OpTotal& total : totals_by_op(p.lines)) {
    if (total.op == op) return total.exposed_seconds;
  }
  return 0.0;
}

TEST(TorchTrace, PartsAndIdleSumToTheStep) {
  for (const bool side : {false, true}) {
    const StepProfile p = profile({.side_stream = side});
    double exposed = 0.0;
    double busy = 0.0;
    for (const ProfileLine& line : p.lines) {
      exposed += line.exposed_seconds;
      busy += line.busy_seconds;
    }
    EXPECT_NEAR(exposed + p.idle_seconds, p.step_seconds, 1e-12);
    EXPECT_NEAR(exposed, p.busy_union_seconds, 1e-12);
    EXPECT_NEAR(busy, p.busy_sum_seconds, 1e-12);
  }
}

// 1 + 43 x 7 + 2 = 304 kernels of 10 us in series with 1 us after each and 50 us after the step:
// 304 x 11 us + 50 us = 3.394 ms, of which 354 us idle. Kernels of a graph have no host parent;
// the time between them must not be taken for idle time, nor the kernels for absent.
TEST(TorchTrace, IdleUnderCudaGraphsIsWhatWasPlanted) {
  const StepProfile p = profile({.side_stream = false});
  EXPECT_EQ(p.device, "rank 1, GPU 0");
  EXPECT_EQ(p.num_steps, 19U);
  EXPECT_NEAR(p.step_seconds, 3.394e-3, 1e-9);
  EXPECT_NEAR(p.busy_union_seconds, 3.040e-3, 1e-9);
  EXPECT_NEAR(p.idle_seconds, 354e-6, 1e-9);
  EXPECT_NEAR(p.idle_in_graph_seconds, 301e-6, 1e-9);  // 302 nodes, 301 gaps between them
  EXPECT_NEAR(p.graph_fraction, 302.0 / 304.0, 1e-12);
  EXPECT_NEAR(p.mapped_fraction, 1.0, 1e-12);
}

// The side stream's 5 us lie under the second half of a 10 us kernel: each gets half of them.
TEST(TorchTrace, OverlapIsSharedBetweenStreams) {
  const StepProfile p = profile({});
  EXPECT_NEAR(p.busy_sum_seconds - p.busy_union_seconds, 43 * 5e-6, 1e-9);
  EXPECT_NEAR(seconds_of(p, "shared_swiglu"), 43 * 2.5e-6, 1e-9);
  EXPECT_NEAR(seconds_of(p, "routed_experts"), 43 * 7.5e-6, 1e-9);
  EXPECT_NEAR(seconds_of(p, "fp8_gemm"), 86 * 10e-6, 1e-9);
  EXPECT_NEAR(seconds_of(p, "all_reduce"), 86 * 10e-6, 1e-9);
}

TEST(TorchTrace, PrefillDoesNotEnterTheStep) {
  const StepProfile with = profile({.num_steps = 30, .prefill_before = {4, 11}});
  const StepProfile without = profile({.num_steps = 30});
  EXPECT_EQ(with.num_other_steps, 2U);
  EXPECT_NEAR(with.step_seconds, without.step_seconds, 1e-9);
}

TEST(TorchTrace, EagerLoopsAreReadAlike) {
  const StepProfile p = profile({.graph = false});
  EXPECT_EQ(p.num_steps, 19U);
  EXPECT_EQ(p.graph_fraction, 0.0);
  EXPECT_EQ(p.idle_in_graph_seconds, 0.0);
}

TEST(TorchTrace, AbsoluteClocksDoNotMatter) {
  // Microseconds since 1970 leave a double a quarter of a microsecond.
  const StepProfile p = profile({.side_stream = false, .clock_offset_us = 1.7e15});
  EXPECT_NEAR(p.step_seconds, 3.394e-3, 2e-6);
}

TEST(TorchTrace, OlderAndBareFormsAreRead) {
  const KernelTrace old = read(
      R"([{"ph":"X","cat":"Kernel","name":"k","pid":2,"ts":1.5,"dur":2,"args":{"stream":3}},
          {"ph":"X","cat":"Memcpy","name":"Memcpy DtoD","pid":"[TP1] 0","ts":9,"dur":1,
           "args":{"device":0,"stream":3,"correlation":5}},
          {"ph":"X","cat":"cpu_op","name":"aten::mm","pid":2,"ts":1.5,"dur":2}])");
  ASSERT_EQ(old.activities().size(), 2U);
  EXPECT_EQ(old.activities()[0].start_ns, 1500);
  EXPECT_EQ(old.devices(), (std::vector<std::string>{"GPU 2", "GPU 0 of [TP1] 0"}));
}

TEST(TorchTrace, WhatCannotBeReadIsNamed) {
  const auto refusal = [](const std::string& text) {
    try {
      read(text);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const std::string good = import_test::synthetic_trace({.num_steps = 3});
  EXPECT_NE(refusal(good.substr(0, good.size() / 2)).find("cut off"), std::string::npos);
  EXPECT_NE(refusal("{\"traceEvents\": []}").find("no GPU activity"), std::string::npos);
  EXPECT_NE(refusal("[[[]]]").find("no GPU activity"), std::string::npos);
  EXPECT_NE(refusal(std::string(5000, '[')).find("too deeply"), std::string::npos);
  EXPECT_NE(refusal(R"([{"cat":"kernel","name":"k","ts":1,"dur":-5}])").find("out of range"),
            std::string::npos);
  EXPECT_NE(refusal(R"([{"cat":"kernel","name":"k","ts":1e300,"dur":5}])").find("out of range"),
            std::string::npos);
}

TEST(TraceRules, ShippedOnesCompileAndNameOps) {
  EXPECT_GE(io::shipped_trace_rules().rules.size(), 40U);
}

}  // namespace
}  // namespace fulcrum::calibrate
