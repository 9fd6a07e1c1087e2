#include "model/law_table.h"

#include <array>
#include <limits>
#include <vector>

#include "model/tally.h"

namespace fulcrum {
namespace {

/// Keys of the indexer are pooled from this many tokens (model_facts section 2.1: CSA, ratio 4).
constexpr double kIndexerCompressRatio = 4.0;

double seconds_of(const FusedLaw&, const Launch&, const LawDevice&) { return 0.0; }

double seconds_of(const RooflineLaw<double>& law, const Launch& launch, const LawDevice& device) {
  const Tally t = tally(launch);
  double memory_seconds = t.dram().value() / device.dram_bandwidth_bytes_per_second;
  if (device.link_bandwidth_bytes_per_second > 0.0) {
    memory_seconds += t.message.value() / device.link_bandwidth_bytes_per_second;
  }
  return roofline_seconds(law, memory_seconds, t.flop.value() / device.peak(t.unit));
}

double seconds_of(const GemmCost& cost, const Launch& launch, const LawDevice& device) {
  return gemm_seconds(cost.law, *cost.structure, std::get<GemmLaunch>(launch), device);
}

constexpr std::array<ParameterInfo, 4> kRowLoopCostParameters{
    {kRowLoopAttentionParameters[0],
     kRowLoopAttentionParameters[1],
     kRowLoopAttentionParameters[2],
     {"token_seconds", "s", 0.0, 1e-4, 1e-6, Transfer::kTime}}};

double seconds_of(const RowLoopCost& cost, const Launch& launch, const LawDevice& device) {
  const auto& attention = std::get<AttentionLaunch>(launch);
  return row_loop_attention_seconds(cost.law, attention, device) +
         attention.tokens * cost.token_seconds;
}

double seconds_of(const SplitKAttentionLaw<double>& law, const Launch& launch,
                  const LawDevice& device) {
  return split_k_attention_seconds(law, std::get<AttentionLaunch>(launch), device);
}

double seconds_of(const DenseScanLaw<double>& law, const Launch& launch, const LawDevice& device) {
  return dense_scan_seconds(law, std::get<ContextScanLaunch>(launch), device);
}

double seconds_of(const SplitScanLaw<double>& law, const Launch& launch, const LawDevice& device) {
  return split_scan_seconds(law, std::get<ContextScanLaunch>(launch), kIndexerCompressRatio,
                            device);
}

constexpr MoeKernelTraits kGroupedTraits = grouped_moe(/*bf16=*/false);
constexpr MoeKernelTraits kGroupedBf16Traits = grouped_moe(/*bf16=*/true);

double seconds_of(const MoeCost& cost, const Launch& launch, const LawDevice& device) {
  MoeWork work;
  work.launch = std::get<MoeLaunch>(launch);
  work.routed = routed_work(work.launch);
  return moe_seconds(cost.law, *cost.traits, work, device);
}

template <const MoeKernelTraits* traits>
Law make_moe(std::span<const double> p) {
  return MoeCost{MoeLaw<double>::from(p.first<MoeLaw<double>::kNumParameters>()), traits};
}

double seconds_of(const SlotGemvLaw<double>& law, const Launch& launch, const LawDevice& device) {
  const auto& experts = std::get<MoeLaunch>(launch);
  return slot_gemv_seconds(law, experts, expected_distinct_experts(experts), device);
}

double seconds_of(const ElementwiseLaw<double>& law, const Launch& launch,
                  const LawDevice& device) {
  return elementwise_seconds(law, std::get<ElementwiseLaunch>(launch), device);
}

double seconds_of(const MhcLaw<double>& law, const Launch& launch, const LawDevice& device) {
  return mhc_seconds(law, std::get<MhcLaunch>(launch), device);
}

double seconds_of(const CollectiveCost& cost, const Launch& launch, const LawDevice& device) {
  return collective_seconds(cost.law, cost.structure, std::get<CollectiveLaunch>(launch), device);
}

double seconds_of(const TableCost& cost, const Launch& launch, const LawDevice&) {
  return op_table_seconds(*cost.table, launch);
}

double seconds_of(const CollectivePathCost& cost, const Launch& launch, const LawDevice& device) {
  return collective_path_seconds(cost.law, cost.path, std::get<CollectiveLaunch>(launch), device);
}

template <CollectivePath path>
Law make_collective_path(std::span<const double> p) {
  return CollectivePathCost{
      CollectivePathLaw<double>::from(p.first<kNumCollectivePathParameters>()), path};
}

/// NCCL over PCIe takes LL or Simple, over NVLink LL128 too; an own one-shot kernel joins them.
constexpr CollectiveStructure kNcclPcie{};
constexpr CollectiveStructure kNcclNvlink{.uses_ll128 = true};
constexpr CollectiveStructure kOneShot{.one_shot_max_ranks = 8.0};

template <const CollectiveStructure* structure>
struct CollectiveParameters {
  static constexpr auto kAll = collective_parameters(*structure);
};

template <const CollectiveStructure* structure>
Law make_collective(std::span<const double> p) {
  return CollectiveCost{CollectiveLaw<double>::from(p.first<kNumCollectiveParameters>()),
                        *structure};
}

/// NCCL_PROTO=LL: the Simple protocol is never taken.
Law make_low_latency(std::span<const double> p) {
  CollectiveCost cost{CollectiveLaw<double>::from(p.first<kNumCollectiveParameters>()), kNcclPcie};
  cost.law.simple.base_seconds = std::numeric_limits<double>::infinity();
  return cost;
}

template <class Shape>
bool accepts(const Launch& launch) {
  return std::holds_alternative<Shape>(launch);
}

/// Entry of a law that is a struct with from(span of its parameters).
template <template <class> class LawTemplate, class Shape, std::size_t N>
LawInfo entry(std::string_view name, const std::array<ParameterInfo, N>& parameters) {
  return {name, parameters,
          [](std::span<const double> p) -> Law {
            return LawTemplate<double>::from(p.template first<N>());
          },
          accepts<Shape>};
}

/// One GEMM structure's parameters and maker; the structure is a template argument so that the
/// maker stays a plain function pointer.
template <const GemmStructure* structure>
LawInfo gemm_entry() {
  static constexpr auto kParameters = gemm_parameters(*structure);
  return {structure->name, kParameters,
          [](std::span<const double> p) -> Law {
            return GemmCost{GemmLaw<double>::from(p.first<kNumGemmParameters>()), structure};
          },
          accepts<GemmLaunch>};
}

template <std::size_t... i>
void add_gemm_entries(std::vector<LawInfo>& laws, std::index_sequence<i...>) {
  (laws.push_back(gemm_entry<kGemmStructures[i]>()), ...);
}

std::vector<LawInfo> build_table() {
  std::vector<LawInfo> laws{
      {"roofline", kRooflineParameters,
       [](std::span<const double> p) -> Law { return RooflineLaw<double>::from(p.first<3>()); },
       [](const Launch&) { return true; }},
      {"row_loop_attention", kRowLoopCostParameters,
       [](std::span<const double> p) -> Law {
         return RowLoopCost{RowLoopAttentionLaw<double>::from(p.first<3>()), p[3]};
       },
       accepts<AttentionLaunch>},
      entry<SplitKAttentionLaw, AttentionLaunch>("split_k_attention", kSplitKAttentionParameters),
      entry<DenseScanLaw, ContextScanLaunch>("dense_scan", kDenseScanParameters),
      entry<SplitScanLaw, ContextScanLaunch>("split_scan", kSplitScanParameters),
      {"moe_grouped", kMoeParameters, make_moe<&kGroupedTraits>, accepts<MoeLaunch>},
      {"moe_grouped_bf16", kMoeParameters, make_moe<&kGroupedBf16Traits>, accepts<MoeLaunch>},
      entry<ElementwiseLaw, ElementwiseLaunch>("elementwise", kElementwiseParameters),
      entry<MhcLaw, MhcLaunch>("mhc", kMhcParameters),
      entry<SlotGemvLaw, MoeLaunch>("slot_gemv", kSlotGemvParameters),
      {"nccl_pcie", CollectiveParameters<&kNcclPcie>::kAll, make_collective<&kNcclPcie>,
       accepts<CollectiveLaunch>},
      {"nccl_pcie_ll", CollectiveParameters<&kNcclPcie>::kAll, make_low_latency,
       accepts<CollectiveLaunch>},
      {"nccl_nvlink", CollectiveParameters<&kNcclNvlink>::kAll, make_collective<&kNcclNvlink>,
       accepts<CollectiveLaunch>},
      {"one_shot_or_nccl", CollectiveParameters<&kOneShot>::kAll, make_collective<&kOneShot>,
       accepts<CollectiveLaunch>},
  };
  constexpr auto kPath = [](std::string_view name, Law (*make)(std::span<const double>)) {
    return LawInfo{name, kCollectivePathParameters, make, accepts<CollectiveLaunch>};
  };
  laws.push_back(kPath("collective_ring", make_collective_path<CollectivePath::kRing>));
  laws.push_back(kPath("collective_tree", make_collective_path<CollectivePath::kTree>));
  laws.push_back(kPath("collective_one_shot", make_collective_path<CollectivePath::kOneShot>));
  laws.push_back(kPath("collective_two_shot", make_collective_path<CollectivePath::kTwoShot>));
  add_gemm_entries(laws, std::make_index_sequence<kGemmStructures.size()>{});
  return laws;
}

}  // namespace

std::span<const LawInfo> law_table() {
  static const std::vector<LawInfo> kLaws = build_table();
  return kLaws;
}

const LawInfo* find_law(std::string_view name) {
  for (const LawInfo& law : law_table()) {
    if (law.name == name) return &law;
  }
  return nullptr;
}

double law_seconds(const Law& law, const Launch& launch, const LawDevice& device) {
  return std::visit([&](const auto& cost) { return seconds_of(cost, launch, device); }, law);
}

}  // namespace fulcrum
