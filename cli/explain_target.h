// `explain target`: roofline against target, and the levers that would reach it.
#pragma once

#include "cli/table.h"
#include "model/deployment.h"
#include "model/io/load_scenario.h"

namespace fulcrum::cli {

void explain_target_topic(const io::ScenarioDocument& scenario, const Deployment& deployment,
                          double target_tokens_per_second, bool json, const TerminalStyle& style);

}  // namespace fulcrum::cli
