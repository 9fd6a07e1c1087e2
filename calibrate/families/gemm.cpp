#include "calibrate/families/gemm.h"

#include <algorithm>
#include <cmath>

#include "model/laws/gemm.h"
#include "model/laws/gemm_structures.h"
#include "model/laws/log_correction.h"

namespace fulcrum::calibrate {
namespace {

bool is_sm120(const SeriesKey& key) {
  return key.device.starts_with("rtx_") || key.device.starts_with("gb10");
}

NumberFormat compute_format(const std::string& dtype) {
  if (dtype == "nvfp4") return NumberFormat::kFp4;
  if (dtype.starts_with("fp8")) return NumberFormat::kFp8;
  return NumberFormat::kBf16;
}

/// Weights with their scales: NVFP4 carries an FP8 scale per 16 elements; 128x128 scales are
/// negligible.
double stored_bits(const std::string& dtype) {
  if (dtype == "nvfp4") return 4.5;
  if (dtype.starts_with("fp8")) return 8.0;
  return 16.0;
}

/// Distinct weights the collector cycles through. aiconfigurator at 095f58a5: SGLang 6
/// (collector/sglang/collect_gemm.py, outside_loop_count); TensorRT-LLM min(5, ceil(L2 / weight))
/// (collector/trtllm/collect_gemm.py). Other engines' collectors follow the SGLang one.
double weight_copies(const SeriesKey& key, double weight_bytes, double l2_bytes) {
  if (key.engine != "trtllm") return 6.0;
  return std::clamp(std::ceil(l2_bytes / weight_bytes), 1.0, 5.0);
}

std::vector<ParameterInfo> parameters(const SeriesKey& key, const LawDevice&) {
  const auto infos = gemm_parameters(*gemm_structure_of(key));
  return {infos.begin(), infos.end()};
}

BoundLaw bind(const SeriesKey& key, const LawDevice& device, std::span<const Record> records) {
  const GemmStructure* structure = gemm_structure_of(key);
  std::vector<GemmLaunch> launches;
  launches.reserve(records.size());
  for (const Record& record : records) {
    launches.push_back(gemm_launch(key, device, std::get<GemmRow>(record.shape)));
  }
  std::vector<double> features = feature_table<kNumGemmFeatures>(launches, gemm_features);
  BoundLaw bound = bind_prepared_law<kNumGemmParameters>(
      std::move(launches),
      [](auto parameters_in) {
        using Real = typename decltype(parameters_in)::value_type;
        return GemmLaw<std::remove_const_t<Real>>::from(parameters_in);
      },
      [structure, device](const auto& law, const GemmLaunch& launch) {
        return gemm_seconds(law, *structure, launch, device);
      });
  bound = with_features<kNumGemmFeatures>(std::move(bound), std::move(features));
  return with_reach<2>(std::move(bound), feature_table<2>(records, [](const Record& record) {
                         const auto& row = std::get<GemmRow>(record.shape);
                         return std::array<double, 2>{row.m, row.n * row.k};
                       }));
}

std::string shape_group(const Record& record) {
  const auto& row = std::get<GemmRow>(record.shape);
  return std::to_string(row.n) + "x" + std::to_string(row.k);
}

/// The largest m and the weights of more than a quarter of the largest.
std::vector<bool> frontier(std::span<const Record> records) {
  double largest_m = 0.0;
  double largest_weight = 0.0;
  for (const Record& record : records) {
    const auto& row = std::get<GemmRow>(record.shape);
    largest_m = std::max(largest_m, row.m);
    largest_weight = std::max(largest_weight, row.n * row.k);
  }
  std::vector<bool> result;
  result.reserve(records.size());
  for (const Record& record : records) {
    const auto& row = std::get<GemmRow>(record.shape);
    result.push_back(row.m == largest_m || row.n * row.k > 0.25 * largest_weight);
  }
  return result;
}

}  // namespace

const GemmStructure* gemm_structure_of(const SeriesKey& key) {
  if (key.table != "gemm_perf") return nullptr;
  namespace g = gemm_structure;
  const bool sm120 = is_sm120(key);
  if (key.dtype == "bfloat16" || key.dtype == "float16") {
    return sm120 ? &g::kCublasSm120 : &g::kCublasSm90;
  }
  if (key.dtype == "nvfp4") return &g::kCutlassNvfp4Sm120;
  if (key.dtype == "fp8") {
    if (key.engine == "trtllm") return sm120 ? &g::kTrtllmFp8Sm120 : &g::kTrtllmFp8Sm90;
    return sm120 ? &g::kCutlassFp8Sm120 : &g::kCutlassFp8Sm90;
  }
  if (key.dtype == "fp8_block") {
    if (sm120) return &g::kTrtllmBlockFp8Sm120;
    return key.engine == "trtllm" ? &g::kDeepGemmTrtllmSm90 : &g::kDeepGemmSm90;
  }
  return nullptr;
}

GemmLaunch gemm_launch(const SeriesKey& key, const LawDevice& device, const GemmRow& row) {
  GemmLaunch launch;
  launch.m = row.m;
  launch.n = row.n;
  launch.k = row.k;
  launch.compute = compute_format(key.dtype);
  launch.weight_bits = stored_bits(key.dtype);
  launch.activation_bits = 16.0;
  launch.output_bits = 16.0;
  const double weight_bytes = row.n * row.k * launch.weight_bits / 8.0;
  const double copies = weight_copies(key, weight_bytes, device.l2_bytes);
  const bool quantised = launch.weight_bits < 16.0;
  const double activation_bytes =
      row.m * row.k * (launch.activation_bits + (quantised ? launch.weight_bits : 0.0)) / 8.0 +
      row.m * row.n * launch.output_bits / 8.0;
  // SGLang's collector gives every copy its own input and output, TensorRT-LLM's shares the input.
  const double activation_copies = key.engine == "trtllm" ? 1.0 : copies;
  const double working_set = copies * weight_bytes + activation_copies * activation_bytes;
  launch.weight_working_set_bytes = working_set;
  launch.activation_working_set_bytes = activation_copies * activation_bytes;
  return launch;
}

const Family& gemm_family() {
  static constexpr Family kFamily{
      .name = "gemm",
      .explains = [](const SeriesKey& key) { return gemm_structure_of(key) != nullptr; },
      .parameters = parameters,
      .bind = bind,
      .shape_group = shape_group,
      .frontier = frontier};
  return kFamily;
}

}  // namespace fulcrum::calibrate
