// Tuned Triton configuration files as SGLang's and vLLM's tuners write and their engines read:
// "N=1024,K=4096,device_name=...,dtype=fp8_w8a8,block_shape=[128, 128].json", token count ->
// {BLOCK_SIZE_M, BLOCK_SIZE_N, BLOCK_SIZE_K, GROUP_SIZE_M, num_warps, num_stages}.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "model/triton_config.h"

namespace fulcrum::io {

struct TunedFile {
  int n = 0;
  int k = 0;
  std::string device;
  std::map<int, TritonConfig> by_batch_size;
};

/// Name of the file an engine looks for. `label` is the device's name as CUDA gives it.
std::string tuned_file_name(int n, int k, const std::string& label);

/// Throws InputError: a name without N and K, an entry that is no configuration.
TunedFile load_tuned_file(const std::string& path);

nlohmann::ordered_json to_json(const TritonConfig& config);

}  // namespace fulcrum::io
