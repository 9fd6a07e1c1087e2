// Held-out errors of the routed-expert, attention-module and indexer laws on the public tables,
// with bounds that fail. The tables are not part of the project: see README of tests/.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "calibrate/calibration.h"
#include "calibrate/fit.h"
#include "calibrate/io/read_table.h"
#include "model/hardware.h"
#include "model/io/load_hardware.h"

namespace fulcrum::calibrate {
namespace {

std::filesystem::path table_folder() {
  if (const char* folder = std::getenv("FULCRUM_SILICON_DIR")) return folder;
  return std::filesystem::path(FULCRUM_SOURCE_DIR) / ".." / "shared" / "silicon";
}

/// Fractions. Where the project's bars (inside 3 % / 10 %, outside 8 % / 25 %) are met, the bars;
/// else what the law reaches, rounded up.
struct Bound {
  const char* kernel_source;
  const char* dtype;
  double inside_median, inside_p90, outside_median, outside_p90;
};

struct Table {
  const char* name;
  std::vector<const char*> files;
  std::vector<Bound> bounds;
};

std::vector<Table> tables() {
  const char* kCutlass = "moe_torch_flow_cutlass";
  const char* kUngated = "moe_torch_flow_nongated";
  return {
      {"Sm120Modules",
       {"rtx_pro_6000_server__sparse_attention__sglang__0.5.14__dsv4_csa_generation_module_perf",
        "rtx_pro_6000_server__sparse_attention__sglang__0.5.14__dsv4_hca_generation_module_perf"},
       {{"compressed_flashmla", "bfloat16", .03, .10, .08, .25},
        {"compressed_flashmla", "fp8_block", .03, .10, .08, .25}}},
      // FP8 at TP8: the layer's 27 MB of weights become resident, and no row that may be fitted is.
      {"Sm90Modules",
       {"h200_sxm__sparse_attention__sglang__0.5.14__dsv4_csa_generation_module_perf",
        "h200_sxm__sparse_attention__sglang__0.5.14__dsv4_hca_generation_module_perf"},
       {{"compressed_flashmla", "bfloat16", .03, .10, .08, .25},
        {"compressed_flashmla", "fp8_block", .03, .10, .08, .30}}},
      {"Sm90Indexer",
       {"h200_sxm__sparse_attention__sglang__0.5.14__dsv4_paged_mqa_logits_module_perf"},
       {{"deep_gemm.fp8_paged_mqa_logits", "fp8_block", .035, .10, .08, .25}}},
      // Launches of 20-80 us with a few CTAs: placement on the SMs and the autotuner's choice per
      // shape scatter by 10-30 % at equal work.
      {"Sm120SglangMoe",
       {"rtx_pro_6000_server__moe__sglang__0.5.14__moe_perf"},
       {{"sglang_fused_moe_triton", "bfloat16", .055, .23, .08, .29},
        {"sglang_fused_moe_triton", "fp8_block", .045, .16, .08, .26},
        {"sglang_flashinfer_cutlass_moe", "bfloat16", .03, .12, .08, .25},
        {"sglang_flashinfer_cutlass_moe", "nvfp4", .05, .17, .10, .25},
        {"sglang_marlin_moe", "int4_wo", .07, .28, .09, .32}}},
      {"Sm120TrtllmMoe",
       {"rtx_pro_6000_server__moe__trtllm__1.3.0rc20__moe_perf"},
       {{kCutlass, "bfloat16", .045, .17, .08, .30},
        {kCutlass, "fp8", .06, .36, .12, .32},
        {kCutlass, "nvfp4", .05, .14, .08, .25},
        {kCutlass, "w4a8_mxfp4_mxfp8", .045, .13, .08, .25},
        {kUngated, "nvfp4", .03, .10, .08, .25},
        {"moe_torch_flow_triton_fp8_block", "fp8_block", .05, .15, .08, .25}}},
      // One shape in eight of the BF16 and FP8 tables was timed with a tactic 2-7 times slower than
      // its neighbours' (p90); SGLang ships tuned configurations for some shapes on this GPU.
      {"Sm90SglangMoe",
       {"h200_sxm__moe__sglang__0.5.14__moe_perf"},
       {{"sglang_fused_moe_triton", "bfloat16", .08, .29, .11, .38},
        {"sglang_fused_moe_triton", "fp8_block", .045, .14, .08, .27},
        {"sglang_fused_moe_triton", "w4a16_mxfp4", .065, .16, .12, .36}}},
      {"Sm90TrtllmMoe",
       {"h200_sxm__moe__trtllm__1.3.0rc20__moe_perf"},
       {{kCutlass, "bfloat16", .085, .90, .11, .65},
        {kCutlass, "fp8", .07, .70, .11, .60},
        {kCutlass, "fp8_block", .04, .10, .09, .25},
        {kUngated, "fp8", .03, .10, .09, .25}}},
  };
}

class ExpertAttentionAccuracy : public testing::TestWithParam<Table> {};

TEST_P(ExpertAttentionAccuracy, HeldOutShapesAreInsideTheBound) {
  std::vector<MeasurementTable> read;
  LawDevice device;
  for (const char* file : GetParam().files) {
    const std::filesystem::path path = table_folder() / (std::string(file) + ".csv");
    if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not here";
    read.push_back(io::read_table(path.string()));
    const bool h200 = read.back().device == "h200_sxm";
    device = law_device(
        fulcrum::io::load_hardware(std::string(FULCRUM_SOURCE_DIR) + "/data/hardware/" +
                                   (h200 ? "h200-sxm" : "rtx-pro-6000-server") + ".json"),
        nullptr);
    screen(read.back(), device);
  }
  std::vector<std::string> unexplained;
  const auto tasks = collect_tasks(read, unexplained);
  for (const Bound& bound : GetParam().bounds) {
    int num_series = 0;
    for (const FitTask& task : tasks) {
      if (task.key.kernel_source != bound.kernel_source || task.key.dtype != bound.dtype) continue;
      ++num_series;
      const SeriesFit fit = fit_series(*task.family, task.key, device, task.records, {});
      ASSERT_TRUE(fit.inside && fit.outside);
      EXPECT_LE(fit.inside->median_ape, bound.inside_median) << to_string(task.key);
      EXPECT_LE(fit.inside->p90_ape, bound.inside_p90) << to_string(task.key);
      EXPECT_LE(fit.outside->median_ape, bound.outside_median) << to_string(task.key);
      EXPECT_LE(fit.outside->p90_ape, bound.outside_p90) << to_string(task.key);
    }
    EXPECT_EQ(num_series, 1) << bound.kernel_source << ' ' << bound.dtype;
  }
}

std::string test_name(const testing::TestParamInfo<Table>& parameter) {
  return parameter.param.name;
}

INSTANTIATE_TEST_SUITE_P(PublicTables, ExpertAttentionAccuracy, testing::ValuesIn(tables()),
                         test_name);

}  // namespace
}  // namespace fulcrum::calibrate
