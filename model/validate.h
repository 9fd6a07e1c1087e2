// Predicted against measured: errors, coverage of intervals, shape of panels, gains of pairs.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/case.h"
#include "model/interval.h"

namespace fulcrum {

enum class MeasuredQuantity { kTpot, kStep, kThroughput, kTtft };
inline constexpr std::size_t kNumQuantities = 4;
/// "tpot_seconds", "step_seconds", "output_tokens_per_second", "ttft_seconds".
std::string_view name_of(MeasuredQuantity quantity);

/// One measured quantity of a case against its prediction.
struct Score {
  std::string id;
  std::string panel;
  std::string split;
  std::string kernel_set;
  std::string speculation;  ///< "none", "mtp 2", "dspark 5"
  std::string hardware;
  double concurrency = 0.0;
  MeasuredQuantity quantity = MeasuredQuantity::kTpot;
  Interval predicted;
  double measured = 0.0;
  double ape = 0.0;           ///< |predicted / measured - 1|
  double log_error = 0.0;     ///< log(predicted / measured)
  bool covered = false;       ///< measured within the 90 % interval
  bool does_not_fit = false;  ///< the memory ledger has no room for what was served
};

/// Scores of every measured quantity. Where the ledger says that the deployment does not fit, it is
/// priced as if it did, and the score says so: a wrong ledger is an error, not an excuse.
std::vector<Score> score_case(const Case& one);

/// Mean of |(predicted / predicted at the anchor) / (measured / measured at the anchor) - 1| over
/// the other points of each panel and quantity; the anchor is the smallest concurrency. Nothing
/// where no panel has two points.
std::optional<double> shape_error(std::span<const Score> scores);

struct ScoreSummary {
  std::size_t n = 0;
  double mape = 0.0;
  double median_ape = 0.0;
  double p90_ape = 0.0;
  double bias = 0.0;  ///< exp(mean log error) - 1
  double coverage = 0.0;
  std::optional<double> shape_error;
};
/// Nothing for no scores.
std::optional<ScoreSummary> summarise(std::span<const Score> scores);

/// Summaries of the scores that share a value of one key ("kernel_set", "speculation",
/// "hardware", "split", "quantity"), in order of the value.
struct SplitSummary {
  std::string key;
  std::string value;
  ScoreSummary summary;
};
std::vector<SplitSummary> split_by(std::string_view key, std::span<const Score> scores);

/// A measured gain of one arm over another against the predicted one.
struct GainScore {
  std::string pair;
  std::string before;
  std::string after;
  MeasuredQuantity quantity = MeasuredQuantity::kThroughput;
  Interval predicted_ratio;  ///< improvement: tokens/s after / before, or seconds before / after
  double measured_ratio = 0.0;
  double error_points = 0.0;  ///< predicted - measured, in percent points of the first arm
  bool sign_right = false;
  bool covered = false;  ///< run-to-run noise of both arms included
};
struct GainScores {
  std::vector<GainScore> gains;
  std::vector<ExcludedCase> excluded;  ///< pairs without two arms, or without a common quantity
};
GainScores score_gains(std::span<const Case> cases);

/// How the deployment drafts: "none", "mtp 2", "dspark 5".
std::string speculation_label(const Speculation& speculation);

}  // namespace fulcrum
