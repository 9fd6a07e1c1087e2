#include "calibrate/families/indexer.h"

#include <cmath>

namespace fulcrum::calibrate {
namespace {

/// Requests, query tokens, context.
constexpr std::size_t kNumFeatures = 3;
/// Contexts far below this cost the same.
constexpr double kLeastContext = 64.0;

bool explains(const SeriesKey& key) { return key.table == "dsv4_paged_mqa_logits_module_perf"; }

std::vector<ParameterInfo> parameters(const SeriesKey&, const LawDevice&) {
  return {kSplitScanParameters.begin(), kSplitScanParameters.end()};
}

BoundLaw bind(const SeriesKey&, const LawDevice& device, std::span<const Record> records) {
  struct Row {
    ContextScanLaunch launch;
    double compress_ratio = 4.0;
  };
  std::vector<Row> rows;
  rows.reserve(records.size());
  for (const Record& record : records) {
    const auto& shape = std::get<AttentionRow>(record.shape);
    rows.push_back({indexer_launch(shape), shape.compress_ratio});
  }
  std::vector<double> features = feature_table<kNumFeatures>(rows, [](const Row& row) {
    return std::array<double, kNumFeatures>{
        std::log2(row.launch.tokens / row.launch.tokens_per_request) / 2.0,
        std::log2(row.launch.tokens_per_request) / 2.0,
        std::log2(row.launch.keys * row.compress_ratio + kLeastContext) / 2.0};
  });
  BoundLaw law = bind_law<kSplitScanParameters.size()>(
      std::move(rows),
      [device]<class Real>(std::span<const Real, kSplitScanParameters.size()> p, const Row& row) {
        return split_scan_seconds(SplitScanLaw<Real>::from(p), row.launch, row.compress_ratio,
                                  device);
      });
  law = with_features<kNumFeatures>(std::move(law), std::move(features));
  return with_reach<2>(
      std::move(law), feature_table<2>(records, [](const Record& record) {
        const auto& row = std::get<AttentionRow>(record.shape);
        return std::array<double, 2>{row.context_tokens, row.batch_size * row.query_tokens};
      }));
}

std::string shape_group(const Record& record) {
  const auto& row = std::get<AttentionRow>(record.shape);
  return std::to_string(static_cast<long>(row.batch_size)) + "/" +
         std::to_string(static_cast<long>(row.query_tokens));
}

/// Contexts of 256 K and more, 4096 query tokens and more.
std::vector<bool> frontier(std::span<const Record> records) {
  std::vector<bool> outside;
  outside.reserve(records.size());
  for (const Record& record : records) {
    const auto& row = std::get<AttentionRow>(record.shape);
    outside.push_back(row.context_tokens >= 262144.0 ||
                      row.batch_size * row.query_tokens >= 4096.0);
  }
  return outside;
}

}  // namespace

ContextScanLaunch indexer_launch(const AttentionRow& row) {
  const double keys = (row.context_tokens + row.query_tokens) / row.compress_ratio;
  return {.tokens = row.batch_size * row.query_tokens,
          .tokens_per_request = row.query_tokens,
          .keys = keys,
          .padded_keys = keys};
}

const Family& indexer_family() {
  static const Family kFamily{.name = "indexer_logits",
                              .explains = explains,
                              .parameters = parameters,
                              .bind = bind,
                              .shape_group = shape_group,
                              .frontier = frontier};
  return kFamily;
}

}  // namespace fulcrum::calibrate
