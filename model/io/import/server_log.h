// Start-up logs of SGLang and vLLM: what the server says about itself, as changes to a scenario.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "model/io/import/byte_source.h"

namespace fulcrum::io {

struct ServerLog {
  std::string engine;  ///< "sglang" or "vllm"
  std::string engine_version;
  std::string model;  ///< path or name as given to the server
  std::string kv_dtype;
  std::string attention_backend;
  std::string moe_backend;
  std::string speculative_algorithm;
  std::optional<double> tensor_parallel;
  std::optional<double> expert_parallel;
  std::optional<double> data_parallel;
  std::optional<double> memory_fraction;
  std::optional<double> max_running_requests;
  std::optional<double> max_context_tokens;
  std::optional<double> chunked_prefill_tokens;
  std::optional<double> swa_full_tokens_ratio;
  std::optional<bool> cuda_graph;
  std::optional<double> graph_capture_max;      ///< requests in SGLang, tokens in vLLM
  std::optional<double> tokens_per_request;     ///< verified per step and request: 1 + drafts
  std::optional<double> pool_tokens;            ///< vLLM: max_concurrency x max_model_len
  std::optional<double> pool_bytes_per_token;   ///< SGLang, DeepSeek-V4
  std::optional<double> available_kv_gib;       ///< vLLM
  std::optional<double> weights_gib;            ///< vLLM, of one worker
  std::optional<double> peak_running_requests;  ///< of the decode lines, where the log goes on
  std::optional<double> accept_length;          ///< mean of the decode lines
  /// Of that mean, from the spread between the lines; unknown with a single one.
  std::optional<double> accept_length_standard_error;
  std::size_t num_decode_lines = 0;
};

/// Reads the whole log; the first statement of a value counts, except that what the scheduler
/// resolved (max_total_num_tokens=..) overrides what the arguments left open. Throws InputError
/// where no line of either engine is found.
ServerLog read_server_log(ByteSource& source);

/// One change to a scenario; `value` as JSON.
struct ScenarioChange {
  std::string pointer;
  nlohmann::json value;
};

/// What the log fixes of a scenario. Notes say what a reader must supply himself.
std::vector<ScenarioChange> scenario_changes(const ServerLog& log, std::vector<std::string>& notes);

/// {"schema": "fulcrum/scenario-patch/1", "source", "set": {POINTER: VALUE}, "facts": {..},
/// "notes"}
nlohmann::ordered_json server_log_json(const ServerLog& log, const std::string& source);

}  // namespace fulcrum::io
