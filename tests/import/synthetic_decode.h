// A decode loop with known answers: layers of two kinds, a head, a side stream, idle gaps, in the
// form of GPU activities and of a torch-profiler trace.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fulcrum::import_test {

struct SyntheticLoop {
  int num_steps = 20;
  int num_layers = 43;
  int num_drafts = 0;  ///< passes of a small draft with the head's kernel in each
  std::int64_t kernel_ns = 10'000;
  std::int64_t gap_ns = 1'000;        ///< idle after every kernel inside the graph
  std::int64_t host_gap_ns = 50'000;  ///< idle between steps
  bool side_stream = true;            ///< the shared expert runs beside the routed ones
  bool graph = true;
  std::vector<int> prefill_before{};  ///< steps before which a prefill of other kernels runs
  int extra_kernel_every = 0;         ///< every n-th step runs one kernel more
  double clock_offset_us = 0.0;
};

struct SyntheticKernel {
  std::string name;
  std::int64_t start_ns = 0;
  std::int64_t duration_ns = 0;
  int stream = 7;
  std::uint32_t launch = 0;
  bool in_graph = false;
};

inline std::vector<SyntheticKernel> synthetic_kernels(const SyntheticLoop& loop) {
  std::vector<SyntheticKernel> kernels;
  std::int64_t now = 1'000'000;
  std::uint32_t launch = 1;
  const auto run = [&](const std::string& name, bool graph) {
    kernels.push_back({name, now, loop.kernel_ns, 7, launch, graph});
    now += loop.kernel_ns + loop.gap_ns;
    if (!graph) ++launch;
  };
  for (int step = 0; step < loop.num_steps; ++step) {
    for (const int before : loop.prefill_before) {
      if (before != step) continue;
      for (int layer = 0; layer < loop.num_layers; ++layer) {
        for (const char* name : {"flash_prefill_kernel", "prefill_gemm_128x128", "prefill_moe"}) {
          run(name, false);
        }
      }
    }
    run("vocab_parallel_embedding_kernel", loop.graph);
    for (int layer = 0; layer < loop.num_layers; ++layer) {
      run("mhc_pre_big_fuse_tilelang_kernel", loop.graph);
      run("_w8a8_triton_block_scaled_mm", loop.graph);
      run(layer % 2 == 0 ? "sparse_mla_decode_dsv4_kernel" : "fp8_paged_mqa_logits_kernel",
          loop.graph);
      run("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", loop.graph);
      if (loop.side_stream) {
        kernels.push_back({"triton_poi_fused_clamp_mul_silu_slice_0", now + loop.kernel_ns / 2,
                           loop.kernel_ns / 2, 9, launch, loop.graph});
      }
      run("marlin_moe_wna16::Marlin<long, long>", loop.graph);
      run("_w8a8_triton_block_scaled_mm", loop.graph);
      run("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", loop.graph);
    }
    if (loop.graph) ++launch;
    run("nvjet_lm_head", false);
    run("argmax_kernel", false);
    for (int draft = 0; draft < loop.num_drafts; ++draft) {
      run("_dspark_attention_kernel", false);
      run("marlin_moe_wna16::Marlin<long, long>", false);
      run("nvjet_lm_head", false);
      run("draft_argmax_kernel", false);
    }
    if (loop.extra_kernel_every > 0 && step % loop.extra_kernel_every == 0) run("extra", false);
    now += loop.host_gap_ns;
  }
  return kernels;
}

/// As Kineto writes it, with host events around, which an importer must not need.
inline std::string synthetic_trace(const SyntheticLoop& loop, int rank = 0) {
  std::string text =
      "{\"schemaVersion\": 1, \"deviceProperties\": [{\"id\": 0, \"name\": \"GPU\", "
      "\"totalGlobalMem\": 1}], \"distributedInfo\": {\"backend\": \"nccl\", \"rank\": " +
      std::to_string(rank) + ", \"world_size\": 4},\n\"traceEvents\": [\n";
  const auto us = [&](std::int64_t ns) {
    return std::to_string(static_cast<double>(ns) / 1000.0 + loop.clock_offset_us);
  };
  std::uint32_t last_launch = 0;
  for (const SyntheticKernel& k : synthetic_kernels(loop)) {
    if (k.launch != last_launch) {
      text += "{\"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": \"" +
              std::string(k.in_graph ? "cudaGraphLaunch" : "cudaLaunchKernel") +
              "\", \"pid\": 100, \"tid\": 100, \"ts\": " + us(k.start_ns - 500) +
              ", \"dur\": 5.0, \"args\": {\"correlation\": " + std::to_string(k.launch) + "}},\n";
      last_launch = k.launch;
    }
    text += "{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"" + k.name +
            "\", \"pid\": 0, \"tid\": " + std::to_string(k.stream) + ", \"ts\": " + us(k.start_ns) +
            ", \"dur\": " + std::to_string(static_cast<double>(k.duration_ns) / 1000.0) +
            ", \"args\": {\"queued\": 0, \"device\": 0, \"context\": 1, \"stream\": " +
            std::to_string(k.stream) + ", \"correlation\": " + std::to_string(k.launch) +
            ", \"grid\": [1, 1, 1], \"block\": [128, 1, 1], \"graph id\": " +
            std::string(k.in_graph ? "3" : "0") +
            ", \"graph node id\": " + std::string(k.in_graph ? "12884901888" : "0") + "}},\n";
  }
  text +=
      "{\"ph\": \"M\", \"name\": \"process_name\", \"pid\": 0, \"args\": {\"name\": "
      "\"python\"}}\n]}\n";
  return text;
}

}  // namespace fulcrum::import_test
