// Cost law of the hyper-connection pre step: mix `streams` residual streams into one, with the
// mixing weights from a thin GEMM [tokens, streams*hidden] x [2 streams + streams^2] and Sinkhorn.
//
//   t = t0 + sqrt(stream^2 + serial^2)
//   stream  as elementwise.h, over tokens (streams + 1) hidden BF16, times the passes the kernels
//           make over it (1 fused; 9 and more where the steps are separate framework kernels)
//   serial  CUDA-core mixing that does not spread: tokens x token_seconds, less steep from
//           saturation_tokens on, where the kernel gives each SM several tokens
// The post step is an elementwise launch of (2 streams + 1) hidden BF16 a token.
// Leaves out: Sinkhorn iterations as a term of their own (the tables hold 20 throughout), the
// switches of TensorRT-LLM between three pre kernels (each is a series of its own).
#pragma once

#include <array>
#include <cmath>
#include <span>

#include "model/laws/elementwise.h"

namespace fulcrum {

inline constexpr std::size_t kNumMhcParameters = kNumElementwiseParameters + 3;

template <class Real>
struct MhcLaw {
  ElementwiseLaw<Real> stream{};
  Real traffic_passes{};  ///< over the least traffic
  Real token_seconds{};   ///< serial part, per token of `streams` x 4096 elements
  Real saturation_tokens{};

  static MhcLaw from(std::span<const Real, kNumMhcParameters> p) {
    return {ElementwiseLaw<Real>::from(p.template first<kNumElementwiseParameters>()), p[8], p[9],
            p[10]};
  }
};

inline constexpr std::array<ParameterInfo, kNumMhcParameters> kMhcParameters = [] {
  std::array<ParameterInfo, kNumMhcParameters> p{};
  for (std::size_t i = 0; i < kNumElementwiseParameters; ++i) p[i] = kElementwiseParameters[i];
  // Passes and efficiency multiply the same bytes: only one can be fitted.
  p[3].lower = p[3].upper = p[3].start = 0.9;
  p[8] = {"traffic_passes", "1", 0.8, 60.0, 2.0};
  p[9] = {"token_seconds", "s", 1e-12, 2e-6, 1e-9, Transfer::kTime};
  p[10] = {"saturation_tokens", "1", 1.0, 1e5, 200.0};
  return p;
}();

/// Seconds of one pre step; tokens >= 1.
template <class Real>
Real mhc_seconds(const MhcLaw<Real>& law, const MhcLaunch& launch, const LawDevice& device) {
  using std::sqrt;
  constexpr double kBf16Bytes = 2.0;
  constexpr double kReferenceHidden = 4096.0;  // unit of token_seconds
  const double row_bytes = (launch.streams + 1.0) * launch.hidden * kBf16Bytes;
  const double mix_rows = 2.0 * launch.streams + launch.streams * launch.streams;
  const double fixed_bytes = mix_rows * launch.streams * launch.hidden * 4.0;
  const Real stream = elementwise_detail::stream_seconds(law.stream, launch.tokens, row_bytes,
                                                         fixed_bytes, law.traffic_passes, device);
  const Real serial = launch.tokens * launch.hidden / kReferenceHidden * law.token_seconds /
                      (1.0 + launch.tokens / law.saturation_tokens);
  return law.stream.launch_floor_seconds + sqrt(stream * stream + serial * serial);
}

}  // namespace fulcrum
