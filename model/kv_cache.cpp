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

}  // namespace fulcrum
