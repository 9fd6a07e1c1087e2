// JSON output of predictions and levers: the stable contract other programs read.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "model/levers.h"
#include "model/portfolio.h"
#include "model/predict.h"

namespace fulcrum::io {

/// {"p05":..,"p50":..,"p95":..}
nlohmann::ordered_json to_json(const Interval& interval);

/// Schema fulcrum/prediction/1.
nlohmann::ordered_json to_json(const Prediction& prediction);

/// The best set of levers at one concurrency, with the levers' names in the portfolio's order.
struct LeverPortfolio {
  double concurrency = 0.0;
  double budget_minutes = 0.0;
  std::vector<std::string> names;
  Portfolio portfolio;  ///< values are output tokens/s
  Interval gain_ratio;
};

/// Schema fulcrum/levers/1.
nlohmann::ordered_json levers_to_json(const std::string& scenario,
                                      const std::vector<LeverResult>& levers,
                                      const std::vector<LeverPortfolio>& portfolios,
                                      const std::vector<std::string>& warnings);

}  // namespace fulcrum::io
