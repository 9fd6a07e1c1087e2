// What a benchmark client measured of a server, whichever client it was. Every value is optional:
// clients state different things, and what was not stated stays unknown.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace fulcrum {

/// Summary of one latency over the requests (ttft, tpot, end to end) or tokens (itl) of a run.
struct LatencySummary {
  std::optional<double> mean_seconds;
  std::optional<double> std_seconds;
  std::optional<double> p50_seconds;
  std::optional<double> p90_seconds;
  std::optional<double> p95_seconds;
  std::optional<double> p99_seconds;
  bool empty() const {
    return !mean_seconds && !std_seconds && !p50_seconds && !p90_seconds && !p95_seconds &&
           !p99_seconds;
  }
};

/// One run of a benchmark client at one load.
struct ServingResult {
  std::string id;      ///< place in the imported file: "line 3", "/0", or "" for the whole file
  std::string tool;    ///< client that wrote it, e.g. "sglang.bench_serving"
  std::string label;   ///< tag the user gave the run
  std::string model;   ///< as the client names it
  std::string engine;  ///< "sglang", "vllm", ...; the client's backend where it names one
  std::string engine_version;
  std::string hardware;  ///< as written
  std::string date;
  std::string speculation;  ///< as written: "none", "mtp", ...

  std::optional<double> concurrency;  ///< requests the client keeps in flight at most
  /// Open-loop arrival rate; unset where requests wait only for `concurrency`.
  std::optional<double> request_rate_per_second;
  std::optional<double> num_prompts;  ///< asked for
  std::optional<double> num_completed;
  std::optional<double> num_failed;
  std::optional<double> duration_seconds;
  std::optional<double> input_tokens;   ///< of all completed requests
  std::optional<double> output_tokens;  ///< of all completed requests
  std::optional<double> input_tokens_per_request;
  std::optional<double> output_tokens_per_request;
  std::optional<double> output_tokens_per_second;
  std::optional<double> total_tokens_per_second;  ///< input and output
  std::optional<double> requests_per_second;
  std::optional<double> mean_concurrency;  ///< sum of latencies over the duration (Little's law)
  std::optional<double> peak_concurrency;
  std::optional<double> num_gpus;
  std::optional<double> tensor_parallel;
  std::optional<double> expert_parallel;
  std::optional<double> accept_length;  ///< tokens per verification step, the sampled one included
  std::optional<double> num_draft_tokens;  ///< K: drafts per verification step
  /// Share of steps in which drafts 1..i were all accepted (vLLM's per-position rates).
  std::vector<double> accepted_fraction_at_position;

  LatencySummary ttft;        ///< request sent to first token
  LatencySummary tpot;        ///< (end to end - ttft) / (output tokens - 1), per request
  LatencySummary itl;         ///< between arrivals of consecutive chunks
  LatencySummary end_to_end;  ///< request sent to last token
};

/// Name in files and member, for code that treats all numbers alike.
struct ServingNumber {
  const char* key;
  std::optional<double> ServingResult::*member;
};
inline constexpr ServingNumber kServingNumbers[] = {
    {"concurrency", &ServingResult::concurrency},
    {"request_rate_per_second", &ServingResult::request_rate_per_second},
    {"num_prompts", &ServingResult::num_prompts},
    {"num_completed", &ServingResult::num_completed},
    {"num_failed", &ServingResult::num_failed},
    {"duration_seconds", &ServingResult::duration_seconds},
    {"input_tokens", &ServingResult::input_tokens},
    {"output_tokens", &ServingResult::output_tokens},
    {"input_tokens_per_request", &ServingResult::input_tokens_per_request},
    {"output_tokens_per_request", &ServingResult::output_tokens_per_request},
    {"output_tokens_per_second", &ServingResult::output_tokens_per_second},
    {"total_tokens_per_second", &ServingResult::total_tokens_per_second},
    {"requests_per_second", &ServingResult::requests_per_second},
    {"mean_concurrency", &ServingResult::mean_concurrency},
    {"peak_concurrency", &ServingResult::peak_concurrency},
    {"num_gpus", &ServingResult::num_gpus},
    {"tensor_parallel", &ServingResult::tensor_parallel},
    {"expert_parallel", &ServingResult::expert_parallel},
    {"accept_length", &ServingResult::accept_length},
    {"num_draft_tokens", &ServingResult::num_draft_tokens},
};

struct ServingText {
  const char* key;
  std::string ServingResult::*member;
};
inline constexpr ServingText kServingTexts[] = {
    {"id", &ServingResult::id},
    {"tool", &ServingResult::tool},
    {"label", &ServingResult::label},
    {"model", &ServingResult::model},
    {"engine", &ServingResult::engine},
    {"engine_version", &ServingResult::engine_version},
    {"hardware", &ServingResult::hardware},
    {"date", &ServingResult::date},
    {"speculation", &ServingResult::speculation},
};

/// Each is written as {"mean","std","p50","p90","p95","p99"}, seconds.
struct ServingLatency {
  const char* key;
  LatencySummary ServingResult::*member;
};
inline constexpr ServingLatency kServingLatencies[] = {
    {"ttft_seconds", &ServingResult::ttft},
    {"tpot_seconds", &ServingResult::tpot},
    {"itl_seconds", &ServingResult::itl},
    {"end_to_end_seconds", &ServingResult::end_to_end},
};

struct LatencyStatistic {
  const char* key;
  std::optional<double> LatencySummary::*member;
};
inline constexpr LatencyStatistic kLatencyStatistics[] = {
    {"mean", &LatencySummary::mean_seconds}, {"std", &LatencySummary::std_seconds},
    {"p50", &LatencySummary::p50_seconds},   {"p90", &LatencySummary::p90_seconds},
    {"p95", &LatencySummary::p95_seconds},   {"p99", &LatencySummary::p99_seconds},
};

}  // namespace fulcrum
