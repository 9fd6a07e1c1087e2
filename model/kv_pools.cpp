#include "model/kv_pools.h"

#include <algorithm>
#include <cmath>

namespace fulcrum {
namespace {

constexpr double kFp32Bytes = 4.0;
constexpr double kMebi = 1024.0 * 1024.0;
/// A compressor keeps a value and a gate row of FP32 for each slot.
constexpr double kRowsPerSlot = 2.0;
/// CSA pools overlap: a token is in two of them.
constexpr double kCsaOverlap = 2.0;

double round_up(double x, double step) { return std::ceil(x / step) * step; }

double csa_main_state_bytes(const ModelConfig& model) {
  return kRowsPerSlot * kCsaOverlap * model.head_dim * kFp32Bytes;
}
double csa_index_state_bytes(const ModelConfig& model) {
  return kRowsPerSlot * kCsaOverlap * model.index_dim * kFp32Bytes;
}
double hca_state_bytes(const ModelConfig& model) {
  return kRowsPerSlot * model.head_dim * kFp32Bytes;
}
double csa_ring_slots(const ModelConfig& model, bool speculative) {
  return kCsaOverlap * model.csa_ratio * (speculative ? 2.0 : 1.0);
}
double hca_ring_slots(const ModelConfig& model, bool speculative) {
  return model.hca_ratio * (speculative ? 2.0 : 1.0);
}

}  // namespace

PoolTokenBytes sglang_pool_token(const ModelConfig& model, const KvFormat& format,
                                 const SglangPoolRules& rules, bool speculative) {
  const double csa = model.count(LayerKind::kCsa);
  const double hca = model.count(LayerKind::kHca);
  const double draft =
      speculative ? static_cast<double>(model.num_layers + model.num_mtp_layers) / model.num_layers
                  : 1.0;
  const double rings_per_token = rules.window_to_full_tokens / model.window;
  PoolTokenBytes bytes;
  bytes.window =
      Bytes(draft * rules.window_to_full_tokens * format.main_row_bytes * model.num_layers);
  bytes.pooled =
      Bytes(draft * format.main_row_bytes * (csa / model.csa_ratio + hca / model.hca_ratio));
  bytes.index_keys = Bytes(draft * format.index_row_bytes * csa / model.csa_ratio);
  bytes.csa_state = Bytes(draft * rings_per_token * csa_ring_slots(model, speculative) * csa *
                          (csa_main_state_bytes(model) + csa_index_state_bytes(model)));
  if (rules.hca_state == HcaStatePlacement::kPerPoolToken) {
    bytes.hca_state = Bytes(draft * rings_per_token * hca_ring_slots(model, speculative) * hca *
                            hca_state_bytes(model));
  }
  return bytes;
}

Bytes sglang_hca_state_bytes(const ModelConfig& model, const SglangPoolRules& rules,
                             double max_running_requests, bool speculative) {
  if (rules.hca_state == HcaStatePlacement::kPerPoolToken) return Bytes(0.0);
  constexpr double kRowBlock = 128.0;
  const double ring = hca_ring_slots(model, speculative);
  const double rows = round_up((max_running_requests + 1.0) * ring + ring + 1.0, kRowBlock);
  return Bytes(rows * hca_state_bytes(model) * model.count(LayerKind::kHca));
}

double sglang_window_tokens_per_request(const ModelConfig& model, const SglangPoolRules& rules) {
  return round_up(model.window, rules.page_tokens) + rules.page_tokens;
}

ReserveBytes sglang_reserve(double chunked_prefill_tokens, double graph_requests,
                            int tensor_parallel, bool speculative, Bytes capacity) {
  constexpr double kLeastChunk = 2048.0;
  constexpr double kLargeDeviceMebi = 60.0 * 1024.0;
  constexpr double kLeastReserveMebi = 10.0 * 1024.0;
  ReserveBytes reserve;
  reserve.metadata = Bytes(512.0 * kMebi);
  reserve.activations = Bytes(std::max(chunked_prefill_tokens, kLeastChunk) * 1.5 * kMebi);
  reserve.graphs = Bytes(graph_requests * 2.0 * kMebi);
  reserve.parallel = Bytes(tensor_parallel / 8.0 * 1024.0 * kMebi);
  if (capacity > Bytes(kLargeDeviceMebi * kMebi)) {
    reserve.minimum = std::max(Bytes(0.0), Bytes(kLeastReserveMebi * kMebi) - reserve.total());
  }
  if (speculative) reserve.draft = Bytes(2048.0 * kMebi);
  return reserve;
}

namespace {

constexpr double kVllmPageAlignmentBytes = 576.0;
/// Tokens of one page of each sliding cache: window rows, and FP32 states whose page is near 32 KiB
/// (4 x 8192 B for CSA, 8 x 4096 B for HCA).
constexpr double kVllmWindowPageTokens = 64.0;
constexpr double kVllmCsaStatePageTokens = 4.0;
constexpr double kVllmHcaStatePageTokens = 8.0;

double page(double tokens, double row_bytes) {
  return round_up(tokens * row_bytes, kVllmPageAlignmentBytes);
}

double group_size(const ModelConfig& model) { return std::ceil(model.num_layers / 2.0); }

/// Pages that a sliding cache of `window` tokens needs while a batch of tokens is written.
double sliding_pages(double window, double max_batched_tokens, double page_tokens) {
  return std::ceil((window - 1.0 + max_batched_tokens) / page_tokens) + 1.0;
}

}  // namespace

Bytes vllm_block_bytes(const ModelConfig& model, const KvFormat& format) {
  const double csa = model.count(LayerKind::kCsa);
  const double hca = model.count(LayerKind::kHca);
  const double csa_rows = kVllmBlockTokens / model.csa_ratio;
  const double hca_rows = kVllmBlockTokens / model.hca_ratio;
  return Bytes(round_up(csa, group_size(model)) * page(csa_rows, format.main_row_bytes) +
               csa * page(csa_rows, format.index_row_bytes) +
               hca * page(hca_rows, format.main_row_bytes));
}

VllmAdmission vllm_admission(const ModelConfig& model, const KvFormat& format,
                             double max_batched_tokens, bool speculative) {
  const double group = group_size(model);
  const double layers = model.num_layers + (speculative ? model.num_mtp_layers : 0);
  const double csa = model.count(LayerKind::kCsa);
  const double hca = model.count(LayerKind::kHca);
  VllmAdmission bill;
  bill.window = Bytes(round_up(layers, group) *
                      sliding_pages(model.window, max_batched_tokens, kVllmWindowPageTokens) *
                      page(kVllmWindowPageTokens, format.main_row_bytes));
  const double csa_pages = sliding_pages(csa_ring_slots(model, speculative), max_batched_tokens,
                                         kVllmCsaStatePageTokens);
  const double hca_pages = sliding_pages(hca_ring_slots(model, speculative), max_batched_tokens,
                                         kVllmHcaStatePageTokens);
  const double main_page = page(kVllmWindowPageTokens, format.main_row_bytes);
  bill.states =
      Bytes(csa_pages * round_up(csa, group) *
                std::max(main_page, page(kVllmCsaStatePageTokens, csa_main_state_bytes(model))) +
            csa_pages * csa * page(kVllmCsaStatePageTokens, csa_index_state_bytes(model)) +
            hca_pages * round_up(hca, group) *
                std::max(main_page, page(kVllmHcaStatePageTokens, hca_state_bytes(model))));
  return bill;
}

}  // namespace fulcrum
