#include "calibrate/families/mhc.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "model/laws/mhc.h"

namespace fulcrum::calibrate {
namespace {

constexpr double kBf16Bytes = 2.0;

/// The tables time all sites of a layer together, one launch (or one set of launches) each.
struct Sites {
  MhcLaunch pre{};
  ElementwiseLaunch post{};
  double count = 1.0;
};

std::vector<Sites> sites_of(std::span<const Record> records) {
  std::vector<Sites> result;
  result.reserve(records.size());
  for (const Record& record : records) {
    const auto& row = std::get<MhcRow>(record.shape);
    Sites sites;
    sites.count = row.num_sites;
    sites.pre = {.tokens = row.num_tokens,
                 .hidden = row.hidden_size,
                 .streams = row.streams,
                 .sinkhorn_iterations = row.sinkhorn_iterations};
    sites.post = {.tokens = row.num_tokens,
                  .bytes_per_token = (2.0 * row.streams + 1.0) * row.hidden_size * kBf16Bytes};
    result.push_back(sites);
  }
  return result;
}

std::vector<ParameterInfo> pre_parameters(const SeriesKey&, const LawDevice&) {
  return {kMhcParameters.begin(), kMhcParameters.end()};
}

/// Tokens and width.
constexpr std::size_t kNumFeatures = 2;
std::vector<double> features_of(std::span<const Record> records) {
  return feature_table<kNumFeatures>(records, [](const Record& record) {
    const auto& row = std::get<MhcRow>(record.shape);
    return std::array<double, kNumFeatures>{std::log2(row.num_tokens) / 2.0,
                                            std::log2(row.hidden_size) / 2.0};
  });
}

BoundLaw with_range(BoundLaw law, std::span<const Record> records) {
  law = with_features<kNumFeatures>(std::move(law), features_of(records));
  return with_reach<1>(std::move(law), feature_table<1>(records, [](const Record& record) {
                         return std::array<double, 1>{std::get<MhcRow>(record.shape).num_tokens};
                       }));
}

BoundLaw bind_pre(const SeriesKey&, const LawDevice& device, std::span<const Record> records) {
  BoundLaw law =
      bind_law<kNumMhcParameters>(sites_of(records), [device](auto p, const Sites& sites) {
        using Real = typename decltype(p)::value_type;
        return sites.count * mhc_seconds(MhcLaw<Real>::from(p), sites.pre, device);
      });
  return with_range(std::move(law), records);
}

std::vector<ParameterInfo> post_parameters(const SeriesKey&, const LawDevice&) {
  return {kElementwiseParameters.begin(), kElementwiseParameters.end()};
}

BoundLaw bind_post(const SeriesKey&, const LawDevice& device, std::span<const Record> records) {
  BoundLaw law =
      bind_law<kNumElementwiseParameters>(sites_of(records), [device](auto p, const Sites& sites) {
        using Real = typename decltype(p)::value_type;
        return sites.count * elementwise_seconds(ElementwiseLaw<Real>::from(p), sites.post, device);
      });
  return with_range(std::move(law), records);
}

std::string shape_group(const Record& record) {
  const auto& row = std::get<MhcRow>(record.shape);
  return std::to_string(row.num_tokens) + " x " + std::to_string(row.hidden_size);
}

/// Token counts above a quarter of the largest.
std::vector<bool> frontier(std::span<const Record> records) {
  double largest = 0.0;
  for (const Record& record : records) {
    largest = std::max(largest, std::get<MhcRow>(record.shape).num_tokens);
  }
  std::vector<bool> result;
  result.reserve(records.size());
  for (const Record& record : records) {
    result.push_back(std::get<MhcRow>(record.shape).num_tokens > 0.25 * largest);
  }
  return result;
}

}  // namespace

const Family& mhc_pre_family() {
  static constexpr Family kFamily{.name = "mhc_pre",
                                  .explains =
                                      [](const SeriesKey& key) {
                                        return key.table == "mhc_module_perf" &&
                                               key.op_name == "pre";
                                      },
                                  .parameters = pre_parameters,
                                  .bind = bind_pre,
                                  .shape_group = shape_group,
                                  .frontier = frontier};
  return kFamily;
}

const Family& mhc_post_family() {
  static constexpr Family kFamily{.name = "mhc_post",
                                  .explains =
                                      [](const SeriesKey& key) {
                                        return key.table == "mhc_module_perf" &&
                                               key.op_name == "post";
                                      },
                                  .parameters = post_parameters,
                                  .bind = bind_post,
                                  .shape_group = shape_group,
                                  .frontier = frontier};
  return kFamily;
}

}  // namespace fulcrum::calibrate
