#include "model/kv_cache.h"

namespace fulcrum {
namespace {

constexpr double kFp32Bytes = 4.0;
/// A compressor keeps a value and a gate row of FP32 for each ring slot.
constexpr double kStateRowsPerSlot = 2.0;

}  // namespace

Bytes kv_bytes_per_token(const ModelConfig& model, LayerKind kind, const KvFormat& format) {
  switch (kind) {
    case LayerKind::kSwa:
      return Bytes(0.0);
    case LayerKind::kCsa:
      return Bytes((format.main_row_bytes + format.index_row_bytes) / model.csa_ratio);
    case LayerKind::kHca:
      return Bytes(format.main_row_bytes / model.hca_ratio);
  }
  return Bytes(0.0);
}

Bytes kv_bytes_per_token(const ModelConfig& model, const KvFormat& format) {
  Bytes sum;
  for (LayerKind kind : {LayerKind::kSwa, LayerKind::kCsa, LayerKind::kHca}) {
    sum += static_cast<double>(model.count(kind)) * kv_bytes_per_token(model, kind, format);
  }
  return sum;
}

RequestStateBytes request_state_bytes(const ModelConfig& model, const KvFormat& format,
                                      bool speculative) {
  const double rings = speculative ? 2.0 : 1.0;
  const double csa = model.count(LayerKind::kCsa);
  const double hca = model.count(LayerKind::kHca);
  const double csa_slots = 2.0 * model.csa_ratio * rings;  // pools overlap: two ratios of tokens
  const double hca_slots = model.hca_ratio * rings;
  const double windows = model.num_layers + (speculative ? model.num_mtp_layers : 0);
  RequestStateBytes state;
  state.window = Bytes(windows * model.window * format.main_row_bytes);
  state.csa_state = Bytes(csa * csa_slots * kStateRowsPerSlot * 2.0 * model.head_dim * kFp32Bytes);
  state.indexer_state =
      Bytes(csa * csa_slots * kStateRowsPerSlot * 2.0 * model.index_dim * kFp32Bytes);
  state.hca_state = Bytes(hca * hca_slots * kStateRowsPerSlot * model.head_dim * kFp32Bytes);
  return state;
}

Bytes sglang_pool_bytes_per_token(const ModelConfig& model, const KvFormat& format,
                                  double swa_full_tokens_ratio, bool speculative) {
  const double csa = model.count(LayerKind::kCsa);
  const double hca = model.count(LayerKind::kHca);
  // State of one CSA layer per ring slot: main and indexer compressor, value and gate, FP32.
  const double state_bytes_per_slot =
      kStateRowsPerSlot * 2.0 * (model.head_dim + model.index_dim) * kFp32Bytes;
  const double ring = 2.0 * model.csa_ratio * (speculative ? 2.0 : 1.0);
  const double slots_per_window_token = ring / model.window;
  const double backbone =
      swa_full_tokens_ratio * format.main_row_bytes * model.num_layers +
      format.main_row_bytes * csa / model.csa_ratio +
      format.main_row_bytes * hca / model.hca_ratio +
      format.index_row_bytes * csa / model.csa_ratio +
      swa_full_tokens_ratio * slots_per_window_token * state_bytes_per_slot * csa;
  const double layers_with_draft =
      speculative ? static_cast<double>(model.num_layers + model.num_mtp_layers) / model.num_layers
                  : 1.0;
  return Bytes(backbone * layers_with_draft);
}

}  // namespace fulcrum
