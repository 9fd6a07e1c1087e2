// The GEMM kernels that public tables and engines name: what their libraries choose from.
// Tiles with a source are the library's own; menus marked `effective` are the smallest that
// reproduced the held-out times, for libraries whose rule is not public.
#pragma once

#include <array>
#include <limits>

#include "model/laws/gemm_parameters.h"

namespace fulcrum {

namespace gemm_structure {
inline constexpr double kAnyM = std::numeric_limits<double>::infinity();

/// cuBLAS BF16 on sm_90 (nvjet): effective menu; token tiles in steps of 16; split-k freely.
inline constexpr GemmStructure kCublasSm90{
    .name = "gemm_cublas_sm90",
    .tiles = {{{64, 32}, {64, 64}, {128, 64}, {128, 128}, {128, 256}}},
    .num_tiles = 5,
    .block_k = 128,
    .row_granularity = 16,
    .max_split = 16,
    .min_split_iterations = 8,
    .overlap_order = 2,
    .limits_sm_miss = true,
    .has_residual = true};

/// cuBLAS BF16 on sm_120 (sm_80-style kernels): effective menu. m = 1 runs a GEMV. No split-k below
/// m n k = 2^21 or k = 2048: read off where the tables' time stops growing with k.
inline constexpr GemmStructure kCublasSm120{
    .name = "gemm_cublas_sm120",
    .tiles = {{{16, 64}, {32, 64}, {64, 64}, {64, 128}, {128, 128}, {128, 256}}},
    .num_tiles = 6,
    .block_k = 32,
    .max_split = 64,
    .min_split_iterations = 4,
    .split_min_work = 2097152,
    .split_min_k = 2048,
    .gemv_max_m = 1,
    .overlap_order = 4,
    .pays_overhang = true,
    .has_residual = true};

/// CUTLASS FP8 of sgl-kernel on sm_120: one tile, 128x128x128
/// (sgl-kernel/csrc/gemm/fp8_gemm_kernel.cu, sm120_fp8_dispatch_bias); per-token quantiser in
/// front.
inline constexpr GemmStructure kCutlassFp8Sm120{.name = "gemm_cutlass_fp8_sm120",
                                                .tiles = {{{128, 128}}},
                                                .num_tiles = 1,
                                                .block_k = 128,
                                                .overlap_order = 4,
                                                .quantises_input = true,
                                                .pays_overhang = true,
                                                .has_residual = true};

/// CUTLASS NVFP4 on sm_120 (flashinfer mm_fp4, TensorRT-LLM): 128x128x256; quantiser in front.
inline constexpr GemmStructure kCutlassNvfp4Sm120{.name = "gemm_cutlass_nvfp4_sm120",
                                                  .tiles = {{{128, 128}}},
                                                  .num_tiles = 1,
                                                  .block_k = 256,
                                                  .overlap_order = 4,
                                                  .quantises_input = true,
                                                  .pays_overhang = true,
                                                  .has_residual = true};

/// CUTLASS FP8 of sgl-kernel on sm_90: operands swapped up to m = 64 (16 or 64 token columns, the
/// narrow ones up to n = 1280), 64x128 to m = 128, 128x128 above. The tables step at these m and n;
/// vLLM's scaled_mm_sm90_fp8_dispatch.cuh, from which the kernel comes, switches there.
inline constexpr GemmStructure kCutlassFp8Sm90{.name = "gemm_cutlass_fp8_sm90",
                                               .tiles = {{{16, 64, 0, 16},
                                                          {16, 64, 16, 64, 0, 1280},
                                                          {64, 64, 16, 64, 1280, kAnyM},
                                                          {64, 128, 64, 128},
                                                          {128, 128, 128, kAnyM}}},
                                               .num_tiles = 5,
                                               .block_k = 128,
                                               .overlap_order = 2,
                                               .quantises_input = true,
                                               .fetches_live_rows = true,
                                               .limits_sm_fill = true,
                                               .limits_sm_miss = true,
                                               .has_residual = true};

/// TensorRT-LLM FP8 on sm_90 (cuBLASLt, autotuned): effective menu; static quantiser in front.
inline constexpr GemmStructure kTrtllmFp8Sm90{
    .name = "gemm_trtllm_fp8_sm90",
    .tiles = {{{64, 32}, {64, 64}, {64, 128}, {128, 128}, {128, 256}}},
    .num_tiles = 5,
    .block_k = 128,
    .row_granularity = 16,
    .max_split = 16,
    .min_split_iterations = 4,
    .overlap_order = 2,
    .quantises_input = true,
    .limits_sm_miss = true,
    .has_residual = true};

/// TensorRT-LLM FP8 on sm_120: CUDA-core kernel for m <= 8 (cuda_scaled_mm), cuBLASLt above
/// (effective menu).
inline constexpr GemmStructure kTrtllmFp8Sm120{
    .name = "gemm_trtllm_fp8_sm120",
    .tiles = {{{64, 32}, {64, 64}, {64, 128}, {128, 128}}},
    .num_tiles = 4,
    .block_k = 64,
    .row_granularity = 16,
    .max_split = 16,
    .min_split_iterations = 4,
    .gemv_max_m = 8,
    .overlap_order = 2,
    .quantises_input = true,
    .gemv_by_column = true,
    .has_residual = true};

/// TensorRT-LLM block-scaled FP8 on sm_120: effective menu.
inline constexpr GemmStructure kTrtllmBlockFp8Sm120{.name = "gemm_trtllm_block_fp8_sm120",
                                                    .tiles = {{{32, 64}, {64, 64}, {64, 128}}},
                                                    .num_tiles = 3,
                                                    .block_k = 128,
                                                    .overlap_order = 4,
                                                    .quantises_input = true,
                                                    .limits_sm_fill = true,
                                                    .limits_sm_miss = true,
                                                    .pays_overhang = true,
                                                    .crowds = true,
                                                    .has_residual = true};

/// DeepGEMM block-scaled FP8 on sm_90 as SGLang builds it: block_m 64 to m = 64, else 128; block_n
/// in steps of 16 to 256 (deep_gemm/jit_kernels). A full single wave of tiles 176-192 or 240-256
/// wide runs about three times slower in the tables: observed, unexplained.
inline constexpr GemmStructure kDeepGemmSm90{.name = "gemm_deepgemm_sm90",
                                             .tiles = {{{64, 256, 0, 64}, {128, 256, 64, kAnyM}}},
                                             .num_tiles = 2,
                                             .block_k = 128,
                                             .column_granularity = 16,
                                             .overlap_order = 4,
                                             .quantises_input = true,
                                             .limits_sm_miss = true,
                                             .has_overhead = true,
                                             .slow_when_wide = true,
                                             .has_residual = true};

/// DeepGEMM as TensorRT-LLM carries it: block_n in steps of 8 to 128
/// (cpp/tensorrt_llm/deep_gemm/compiler.cuh). m of 17-32 and m above 64 that is no multiple of 128
/// pay per k-iteration: observed, unexplained.
inline constexpr GemmStructure kDeepGemmTrtllmSm90{
    .name = "gemm_deepgemm_trtllm_sm90",
    .tiles = {{{64, 128, 0, 64}, {128, 128, 64, kAnyM}}},
    .num_tiles = 2,
    .block_k = 128,
    .column_granularity = 8,
    .overlap_order = 2,
    .quantises_input = true,
    .limits_sm_miss = true,
    .has_overhead = true,
    .slow_when_ragged = true,
    .has_residual = true};

/// Triton block-FP8 GEMM of SGLang and vLLM (_w8a8_block_fp8_matmul) without a tuned file: 64 rows,
/// one 128x128 weight block, group 32, 4 warps (fp8_kernel.py, the default of
/// w8a8_block_fp8_matmul). The quantiser is a launch of its own.
inline constexpr GemmStructure kTritonBlockFp8{.name = "gemm_triton_block_fp8",
                                               .tiles = {{{64, 128}}},
                                               .num_tiles = 1,
                                               .block_k = 128,
                                               .overlap_order = 4};

/// The same with tuned files: tiles of 16 rows for few tokens, narrower in n so that more SMs work
/// (the menu stands for the candidates a tuning run may pick; sglang pull 25696).
inline constexpr GemmStructure kTritonBlockFp8Tuned{
    .name = "gemm_triton_block_fp8_tuned",
    .tiles = {{{16, 32}, {16, 64}, {32, 64}, {64, 128}}},
    .num_tiles = 4,
    .block_k = 128,
    .overlap_order = 4};

}  // namespace gemm_structure

inline constexpr std::array<const GemmStructure*, 12> kGemmStructures{
    &gemm_structure::kCublasSm90,      &gemm_structure::kCublasSm120,
    &gemm_structure::kCutlassFp8Sm120, &gemm_structure::kCutlassNvfp4Sm120,
    &gemm_structure::kCutlassFp8Sm90,  &gemm_structure::kTrtllmFp8Sm90,
    &gemm_structure::kTrtllmFp8Sm120,  &gemm_structure::kTrtllmBlockFp8Sm120,
    &gemm_structure::kDeepGemmSm90,    &gemm_structure::kDeepGemmTrtllmSm90,
    &gemm_structure::kTritonBlockFp8,  &gemm_structure::kTritonBlockFp8Tuned};

}  // namespace fulcrum
