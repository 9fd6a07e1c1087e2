// Tuned Triton configurations as SGLang and vLLM keep them: one JSON file per weight shape.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace fulcrum::calibrate::io {

/// The tile chosen for batches of `m` rows.
struct TunedTile {
  double m = 0.0;
  double block_m = 0.0;
  double block_n = 0.0;
  double block_k = 0.0;
  std::optional<double> group_m;
  std::optional<double> num_warps;
  std::optional<double> num_stages;
};

/// One file. Block FP8 GEMM: N, K. Fused MoE: E, N.
struct TunedConfig {
  std::optional<double> n;
  std::optional<double> k;
  std::optional<double> num_experts;
  std::string device_name;  ///< as in the file's name, blanks for '_'
  std::string hardware;     ///< the hardware file it fits, "" where unknown
  std::string dtype;
  std::vector<double> block_shape;
  std::vector<TunedTile> tiles;  ///< by m
};

/// Whether a document looks like such a file: every key a number of rows (or triton_version).
bool is_tuned_config(const nlohmann::json& document);

/// The shape comes from the file's name, "N=..,K=..,device_name=..,dtype=..,block_shape=[..].json".
/// Throws InputError: no shape in the name, values that are no tile.
TunedConfig read_tuned_config(const nlohmann::json& document, const std::string& file);

/// {"schema": "fulcrum/tuned-config/1", ..}
nlohmann::ordered_json tuned_config_json(const TunedConfig& config, const std::string& source);

}  // namespace fulcrum::calibrate::io
