#include "kernels/common/warp.cuh"
#include "kernels/router/router_launch.h"

namespace fulcrum::kernels {
namespace {

constexpr int kThreads = 128;
constexpr int kTokensPerBlock = kThreads / 32;
constexpr int kMaxPerLane = kMaxRouterExperts / 32;

__device__ __forceinline__ float score_of(float logit) {
  // softplus; above 20 it equals its argument in binary32.
  return sqrtf(logit > 20.0F ? logit : log1pf(expf(logit)));
}

// A warp per token. kPerLane = experts / 32; lane l holds experts l, l + 32, ...
template <int kPerLane>
__global__ void __launch_bounds__(kThreads) top_k_kernel(RouterProblem problem) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int token =
      static_cast<int>(blockIdx.x) * kTokensPerBlock + static_cast<int>(threadIdx.x) / 32;
  if (token >= problem.num_tokens) return;
  const float* logits = problem.logits + static_cast<std::int64_t>(token) * (32 * kPerLane);
  float score[kPerLane];
  std::uint32_t order[kPerLane];  // larger for a larger score + bias, 0 once chosen
#pragma unroll
  for (int i = 0; i < kPerLane; ++i) {
    score[i] = score_of(logits[lane + 32 * i]);
    const std::uint32_t bits = __float_as_uint(score[i] + problem.bias[lane + 32 * i]);
    order[i] = bits ^ ((bits >> 31) != 0 ? 0xffffffffU : 0x80000000U);
  }
  float chosen_score = 0.0F;  // lane r keeps the r-th choice
  int chosen = 0;
  float sum = 0.0F;
  for (int r = 0; r < problem.top_k; ++r) {
    std::uint32_t best = 0;
    float best_score = 0.0F;
    unsigned best_expert = kMaxRouterExperts;
#pragma unroll
    for (int i = 0; i < kPerLane; ++i) {
      if (order[i] > best) {
        best = order[i];
        best_score = score[i];
        best_expert = static_cast<unsigned>(lane + 32 * i);
      }
    }
    const std::uint32_t largest = __reduce_max_sync(0xffffffffU, best);
    const unsigned expert =
        __reduce_min_sync(0xffffffffU, best == largest ? best_expert : unsigned{kMaxRouterExperts});
    best_score = __shfl_sync(0xffffffffU, best_score, static_cast<int>(expert % 32));
#pragma unroll
    for (int i = 0; i < kPerLane; ++i) {
      if (expert == static_cast<unsigned>(lane + 32 * i)) order[i] = 0;
    }
    if (lane == r) {
      chosen = static_cast<int>(expert);
      chosen_score = best_score;
    }
    sum += best_score;
  }
  if (lane < problem.top_k) {
    const std::int64_t slot = static_cast<std::int64_t>(token) * problem.top_k + lane;
    problem.experts[slot] = chosen;
    problem.weights[slot] = chosen_score / sum * problem.routed_scale;
  }
}

__global__ void __launch_bounds__(kThreads) hash_kernel(RouterProblem problem) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int token =
      static_cast<int>(blockIdx.x) * kTokensPerBlock + static_cast<int>(threadIdx.x) / 32;
  if (token >= problem.num_tokens) return;
  int expert = 0;
  float score = 0.0F;
  if (lane < problem.top_k) {
    const std::int64_t row = problem.token_ids[token];
    expert = static_cast<int>(problem.expert_of_token[row * problem.top_k + lane]);
    score =
        score_of(problem.logits[static_cast<std::int64_t>(token) * problem.num_experts + expert]);
  }
  const float sum = device::warp_sum(score);
  if (lane < problem.top_k) {
    const std::int64_t slot = static_cast<std::int64_t>(token) * problem.top_k + lane;
    problem.experts[slot] = expert;
    problem.weights[slot] = score / sum * problem.routed_scale;
  }
}

}  // namespace

cudaError_t route(const RouterProblem& problem, cudaStream_t stream) {
  const bool hash = problem.bias == nullptr;
  if (problem.num_tokens <= 0 || problem.top_k <= 0 || problem.top_k > kMaxRouterTopK ||
      problem.top_k > problem.num_experts ||
      (hash && (problem.token_ids == nullptr || problem.expert_of_token == nullptr))) {
    return cudaErrorInvalidValue;
  }
  const unsigned blocks =
      static_cast<unsigned>((problem.num_tokens + kTokensPerBlock - 1) / kTokensPerBlock);
  if (hash) {
    hash_kernel<<<blocks, kThreads, 0, stream>>>(problem);
    return cudaGetLastError();
  }
  switch (problem.num_experts) {
    case 128:
      top_k_kernel<4><<<blocks, kThreads, 0, stream>>>(problem);
      break;
    case 256:
      top_k_kernel<8><<<blocks, kThreads, 0, stream>>>(problem);
      break;
    case 384:
      top_k_kernel<12><<<blocks, kThreads, 0, stream>>>(problem);
      break;
    case kMaxRouterExperts:
      top_k_kernel<kMaxPerLane><<<blocks, kThreads, 0, stream>>>(problem);
      break;
    default:
      return cudaErrorInvalidValue;
  }
  return cudaGetLastError();
}

}  // namespace fulcrum::kernels
