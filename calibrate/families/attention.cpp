#include "calibrate/families/attention.h"

#include <algorithm>
#include <cmath>

namespace fulcrum::calibrate {
namespace {

/// Shapes of the two models the tables hold; from their published config.json.
struct ModelShape {
  std::string_view tag;
  double hidden, q_lora, heads, o_groups, top_k;
};
constexpr std::array<ModelShape, 2> kModels{{
    {"V4-Pro", 7168.0, 1536.0, 128.0, 16.0, 1024.0},
    {"V4-Flash", 4096.0, 1024.0, 64.0, 8.0, 512.0},
}};
constexpr double kHeadDim = 512.0;
constexpr double kOLora = 1024.0;
constexpr double kWindow = 128.0;
constexpr double kMaxContext = 1048576.0;  ///< max_position_embeddings of both
constexpr double kIndexHeads = 64.0;
constexpr double kIndexDim = 128.0;
/// FlashMLA and the fallback take at least 64 heads; TP pads the rest (model_facts section 2.3).
constexpr double kPaddedHeads = 64.0;
constexpr double kCsaRatio = 4.0;
/// Contexts far below this cost the same, window and padding included.
constexpr double kLeastContext = 64.0;

const ModelShape* model_of(std::string_view name) {
  for (const ModelShape& model : kModels) {
    if (name.find(model.tag) != std::string_view::npos) return &model;
  }
  return nullptr;
}

bool is_module_table(const SeriesKey& key) {
  return key.table == "dsv4_csa_generation_module_perf" ||
         key.table == "dsv4_hca_generation_module_perf" ||
         key.table == "dsv4_attention_module_perf";
}

bool has_fallback_kernels(const SeriesKey& key) { return key.device.starts_with("rtx_"); }

/// CSA and HCA layers run the same kernels: one set of parameters.
SeriesKey pooled(const SeriesKey& key) {
  SeriesKey both = key;
  both.table = "dsv4_attention_module_perf";
  both.op_name = "dsv4_attention_module";
  return both;
}

std::string shape_group(const Record& record) {
  const auto& row = std::get<AttentionRow>(record.shape);
  return row.model + "/" + std::to_string(static_cast<long>(row.compress_ratio)) + "/" +
         std::to_string(static_cast<long>(row.tp_size)) + "/" +
         std::to_string(static_cast<long>(row.batch_size));
}

/// TP8, contexts of 16 K and more, batches of 1024.
std::vector<bool> frontier(std::span<const Record> records) {
  std::vector<bool> outside;
  outside.reserve(records.size());
  for (const Record& record : records) {
    const auto& row = std::get<AttentionRow>(record.shape);
    outside.push_back(row.tp_size >= 8.0 || row.context_tokens >= 16384.0 ||
                      row.batch_size >= 1024.0);
  }
  return outside;
}

/// Heads, batch, context, kind of layer, model: as the residuals of the H200 tables vary.
constexpr std::size_t kNumFeatures = 5;
std::vector<double> features_of(std::span<const Record> records) {
  return feature_table<kNumFeatures>(records, [](const Record& record) {
    const auto& row = std::get<AttentionRow>(record.shape);
    const ModelShape* model = model_of(row.model);
    return std::array<double, kNumFeatures>{
        std::log2(row.num_heads) / 2.0, std::log2(row.batch_size * row.query_tokens) / 2.0,
        std::log2(row.context_tokens + kLeastContext) / 2.0,
        row.compress_ratio == kCsaRatio ? 1.0 : 0.0,
        std::log2(model != nullptr ? model->hidden : kModels.back().hidden)};
  });
}

BoundLaw with_range(BoundLaw law, std::span<const Record> records) {
  law = with_features<kNumFeatures>(std::move(law), features_of(records));
  return with_reach<3>(
      std::move(law), feature_table<3>(records, [](const Record& record) {
        const auto& row = std::get<AttentionRow>(record.shape);
        return std::array<double, 3>{row.tp_size, row.context_tokens, row.batch_size};
      }));
}

std::vector<AttentionModuleLaunch> launches_of(const SeriesKey& key,
                                               std::span<const Record> records) {
  std::vector<AttentionModuleLaunch> launches;
  launches.reserve(records.size());
  for (const Record& record : records) {
    launches.push_back(attention_module_launch(key, std::get<AttentionRow>(record.shape)));
  }
  return launches;
}

}  // namespace

AttentionModuleLaunch attention_module_launch(const SeriesKey& key, const AttentionRow& row) {
  const ModelShape* found = model_of(row.model);
  const ModelShape& model = found != nullptr ? *found : kModels.back();
  const bool csa = row.compress_ratio == kCsaRatio;
  const bool fp8 = key.dtype == "fp8_block";
  const double tokens = row.batch_size * row.query_tokens;
  const double rank_heads = model.heads / row.tp_size;

  AttentionModuleLaunch launch;
  const auto add = [&](double n, double k, double groups, bool quantised) {
    const bool is_fp8 = quantised && fp8;
    launch.projections[launch.num_projections++] = {
        .m = tokens,
        .n = n,
        .k = k,
        .groups = groups,
        .compute = is_fp8 ? NumberFormat::kFp8 : NumberFormat::kBf16,
        .weight_bits = is_fp8 ? 8.0 + 32.0 / (128.0 * 128.0) : 16.0};
  };
  add(model.q_lora + kHeadDim, model.hidden, 1.0, true);  // wqkv_a
  add(rank_heads * kHeadDim, model.q_lora, 1.0, true);    // wq_b
  add(kOLora, model.heads * kHeadDim / model.o_groups, model.o_groups / row.tp_size, true);  // wo_a
  add(model.hidden, model.o_groups * kOLora / row.tp_size, 1.0, true);                       // wo_b
  add(csa ? 4.0 * kHeadDim : 2.0 * kHeadDim, model.hidden, 1.0, false);  // compressor
  if (csa) {
    add(kIndexHeads * kIndexDim, model.q_lora, 1.0, true);  // indexer wq_b
    add(kIndexHeads, model.hidden, 1.0, false);             // indexer weights_proj
    add(4.0 * kIndexDim, model.hidden, 1.0, false);         // indexer compressor
  }

  const double context = row.context_tokens + row.query_tokens;
  const double compressed = std::floor(context / row.compress_ratio);
  launch.tokens = tokens;
  launch.context_tokens = context;
  launch.attention = {.tokens = tokens,
                      .tokens_per_request = row.query_tokens,
                      .heads = std::ceil(rank_heads / kPaddedHeads) * kPaddedHeads,
                      .head_dim = kHeadDim,
                      .window_rows = std::min(context, kWindow),
                      .selected_rows = csa ? std::min(compressed, model.top_k) : compressed,
                      .padded_window_rows = kWindow,
                      .padded_selected_rows = csa ? model.top_k : kMaxContext / row.compress_ratio};
  launch.has_indexer = csa;
  launch.top_k = model.top_k;
  launch.scan = {.tokens = tokens,
                 .tokens_per_request = row.query_tokens,
                 .keys = csa ? compressed : 0.0,
                 .padded_keys = csa ? kMaxContext / row.compress_ratio : 0.0,
                 .heads = kIndexHeads,
                 .dim = kIndexDim};
  return launch;
}

const Family& fallback_attention_family() {
  static const Family kFamily{
      .name = "attention_module_fallback",
      .explains =
          [](const SeriesKey& key) { return is_module_table(key) && has_fallback_kernels(key); },
      .parameters =
          [](const SeriesKey&, const LawDevice&) {
            return std::vector<ParameterInfo>(kFallbackModuleParameters.begin(),
                                              kFallbackModuleParameters.end());
          },
      .bind =
          [](const SeriesKey& key, const LawDevice& device, std::span<const Record> records) {
            BoundLaw law = bind_law<kFallbackModuleParameters.size()>(
                launches_of(key, records),
                [device]<class Real>(std::span<const Real, kFallbackModuleParameters.size()> p,
                                     const AttentionModuleLaunch& launch) {
                  return fallback_module_seconds(FallbackModuleLaw<Real>::from(p), launch, device)
                      .total();
                });
            return with_range(std::move(law), records);
          },
      .shape_group = shape_group,
      .frontier = frontier,
      .pooled = pooled};
  return kFamily;
}

const Family& split_k_attention_family() {
  static const Family kFamily{
      .name = "attention_module_split_k",
      .explains =
          [](const SeriesKey& key) { return is_module_table(key) && !has_fallback_kernels(key); },
      .parameters =
          [](const SeriesKey&, const LawDevice&) {
            return std::vector<ParameterInfo>(kSplitKModuleParameters.begin(),
                                              kSplitKModuleParameters.end());
          },
      .bind =
          [](const SeriesKey& key, const LawDevice& device, std::span<const Record> records) {
            BoundLaw law = bind_law<kSplitKModuleParameters.size()>(
                launches_of(key, records),
                [device]<class Real>(std::span<const Real, kSplitKModuleParameters.size()> p,
                                     const AttentionModuleLaunch& launch) {
                  return split_k_module_seconds(SplitKModuleLaw<Real>::from(p), launch, device)
                      .total();
                });
            return with_range(std::move(law), records);
          },
      .shape_group = shape_group,
      .frontier = frontier,
      .pooled = pooled};
  return kFamily;
}

}  // namespace fulcrum::calibrate
