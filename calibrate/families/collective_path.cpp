#include "calibrate/families/collective_path.h"

#include <algorithm>

#include "model/laws/collective_path.h"

namespace fulcrum::calibrate {
namespace {

bool explains(const SeriesKey& key) { return key.table == kCollectivesTable; }

CollectivePath path_of(const SeriesKey& key) {
  if (key.kernel_source == "peer_one_shot") return CollectivePath::kOneShot;
  if (key.kernel_source == "peer_two_shot") return CollectivePath::kTwoShot;
  return key.kernel_source.ends_with("_Tree") ? CollectivePath::kTree : CollectivePath::kRing;
}

/// Microseconds of one step over NVLink as NCCL's tuner counts them (NVIDIA/nccl 2.28,
/// src/graph/tuning.cc, hwLat); peer kernels: of the LL protocol, a store and a load.
double hop_seconds(const SeriesKey& key) {
  const bool tree = path_of(key) == CollectivePath::kTree;
  if (key.kernel_source.find("LL128") != std::string::npos) return tree ? 1.25e-6 : 1.9e-6;
  if (key.kernel_source.find("Simple") != std::string::npos) return tree ? 4.0e-6 : 3.4e-6;
  return 0.6e-6;
}

std::vector<ParameterInfo> parameters(const SeriesKey& key, const LawDevice&) {
  const auto infos = collective_path_parameters(hop_seconds(key));
  return {infos.begin(), infos.end()};
}

double bytes_of(const Record& record) {
  const auto& row = std::get<CollectiveRow>(record.shape);
  return row.message_size * row.element_bytes;
}

BoundLaw bind(const SeriesKey& key, const LawDevice& device, std::span<const Record> records) {
  std::vector<CollectiveLaunch> launches;
  launches.reserve(records.size());
  for (const Record& record : records) {
    const auto& row = std::get<CollectiveRow>(record.shape);
    launches.push_back({.kind = row.kind, .bytes = bytes_of(record), .ranks = row.num_gpus});
  }
  return bind_law<kNumCollectivePathParameters>(
      std::move(launches),
      [path = path_of(key), device](auto parameters_in, const CollectiveLaunch& launch) {
        using Real = typename decltype(parameters_in)::value_type;
        return collective_path_seconds(CollectivePathLaw<Real>::from(parameters_in), path, launch,
                                       device);
      });
}

std::string shape_group(const Record& record) {
  const auto& row = std::get<CollectiveRow>(record.shape);
  return std::to_string(row.num_gpus) + " ranks " + std::to_string(bytes_of(record)) + " B";
}

/// The largest messages: above 0.4 of the largest, as for the public tables.
std::vector<bool> frontier(std::span<const Record> records) {
  double largest = 0.0;
  for (const Record& record : records) largest = std::max(largest, bytes_of(record));
  std::vector<bool> result;
  result.reserve(records.size());
  for (const Record& record : records) result.push_back(bytes_of(record) > 0.4 * largest);
  return result;
}

}  // namespace

const Family& collective_path_family() {
  static constexpr Family kFamily{.name = "collective_path",
                                  .explains = explains,
                                  .parameters = parameters,
                                  .bind = bind,
                                  .shape_group = shape_group,
                                  .frontier = frontier};
  return kFamily;
}

std::string collective_source(const std::string& carrier, const std::string& protocol,
                              const std::string& algorithm) {
  if (carrier != "nccl") return carrier;
  if (protocol.empty()) return "";
  return carrier + "_" + protocol + (algorithm.empty() ? "" : "_" + algorithm);
}

}  // namespace fulcrum::calibrate
