#include "model/io/import/server_log.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "model/errors.h"
#include "model/io/import/text_lines.h"
#include "model/io/valid_text.h"

namespace fulcrum::io {
namespace {

constexpr double kLargestValue = 1e15;

/// What follows `key` up to a ',' outside brackets and quotes, or the end of the list.
std::string value_after(const std::string& line, const std::string& key) {
  const std::size_t found = line.find(key);
  if (found == std::string::npos) return {};
  std::size_t at = found + key.size();
  while (at < line.size() && line[at] == ' ') ++at;
  std::string value;
  int depth = 0;
  char quote = '\0';
  for (; at < line.size() && value.size() < 4096; ++at) {
    const char c = line[at];
    if (quote != '\0') {
      if (c == quote) quote = '\0';
    } else if (c == '\'' || c == '"') {
      quote = c;
    } else if (c == '[' || c == '(' || c == '{') {
      ++depth;
    } else if (c == ']' || c == ')' || c == '}') {
      if (--depth < 0) break;
    } else if (c == ',' && depth == 0) {
      break;
    }
    value += c;
  }
  while (!value.empty() && (value.back() == ' ' || value.back() == '.')) value.pop_back();
  if (value.size() >= 2 && (value.front() == '\'' || value.front() == '"') &&
      value.back() == value.front()) {
    value = value.substr(1, value.size() - 2);
  }
  return value == "None" || value == "null" ? std::string() : value;
}

/// The number that follows `key`, thousands separators allowed, units ignored.
std::optional<double> number_after(const std::string& line, const std::string& key) {
  const std::size_t found = line.find(key);
  if (found == std::string::npos) return std::nullopt;
  std::size_t begin = found + key.size();
  while (begin < line.size() && line[begin] == ' ') ++begin;
  std::size_t end = begin;
  while (end < line.size() && (std::isdigit(static_cast<unsigned char>(line[end])) != 0 ||
                               line[end] == '.' || line[end] == ',')) {
    ++end;
  }
  while (end > begin && (line[end - 1] == ',' || line[end - 1] == '.')) --end;
  const auto x = number_of(std::string_view(line).substr(begin, end - begin));
  return x && *x <= kLargestValue ? x : std::nullopt;
}

std::optional<bool> truth_after(const std::string& line, const std::string& key) {
  const std::string value = value_after(line, key);
  if (value == "True") return true;
  if (value == "False") return false;
  return std::nullopt;
}

/// Largest number of a list "[1, 2, 4]".
std::optional<double> largest_of(const std::string& list) {
  std::optional<double> largest;
  std::string digits;
  for (const char c : list + "]") {
    if (std::isdigit(static_cast<unsigned char>(c)) != 0) {
      digits += c;
    } else if (!digits.empty()) {
      const auto x = number_of(digits);
      if (x && *x <= kLargestValue) largest = std::max(largest.value_or(0.0), *x);
      digits.clear();
    }
  }
  return largest;
}

template <class Value>
void keep_first(std::optional<Value>& place, const std::optional<Value>& value) {
  if (!place) place = value;
}
void keep_first(std::string& place, const std::string& value) {
  if (place.empty() && value != "auto") place = value;
}

/// Running mean and sum of squared deviations (Welford).
struct AcceptLengths {
  std::size_t count = 0;
  double mean = 0.0;
  double squares = 0.0;
  void add(double x) {
    ++count;
    const double deviation = x - mean;
    mean += deviation / static_cast<double>(count);
    squares += deviation * (x - mean);
  }
};

/// server_args=ServerArgs(model_path='..', tp_size=4, ..)
void read_sglang_arguments(const std::string& line, ServerLog& log) {
  log.engine = "sglang";
  keep_first(log.model, value_after(line, "(model_path="));
  keep_first(log.tensor_parallel, number_after(line, " tp_size="));
  keep_first(log.expert_parallel, number_after(line, " ep_size="));
  keep_first(log.data_parallel, number_after(line, " dp_size="));
  keep_first(log.memory_fraction, number_after(line, "mem_fraction_static="));
  keep_first(log.max_running_requests, number_after(line, "max_running_requests="));
  keep_first(log.max_context_tokens, number_after(line, "context_length="));
  keep_first(log.chunked_prefill_tokens, number_after(line, "chunked_prefill_size="));
  keep_first(log.swa_full_tokens_ratio, number_after(line, "swa_full_tokens_ratio="));
  keep_first(log.graph_capture_max, number_after(line, "cuda_graph_max_bs="));
  keep_first(log.kv_dtype, value_after(line, "kv_cache_dtype="));
  keep_first(log.attention_backend, value_after(line, " attention_backend="));
  keep_first(log.moe_backend, value_after(line, "moe_runner_backend="));
  keep_first(log.speculative_algorithm, value_after(line, "speculative_algorithm="));
  keep_first(log.tokens_per_request, number_after(line, "speculative_num_draft_tokens="));
  if (const auto disabled = truth_after(line, "disable_cuda_graph=")) log.cuda_graph = !*disabled;
}

void read_sglang_line(const std::string& line, ServerLog& log, AcceptLengths& lengths) {
  if (line.find("server_args=ServerArgs(") != std::string::npos) read_sglang_arguments(line, log);
  if (const auto tokens = number_after(line, "max_total_num_tokens=")) {
    log.engine = "sglang";
    log.pool_tokens = tokens;
    if (const auto x = number_after(line, "max_running_requests=")) log.max_running_requests = x;
    if (const auto x = number_after(line, "context_len=")) log.max_context_tokens = x;
    if (const auto x = number_after(line, "chunked_prefill_size=")) log.chunked_prefill_tokens = x;
  }
  if (line.find("DSv4 memory calculation") != std::string::npos) {
    log.engine = "sglang";
    keep_first(log.pool_bytes_per_token, number_after(line, "bytes_per_full_token="));
  }
  keep_first(log.swa_full_tokens_ratio, number_after(line, "Setting swa_full_tokens_ratio to "));
  const std::size_t capture = line.find("Capture cuda graph bs [");
  if (capture != std::string::npos) {
    log.engine = "sglang";
    log.cuda_graph = true;
    log.graph_capture_max = largest_of(line.substr(capture));
  }
  if (line.find("KV Cache is allocated. dtype: ") != std::string::npos) {
    keep_first(log.kv_dtype, value_after(line, "KV Cache is allocated. dtype:"));
  }
  if (line.find("Decode batch") != std::string::npos) {
    if (log.engine.empty()) log.engine = "sglang";
    ++log.num_decode_lines;
    if (const auto running = number_after(line, "#running-req:")) {
      log.peak_running_requests = std::max(log.peak_running_requests.value_or(0.0), *running);
    }
    if (const auto accepted = number_after(line, "accept len:")) {
      lengths.add(*accepted);
    }
  }
}

/// non-default args: {'model_tag': '..', 'max_num_seqs': 64, ..}
void read_vllm_arguments(const std::string& line, ServerLog& log) {
  log.engine = "vllm";
  keep_first(log.model, value_after(line, "'model':"));
  keep_first(log.model, value_after(line, "'model_tag':"));
  keep_first(log.tensor_parallel, number_after(line, "'tensor_parallel_size':"));
  keep_first(log.data_parallel, number_after(line, "'data_parallel_size':"));
  keep_first(log.memory_fraction, number_after(line, "'gpu_memory_utilization':"));
  keep_first(log.max_running_requests, number_after(line, "'max_num_seqs':"));
  keep_first(log.max_context_tokens, number_after(line, "'max_model_len':"));
  keep_first(log.chunked_prefill_tokens, number_after(line, "'max_num_batched_tokens':"));
  keep_first(log.kv_dtype, value_after(line, "'kv_cache_dtype':"));
  keep_first(log.moe_backend, value_after(line, "'moe_backend':"));
  keep_first(log.speculative_algorithm, value_after(line, "'method':"));
  if (const auto drafts = number_after(line, "'num_speculative_tokens':")) {
    keep_first(log.tokens_per_request, std::optional<double>(*drafts + 1.0));
  }
  if (truth_after(line, "'enable_expert_parallel':") == true) {
    log.expert_parallel = log.tensor_parallel.value_or(1.0);
  }
  if (truth_after(line, "'enforce_eager':") == true) log.cuda_graph = false;
}

void read_vllm_line(const std::string& line, ServerLog& log, AcceptLengths& lengths) {
  if (line.find("non-default args: {") != std::string::npos) read_vllm_arguments(line, log);
  const std::size_t init = line.find("LLM engine (v");
  if (init != std::string::npos) {
    log.engine = "vllm";
    const std::size_t begin = init + 13;
    keep_first(log.engine_version, line.substr(begin, line.find(')', begin) - begin));
    keep_first(log.model, value_after(line, "config: model="));
    keep_first(log.tensor_parallel, number_after(line, "tensor_parallel_size="));
    keep_first(log.data_parallel, number_after(line, "data_parallel_size="));
    keep_first(log.max_context_tokens, number_after(line, "max_seq_len="));
    keep_first(log.kv_dtype, value_after(line, "kv_cache_dtype="));
    if (const auto eager = truth_after(line, "enforce_eager=")) log.cuda_graph = !*eager;
    const std::string sizes = value_after(line, "'cudagraph_capture_sizes':");
    if (!sizes.empty()) log.graph_capture_max = largest_of(sizes);
  }
  keep_first(log.chunked_prefill_tokens,
             number_after(line, "Chunked prefill is enabled with max_num_batched_tokens="));
  if (const auto tokens = number_after(line, "GPU KV cache size:")) {
    log.engine = "vllm";
    keep_first(log.pool_tokens, std::optional<double>(*tokens));
  }
  keep_first(log.available_kv_gib, number_after(line, "Available KV cache memory:"));
  keep_first(log.weights_gib, number_after(line, "Model loading took"));
  const std::size_t backend = line.find(" attention backend");
  const std::size_t use = line.rfind("Using ", backend);
  if (backend != std::string::npos && use != std::string::npos && backend - use < 64) {
    keep_first(log.attention_backend, line.substr(use + 6, backend - use - 6));
  }
  if (const auto length = number_after(line, "Mean acceptance length:")) {
    lengths.add(*length);
  }
  if (line.find("Avg generation throughput") != std::string::npos) {
    ++log.num_decode_lines;
    if (const auto running = number_after(line, "Running:")) {
      log.peak_running_requests = std::max(log.peak_running_requests.value_or(0.0), *running);
    }
  }
}

}  // namespace

ServerLog read_server_log(ByteSource& source) {
  ServerLog log;
  AcceptLengths lengths;
  each_line(source, [&](const std::string& line, std::size_t) {
    if (log.engine != "vllm") read_sglang_line(line, log, lengths);
    if (log.engine != "sglang") read_vllm_line(line, log, lengths);
    return true;
  });
  if (log.engine.empty()) {
    throw InputError({source.name(), "", "holds no start-up line of SGLang or vLLM",
                      "server_args=ServerArgs(..), max_total_num_tokens=.., non-default args: {..} "
                      "or GPU KV cache size: .."});
  }
  if (lengths.count > 0) log.accept_length = lengths.mean;
  if (lengths.count > 1) {
    const auto n = static_cast<double>(lengths.count);
    log.accept_length_standard_error = std::sqrt(lengths.squares / (n - 1.0) / n);
  }
  for (std::string* text : {&log.engine_version, &log.model, &log.kv_dtype, &log.attention_backend,
                            &log.moe_backend, &log.speculative_algorithm}) {
    *text = valid_utf8(*text);
  }
  return log;
}

std::vector<ScenarioChange> scenario_changes(const ServerLog& log,
                                             std::vector<std::string>& notes) {
  std::vector<ScenarioChange> changes{{"/engine/kind", log.engine}};
  const auto whole = [&](const char* pointer, const std::optional<double>& x) {
    if (x && *x >= 1.0 && *x <= kLargestValue)
      changes.push_back({pointer, static_cast<std::int64_t>(*x)});
  };
  whole("/tensor_parallel", log.tensor_parallel);
  whole("/num_gpus", log.tensor_parallel);
  whole("/expert_parallel", log.expert_parallel);
  if (log.memory_fraction && *log.memory_fraction > 0.0 && *log.memory_fraction <= 1.0) {
    changes.push_back({"/engine/memory_fraction", *log.memory_fraction});
  }
  whole("/engine/max_running_requests", log.max_running_requests);
  whole("/engine/max_context_tokens", log.max_context_tokens);
  whole("/engine/chunked_prefill_tokens", log.chunked_prefill_tokens);
  if (log.cuda_graph) changes.push_back({"/engine/cuda_graph", *log.cuda_graph});
  if (log.graph_capture_max) {
    // SGLang captures by requests, each with its verified tokens; vLLM by tokens.
    const double per_request =
        log.engine == "sglang" ? std::max(1.0, log.tokens_per_request.value_or(1.0)) : 1.0;
    whole("/engine/graph_capture_max_tokens", *log.graph_capture_max * per_request);
  }
  if (log.swa_full_tokens_ratio && *log.swa_full_tokens_ratio > 0.0 &&
      *log.swa_full_tokens_ratio <= 1.0) {
    changes.push_back({"/engine/swa_full_tokens_ratio", *log.swa_full_tokens_ratio});
  }
  if (log.data_parallel && *log.data_parallel > 1.0) {
    notes.emplace_back("data parallelism is not part of the change: state num_gpus yourself");
  }
  if (log.speculative_algorithm.empty()) return changes;
  if (log.tokens_per_request && *log.tokens_per_request > 1.0 && log.accept_length &&
      log.accept_length_standard_error && *log.accept_length >= 1.0 &&
      *log.accept_length <= *log.tokens_per_request) {
    const double drafts = *log.tokens_per_request - 1.0;
    changes.push_back(
        {"/speculation",
         {{"method", "mtp"},
          {"draft_tokens", static_cast<std::int64_t>(drafts)},
          {"accept_length", *log.accept_length},
          {"acceptance_standard_error", std::min(1.0, *log.accept_length_standard_error / drafts)},
          {"acceptance_source", "decode lines of the server's log"}}});
  } else {
    notes.emplace_back("the server speculates (" + log.speculative_algorithm +
                       ") but the log holds fewer than two accept lengths: state "
                       "speculation yourself");
  }
  return changes;
}

nlohmann::ordered_json server_log_json(const ServerLog& log, const std::string& source) {
  std::vector<std::string> notes;
  nlohmann::ordered_json set = nlohmann::ordered_json::object();
  for (const ScenarioChange& change : scenario_changes(log, notes)) {
    set[change.pointer] = change.value;
  }
  nlohmann::ordered_json facts = nlohmann::ordered_json::object();
  const auto text = [&](const char* key, const std::string& value) {
    if (!value.empty()) facts[key] = value;
  };
  const auto number = [&](const char* key, const std::optional<double>& value) {
    if (value) facts[key] = *value;
  };
  text("engine_version", log.engine_version);
  text("model", log.model);
  text("kv_dtype", log.kv_dtype);
  text("attention_backend", log.attention_backend);
  text("moe_backend", log.moe_backend);
  text("speculative_algorithm", log.speculative_algorithm);
  number("tokens_per_request", log.tokens_per_request);
  number("pool_tokens", log.pool_tokens);
  number("pool_bytes_per_token", log.pool_bytes_per_token);
  number("available_kv_gib", log.available_kv_gib);
  number("weights_gib", log.weights_gib);
  number("peak_running_requests", log.peak_running_requests);
  number("accept_length", log.accept_length);
  return {{"schema", "fulcrum/scenario-patch/1"},
          {"source", valid_utf8(source)},
          {"set", std::move(set)},
          {"facts", std::move(facts)},
          {"notes", notes}};
}

}  // namespace fulcrum::io
