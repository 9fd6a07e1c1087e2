#include "calibrate/families/collective.h"

#include <algorithm>
#include <string>

namespace fulcrum::calibrate {
namespace {

bool explains(const SeriesKey& key) {
  return key.table == "nccl_perf" || key.table == "custom_allreduce_perf";
}

/// Workstation and server RTX cards have no NVLink; their peers talk over PCIe.
bool over_pcie(const SeriesKey& key) { return key.device.starts_with("rtx_"); }

std::vector<ParameterInfo> parameters(const SeriesKey& key, const LawDevice&) {
  const auto infos = collective_parameters(collective_structure_of(key));
  return {infos.begin(), infos.end()};
}

/// Both tables count elements: NCCL's by its collector (message_size = bytes / element size);
/// custom's shows in the ranks where the engine falls back to NCCL, whose times agree row by row
/// only when counted so.
double bytes_of(const CollectiveRow& row) { return row.message_size * row.element_bytes; }

BoundLaw bind(const SeriesKey& key, const LawDevice& device, std::span<const Record> records) {
  std::vector<CollectiveLaunch> launches;
  launches.reserve(records.size());
  for (const Record& record : records) {
    const auto& row = std::get<CollectiveRow>(record.shape);
    launches.push_back({.kind = row.kind, .bytes = bytes_of(row), .ranks = row.num_gpus});
  }
  BoundLaw bound = bind_law<kNumCollectiveParameters>(
      std::move(launches), [structure = collective_structure_of(key), device](
                               auto parameters_in, const CollectiveLaunch& launch) {
        using Real = typename decltype(parameters_in)::value_type;
        return collective_seconds(CollectiveLaw<Real>::from(parameters_in), structure, launch,
                                  device);
      });
  return with_reach<1>(
      std::move(bound), feature_table<1>(records, [](const Record& record) {
        return std::array<double, 1>{bytes_of(std::get<CollectiveRow>(record.shape))};
      }));
}

std::string shape_group(const Record& record) {
  const auto& row = std::get<CollectiveRow>(record.shape);
  return std::to_string(row.num_gpus) + " ranks " + std::to_string(bytes_of(row)) + " B";
}

/// The largest messages: above 0.4 of the largest.
std::vector<bool> frontier(std::span<const Record> records) {
  double largest = 0.0;
  for (const Record& record : records) {
    largest = std::max(largest, bytes_of(std::get<CollectiveRow>(record.shape)));
  }
  std::vector<bool> result;
  result.reserve(records.size());
  for (const Record& record : records) {
    result.push_back(bytes_of(std::get<CollectiveRow>(record.shape)) > 0.4 * largest);
  }
  return result;
}

/// Bytes decide, not what they hold.
SeriesKey pooled(const SeriesKey& key) {
  SeriesKey merged = key;
  merged.dtype.clear();
  return merged;
}

}  // namespace

CollectiveStructure collective_structure_of(const SeriesKey& key) {
  CollectiveStructure structure;
  const bool pcie = over_pcie(key);
  structure.uses_ll128 = key.table == "nccl_perf" && !pcie;  // NCCL enables LL128 on NVLink only
  if (key.table == "custom_allreduce_perf") {
    // Over PCIe both engines keep their one-shot kernel to two GPUs and call NCCL beyond.
    structure.one_shot_max_ranks = pcie ? 2.0 : 8.0;
    structure.eager = key.kernel_source.ends_with("eager");
    structure.rings_from_four = pcie;
  }
  return structure;
}

const Family& collective_family() {
  static constexpr Family kFamily{.name = "collective",
                                  .explains = explains,
                                  .parameters = parameters,
                                  .bind = bind,
                                  .shape_group = shape_group,
                                  .frontier = frontier,
                                  .pooled = pooled};
  return kFamily;
}

}  // namespace fulcrum::calibrate
