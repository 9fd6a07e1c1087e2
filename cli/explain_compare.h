// `explain compare`: do two scenarios serve the same batch, and which ledger entry says no?
#pragma once

#include "cli/table.h"
#include "model/deployment.h"

namespace fulcrum::cli {

/// At the concurrencies of `after`'s workload.
void explain_compare_topic(const Deployment& before, const Deployment& after, bool json,
                           const TerminalStyle& style);

}  // namespace fulcrum::cli
