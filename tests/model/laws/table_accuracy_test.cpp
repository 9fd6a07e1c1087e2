// Held-out errors of the GEMM, hyper-connection and collective laws on the public tables, with a
// bound per series that fails. The tables are not part of the project: see README of tests/.
#include <gtest/gtest.h>

#include <algorithm>
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

/// Bounds are the project's bars where the law meets them; else what it reaches, rounded up, with
/// the reason. Fractions.
struct Bound {
  const char* file;
  const char* kernel_source;
  const char* dtype;
  double inside_median, inside_p90;
  double outside_median, outside_p90;
};

constexpr double kAny = 10.0;  // outside errors of series with a handful of rows there

// SGLang's H200 tables repeat themselves no better than 2-3 % median and 12-15 % p90 (the same
// kernel at m = 2..12); cuBLAS on sm_120 picks tiles the law cannot foresee, and its small times
// carry a 0.34 us timer step; TensorRT-LLM FP8 on sm_120 a 2 us one.
constexpr Bound kBounds[] = {
    {"h200_sxm__gemm__sglang__0.5.14__gemm_perf", "sglang_torch_linear", "bfloat16", .055, .16, .08,
     .25},
    {"h200_sxm__gemm__sglang__0.5.14__gemm_perf", "sglang_sgl_kernel_fp8_scaled_mm", "fp8", .08,
     .20, .10, .25},
    {"h200_sxm__gemm__sglang__0.5.14__gemm_perf", "sglang_deepgemm_gemm_nt_f8f8bf16", "fp8_block",
     .08, .20, .11, .27},
    {"h200_sxm__gemm__trtllm__1.3.0rc20__gemm_perf", "torch_flow", "bfloat16", .04, .10, .08, .25},
    {"h200_sxm__gemm__trtllm__1.3.0rc20__gemm_perf", "torch_flow", "fp8", .03, .10, .08, .25},
    {"h200_sxm__gemm__trtllm__1.3.0rc20__gemm_perf", "torch_flow", "fp8_block", .04, .10, .08, .25},
    {"rtx_pro_6000_server__gemm__sglang__0.5.14__gemm_perf", "sglang_torch_linear", "bfloat16", .06,
     .16, .08, .25},
    {"rtx_pro_6000_server__gemm__sglang__0.5.14__gemm_perf", "sglang_sgl_kernel_fp8_scaled_mm",
     "fp8", .03, .10, .08, .30},
    {"rtx_pro_6000_server__gemm__sglang__0.5.14__gemm_perf", "sglang_flashinfer_cutlass_nvfp4",
     "nvfp4", .03, .10, .08, .25},
    {"rtx_pro_6000_server__gemm__trtllm__1.3.0rc20__gemm_perf", "torch_flow", "bfloat16", .06, .18,
     .08, .25},
    {"rtx_pro_6000_server__gemm__trtllm__1.3.0rc20__gemm_perf", "torch_flow", "fp8", .05, .12, .08,
     .25},
    {"rtx_pro_6000_server__gemm__trtllm__1.3.0rc20__gemm_perf", "torch_flow", "nvfp4", .035, .11,
     .08, .25},
    {"rtx_pro_6000_server__gemm__trtllm__1.3.0rc20__gemm_perf", "torch_flow", "fp8_block", .05, .15,
     .08, .25},
    {"h200_sxm__comm__nccl__2.29.2__nccl_perf", "NCCL", "", .08, .35, kAny, kAny},
    {"rtx_pro_6000_server__comm__nccl__2.29.2__nccl_perf", "NCCL", "", .08, .35, kAny, kAny},
    {"rtx_pro_6000_server__comm__sglang__0.5.14__custom_allreduce_perf",
     "SGLang_CustomAllReduce_graph", "", .08, .20, kAny, kAny},
    {"h200_sxm__comm__sglang__0.5.14__custom_allreduce_perf", "SGLang_CustomAllReduce_graph", "",
     .08, .30, kAny, kAny},
    {"h200_sxm__mhc__sglang__0.5.14__mhc_module_perf", "sglang_tilelang_mhc_post", "", .06, .15,
     kAny, kAny},
    {"rtx_pro_6000_server__mhc__sglang__0.5.14__mhc_module_perf", "sglang_torch_mhc_pre", "", .06,
     .15, kAny, kAny},
};

class TableAccuracy : public testing::TestWithParam<Bound> {};

TEST_P(TableAccuracy, HeldOutShapesAreInsideTheBound) {
  const Bound& bound = GetParam();
  const std::filesystem::path path = table_folder() / (std::string(bound.file) + ".csv");
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not here";
  MeasurementTable table = io::read_table(path.string());
  const std::string hardware_name = table.device == "h200_sxm" ? "h200-sxm" : "rtx-pro-6000-server";
  const Hardware hardware = fulcrum::io::load_hardware(std::string(FULCRUM_SOURCE_DIR) +
                                                       "/data/hardware/" + hardware_name + ".json");
  const LawDevice device =
      law_device(hardware, hardware.links.empty() ? nullptr : &hardware.links.front());
  screen(table, device);
  std::vector<std::string> unexplained;
  int num_series = 0;
  for (const FitTask& task : collect_tasks(std::span(&table, 1), unexplained)) {
    if (task.key.kernel_source != bound.kernel_source || task.key.dtype != bound.dtype) continue;
    ++num_series;
    const SeriesFit fit = fit_series(*task.family, task.key, device, task.records, {});
    ASSERT_TRUE(fit.inside.has_value());
    EXPECT_LE(fit.inside->median_ape, bound.inside_median) << to_string(task.key);
    EXPECT_LE(fit.inside->p90_ape, bound.inside_p90) << to_string(task.key);
    if (fit.outside) {
      EXPECT_LE(fit.outside->median_ape, bound.outside_median) << to_string(task.key);
      EXPECT_LE(fit.outside->p90_ape, bound.outside_p90) << to_string(task.key);
    }
  }
  EXPECT_GT(num_series, 0);
}

std::string test_name(const testing::TestParamInfo<Bound>& info) {
  std::string name =
      std::string(info.param.file) + "_" + info.param.kernel_source + "_" + info.param.dtype;
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(PublicTables, TableAccuracy, testing::ValuesIn(kBounds), test_name);

}  // namespace
}  // namespace fulcrum::calibrate
