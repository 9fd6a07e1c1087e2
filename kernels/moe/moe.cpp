#include "kernels/moe/moe.h"

#include "kernels/moe/moe_parts.h"

namespace fulcrum::kernels {
namespace {

std::size_t slots_of(const MoeShape& shape) {
  return static_cast<std::size_t>(shape.tokens) * static_cast<std::size_t>(shape.top_k);
}

// Hands out 256-byte aligned pieces; with a null base it only counts.
struct Carver {
  std::uintptr_t base;
  std::size_t used = 0;
  template <typename T>
  T* take(std::size_t count) {
    T* piece = reinterpret_cast<T*>(base + used);
    used += (count * sizeof(T) + 255) / 256 * 256;
    return piece;
  }
};

MoeWorkspace carve(const MoeShape& shape, Carver& carver) {
  const auto experts = static_cast<std::size_t>(shape.experts);
  const auto hidden = static_cast<std::size_t>(shape.hidden);
  MoeWorkspace w;
  w.runs = carver.take<MoeRun>(experts);
  w.num_runs = carver.take<std::int32_t>(1);
  w.sorted_slot = carver.take<std::int32_t>(slots_of(shape));
  w.sorted_token = carver.take<std::int32_t>(slots_of(shape));
  w.permuted_x = carver.take<std::uint16_t>(static_cast<std::size_t>(shape.tokens) * hidden);
  w.activation =
      carver.take<std::uint16_t>(slots_of(shape) * static_cast<std::size_t>(shape.width));
  w.slot_out = carver.take<float>(slots_of(shape) * hidden);
  return w;
}

// Activations in and out and the routing; intermediates live in L2 and are not claimed.
double token_bytes(const MoeShape& s) { return 1.0 * s.tokens * (4.0 * s.hidden + 8.0 * s.top_k); }
double slot_flop(const MoeShape& s) { return 2.0 * 3.0 * s.hidden * s.width; }

}  // namespace

bool moe_shape_ok(const MoeShape& s) {
  return s.tokens >= 1 && s.hidden >= 1024 && s.hidden % 1024 == 0 && s.width >= 256 &&
         s.width % 256 == 0 && s.experts >= 1 && s.experts <= 1024 && s.top_k >= 1 &&
         s.top_k <= 16 && s.top_k <= s.experts;
}

MoeWorkspace moe_workspace(const MoeShape& shape, void* memory) {
  Carver carver{reinterpret_cast<std::uintptr_t>(memory)};
  return carve(shape, carver);
}

std::size_t moe_workspace_bytes(const MoeShape& shape) {
  Carver carver{0};
  carve(shape, carver);
  return carver.used;
}

double moe_expert_bytes(const MoeShape& shape, Fp4Format format) {
  const double values = 3.0 * shape.hidden * shape.width;
  return values * (0.5 + 1.0 / fp4_group(format)) + (format == Fp4Format::kNvfp4 ? 8.0 : 0.0);
}

Claim moe_grouped_claim(const MoeShape& shape, Fp4Format format, double distinct_experts) {
  return {.bytes = distinct_experts * moe_expert_bytes(shape, format) + token_bytes(shape),
          .flop = static_cast<double>(slots_of(shape)) * slot_flop(shape)};
}

Claim moe_per_slot_claim(const MoeShape& shape, Fp4Format format) {
  const auto slots = static_cast<double>(slots_of(shape));
  return {.bytes = slots * moe_expert_bytes(shape, format) + token_bytes(shape),
          .flop = slots * slot_flop(shape)};
}

cudaError_t launch_moe_grouped(const MoeArgs& args, cudaStream_t stream) {
  if (!moe_shape_ok(args.shape)) return cudaErrorInvalidValue;
  const MoeWorkspace w = moe_workspace(args.shape, args.workspace);
  cudaError_t code = launch_moe_prepare(args, w, stream);
  if (code == cudaSuccess) {
    code = args.weights.format == Fp4Format::kMxfp4 ? launch_moe_grouped_mxfp4(args, w, stream)
                                                    : launch_moe_grouped_nvfp4(args, w, stream);
  }
  return code == cudaSuccess ? launch_moe_combine(args, w, stream) : code;
}

}  // namespace fulcrum::kernels
