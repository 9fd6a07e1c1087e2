#include "model/io/import/serving_formats.h"

#include <algorithm>
#include <array>

#include "model/io/import/record_reader.h"
#include "model/io/json_reader.h"

namespace fulcrum::io {
namespace {

using nlohmann::json;

constexpr std::array<std::string_view, 5> kFormatNames = {"sglang", "vllm", "genai-perf", "aiperf",
                                                          "inferencex"};
constexpr double kSecondsPerMillisecond = 1e-3;

// ---- sglang.bench_serving (python/sglang/bench_serving.py) and vllm bench serve
// (vllm/benchmarks/serve.py, before it benchmarks/benchmark_serving.py): two forks of one script,
// so their names differ in few places. Zero latencies mean "no sample".

/// "mean_ttft_ms" and the like; `stem` is what stands between the statistic and "_ms".
LatencySummary latency_of(const RecordReader& r, std::string_view stem, std::string_view suffix,
                          double seconds_per_unit) {
  const auto read = [&](std::initializer_list<std::string_view> statistics) {
    std::optional<double> x;
    for (const std::string_view statistic : statistics) {
      if (x) break;
      std::string pointer = "/";
      pointer.append(statistic).append("_").append(stem).append(suffix);
      x = r.positive(pointer);
    }
    if (x) *x *= seconds_per_unit;
    return x;
  };
  return {.mean_seconds = read({"mean"}),
          .std_seconds = read({"std"}),
          .p50_seconds = read({"median", "p50"}),
          .p90_seconds = read({"p90"}),
          .p95_seconds = read({"p95"}),
          .p99_seconds = read({"p99"})};
}

LatencySummary first_latency(const RecordReader& r, std::initializer_list<std::string_view> stems) {
  for (const std::string_view stem : stems) {
    const LatencySummary latency = latency_of(r, stem, "_ms", kSecondsPerMillisecond);
    if (!latency.empty()) return latency;
  }
  return {};
}

void read_server_info(const RecordReader& r, ServingResult& result) {
  result.engine_version = r.first_text({"/server_info/version"});
  result.tensor_parallel =
      r.first_positive({"/server_info/tp_size", "/server_info/server_args/tp_size"});
  result.expert_parallel =
      r.first_positive({"/server_info/ep_size", "/server_info/server_args/ep_size"});
  // speculative_num_draft_tokens counts the verified tokens, the sampled one included.
  result.num_draft_tokens = r.first_positive({"/server_info/speculative_num_steps"});
  result.speculation = r.first_text({"/server_info/speculative_algorithm"});
}

ServingResult read_script_result(const RecordReader& r, bool sglang) {
  ServingResult result;
  result.tool = sglang ? "sglang.bench_serving" : "vllm bench serve";
  result.label = r.first_text({"/tag", "/label"});
  result.model = r.first_text({"/model_id", "/model", "/server_info/model_path"});
  result.engine = r.first_text({"/backend", "/endpoint_type"});
  result.date = r.first_text({"/date"});
  result.concurrency = r.positive("/max_concurrency");
  if (!r.first_text({"/request_rate"}).starts_with("trace")) {
    result.request_rate_per_second = r.positive("/request_rate");
  }
  result.num_prompts = r.positive("/num_prompts");
  result.num_completed = r.number("/completed");
  result.num_failed = r.number("/failed");
  result.duration_seconds = r.positive("/duration");
  result.input_tokens = r.positive("/total_input_tokens");
  result.output_tokens = r.positive("/total_output_tokens");
  result.input_tokens_per_request = r.first_positive({"/random_input_len"});
  result.output_tokens_per_request = r.first_positive({"/random_output_len"});
  if (result.num_completed && *result.num_completed > 0.0) {
    const double num_completed = *result.num_completed;
    if (result.input_tokens) result.input_tokens_per_request = *result.input_tokens / num_completed;
    if (result.output_tokens) {
      result.output_tokens_per_request = *result.output_tokens / num_completed;
    }
  }
  result.output_tokens_per_second = r.positive("/output_throughput");
  result.total_tokens_per_second =
      r.first_positive({"/total_throughput", "/total_token_throughput"});
  result.requests_per_second = r.positive("/request_throughput");
  result.mean_concurrency = r.positive("/concurrency");
  result.peak_concurrency = r.positive("/max_concurrent_requests");
  result.accept_length = r.first_positive({"/accept_length", "/spec_decode_acceptance_length"});
  result.accepted_fraction_at_position = r.fractions("/spec_decode_per_position_acceptance_rates");
  const std::optional<double> num_drafts = r.positive("/spec_decode_num_drafts");
  const std::optional<double> draft_tokens = r.positive("/spec_decode_draft_tokens");
  read_server_info(r, result);
  if (num_drafts && draft_tokens) result.num_draft_tokens = *draft_tokens / *num_drafts;
  result.ttft = first_latency(r, {"ttft"});
  result.tpot = first_latency(r, {"tpot"});
  result.itl = first_latency(r, {"itl"});
  result.end_to_end = first_latency(r, {"e2e_latency", "e2el"});
  return result;
}

// ---- genai-perf (triton-inference-server/perf_analyzer) and AIPerf (ai-dynamo/aiperf): one object
// {"unit", "avg", "p50", ...} per metric. Both define inter_token_latency as (request latency -
// time to first token) / (output tokens - 1), which is TPOT; AIPerf's inter_chunk_latency is ITL.

double seconds_per(const RecordReader& r, const std::string& metric) {
  struct Unit {
    std::string_view name;
    double seconds;
  };
  constexpr std::array<Unit, 8> kUnits = {{{"ms", 1e-3},
                                           {"s", 1.0},
                                           {"sec", 1.0},
                                           {"seconds", 1.0},
                                           {"us", 1e-6},
                                           {"ns", 1e-9},
                                           {"milliseconds", 1e-3},
                                           {"nanoseconds", 1e-9}}};
  const std::string unit = r.text(metric + "/unit");
  for (const Unit& known : kUnits) {
    if (known.name == unit) return known.seconds;
  }
  r.problem(metric + "/unit", "is \"" + unit + "\"", "ms, us, ns or sec");
  return kSecondsPerMillisecond;
}

LatencySummary metric_latency(const RecordReader& r, const std::string& metric) {
  if (!r.has(metric)) return {};
  const double unit = seconds_per(r, metric);
  const auto read = [&](const char* statistic) {
    std::optional<double> x = r.positive(metric + statistic);
    if (x) *x *= unit;
    return x;
  };
  return {.mean_seconds = read("/avg"),
          .std_seconds = read("/std"),
          .p50_seconds = read("/p50"),
          .p90_seconds = read("/p90"),
          .p95_seconds = read("/p95"),
          .p99_seconds = read("/p99")};
}

ServingResult read_metric_result(const RecordReader& r, bool aiperf) {
  ServingResult result;
  result.tool = aiperf ? "aiperf" : "genai-perf";
  result.date = r.first_text({"/start_time"});
  result.model =
      r.first_text({"/input_config/endpoint/model_names/0", "/input_config/model_names/0",
                    "/input_config/model/0", "/input_config/models/items/0/name",
                    "/input_config/formatted_model_name"});
  result.engine = r.first_text({"/input_config/backend", "/input_config/endpoint/backend"});
  result.concurrency = r.first_positive(
      {"/input_config/loadgen/concurrency", "/input_config/concurrency",
       "/input_config/perf_analyzer/stimulus/concurrency", "/input_config/runtime/concurrency"});
  result.request_rate_per_second = r.first_positive(
      {"/input_config/loadgen/request_rate", "/input_config/request_rate",
       "/input_config/perf_analyzer/stimulus/request_rate", "/input_config/runtime/request_rate"});
  result.num_prompts =
      r.first_positive({"/input_config/loadgen/request_count", "/input_config/request_count"});
  result.num_completed = r.first_positive({"/request_count/avg"});
  result.num_failed = r.first_number({"/error_request_count/avg"});
  if (r.has("/benchmark_duration")) {
    result.duration_seconds = r.positive("/benchmark_duration/avg");
    if (result.duration_seconds) *result.duration_seconds *= seconds_per(r, "/benchmark_duration");
  }
  result.input_tokens = r.first_positive({"/total_input_sequence_length/avg", "/total_isl/avg"});
  result.output_tokens = r.first_positive({"/total_output_tokens/avg", "/total_osl/avg"});
  result.input_tokens_per_request = r.positive("/input_sequence_length/avg");
  result.output_tokens_per_request = r.positive("/output_sequence_length/avg");
  result.output_tokens_per_second = r.positive("/output_token_throughput/avg");
  result.total_tokens_per_second = r.positive("/total_token_throughput/avg");
  result.requests_per_second = r.positive("/request_throughput/avg");
  result.ttft = metric_latency(r, "/time_to_first_token");
  result.tpot = metric_latency(r, "/inter_token_latency");
  result.itl = metric_latency(r, "/inter_chunk_latency");
  result.end_to_end = metric_latency(r, "/request_latency");
  return result;
}

// ---- InferenceX, formerly InferenceMAX (SemiAnalysisAI/InferenceX, utils/process_result.py): the
// script's results in seconds, throughput per GPU. Rows of its database nest them in "metrics".

ServingResult read_inferencex(const RecordReader& r) {
  ServingResult result;
  result.tool = "InferenceX";
  result.model = r.text("/model");
  result.engine = r.text("/framework");
  result.engine_version = r.first_text({"/image"});
  result.hardware = r.first_text({"/hw", "/hardware"});
  result.speculation = r.first_text({"/spec_decoding", "/mtp"});
  result.date = r.first_text({"/date"});
  result.concurrency = r.positive("/conc");
  result.input_tokens_per_request = r.positive("/isl");
  result.output_tokens_per_request = r.positive("/osl");
  result.tensor_parallel = r.first_positive({"/tp", "/decode_tp"});
  result.expert_parallel = r.first_positive({"/ep", "/decode_ep"});
  const std::optional<double> decode_gpus = r.first_positive({"/num_decode_gpu", "/tp"});
  const std::optional<double> prefill_gpus = r.positive("/num_prefill_gpu");
  if (decode_gpus) result.num_gpus = *decode_gpus + prefill_gpus.value_or(0.0);
  const json* metrics = r.find("/metrics");
  const bool nested = metrics != nullptr && metrics->is_object();
  const std::string at = nested ? "/metrics/" : "/";
  const std::optional<double> output = r.positive(at + "output_tput_per_gpu");
  const std::optional<double> total = r.positive(at + "tput_per_gpu");
  if (output && decode_gpus) result.output_tokens_per_second = *output * *decode_gpus;
  if (total && result.num_gpus) result.total_tokens_per_second = *total * *result.num_gpus;
  const std::string prefix = nested ? "metrics/" : "";
  for (const auto& [stem, member] :
       {std::pair{"ttft", &ServingResult::ttft}, std::pair{"tpot", &ServingResult::tpot},
        std::pair{"itl", &ServingResult::itl}, std::pair{"e2el", &ServingResult::end_to_end}}) {
    for (const auto& [names, place] : {std::pair{"mean", &LatencySummary::mean_seconds},
                                       std::pair{"std", &LatencySummary::std_seconds},
                                       std::pair{"median", &LatencySummary::p50_seconds},
                                       std::pair{"p90", &LatencySummary::p90_seconds},
                                       std::pair{"p95", &LatencySummary::p95_seconds},
                                       std::pair{"p99", &LatencySummary::p99_seconds}}) {
      (result.*member).*place = r.positive("/" + prefix + names + "_" + stem);
    }
  }
  return result;
}

ServingResult read_result(ServingFormat format, const RecordReader& r) {
  switch (format) {
    case ServingFormat::kSglang:
      return read_script_result(r, true);
    case ServingFormat::kVllm:
      return read_script_result(r, false);
    case ServingFormat::kGenaiPerf:
      return read_metric_result(r, false);
    case ServingFormat::kAiperf:
      return read_metric_result(r, true);
    case ServingFormat::kInferencex:
      break;
  }
  return read_inferencex(r);
}

bool has_any(const json& value, std::initializer_list<const char*> keys) {
  return std::any_of(keys.begin(), keys.end(),
                     [&](const char* key) { return value.contains(key); });
}

}  // namespace

std::string_view name_of(ServingFormat format) {
  return kFormatNames[static_cast<std::size_t>(format)];
}

std::optional<ServingFormat> serving_format_named(std::string_view name) {
  for (std::size_t i = 0; i < kFormatNames.size(); ++i) {
    if (kFormatNames[i] == name) return static_cast<ServingFormat>(i);
  }
  return std::nullopt;
}

std::optional<ServingFormat> detect_serving_format(const json& value) {
  if (!value.is_object()) return std::nullopt;
  if (has_any(value, {"aiperf_version"})) return ServingFormat::kAiperf;
  if (has_any(value, {"time_to_first_token", "inter_token_latency", "request_latency"}) &&
      has_any(value, {"input_config", "request_throughput"})) {
    // AIPerf without a version: its input_config has sections, genai-perf's first one was flat.
    const json* config = value.contains("input_config") ? &value["input_config"] : nullptr;
    const bool sections = config != nullptr && has_any(*config, {"loadgen"});
    return sections ? ServingFormat::kAiperf : ServingFormat::kGenaiPerf;
  }
  const json& nested = value.contains("metrics") ? value["metrics"] : value;
  if (nested.is_object() && has_any(nested, {"tput_per_gpu"})) return ServingFormat::kInferencex;
  if (!has_any(value, {"output_throughput", "request_throughput"})) return std::nullopt;
  if (has_any(value, {"total_output_tokens_retokenized", "sharegpt_output_len", "server_info",
                      "mean_e2e_latency_ms", "input_throughput"})) {
    return ServingFormat::kSglang;
  }
  return ServingFormat::kVllm;
}

std::vector<ServingResult> import_serving_results(const std::vector<ImportedDocument>& documents,
                                                  const std::string& file,
                                                  std::optional<ServingFormat> format) {
  std::vector<InputProblem> problems;
  std::vector<ServingResult> results;
  const auto read_one = [&](const json& value, const std::string& place) {
    const auto which = format ? format : detect_serving_format(value);
    if (!value.is_object() || !which) {
      problems.push_back({file, place, "is no result of a known benchmark client",
                          "sglang, vllm, genai-perf, aiperf or inferencex"});
      return;
    }
    const std::size_t before = problems.size();
    ServingResult result = read_result(*which, RecordReader(value, file, place, problems));
    result.id = place;
    const bool says_something = result.output_tokens_per_second || result.requests_per_second ||
                                !result.tpot.empty() || !result.ttft.empty() ||
                                !result.end_to_end.empty();
    if (!says_something && problems.size() == before) {
      problems.push_back({file, place, "states neither a throughput nor a latency",
                          "a finished run of a benchmark client"});
    }
    results.push_back(std::move(result));
  };
  for (const ImportedDocument& document : documents) {
    const std::string place = documents.size() == 1 ? "" : "line " + std::to_string(document.line);
    if (document.value.is_array()) {
      std::size_t index = 0;
      for (const json& value : document.value) {
        read_one(value, place + "/" + std::to_string(index++));
      }
      if (index == 0) problems.push_back({file, place, "holds no result", ""});
    } else {
      read_one(document.value, place);
    }
  }
  constexpr std::size_t kMostProblems = 20;
  if (problems.size() > kMostProblems) problems.resize(kMostProblems);
  throw_if_any(problems);
  return results;
}

}  // namespace fulcrum::io
