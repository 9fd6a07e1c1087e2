// dsv4_paged_mqa_logits_module_perf: indexer logits over the compressed keys.
#pragma once

#include "calibrate/family.h"
#include "model/laws/context_scan.h"

namespace fulcrum::calibrate {

/// Each query token of a row is an entry of its own that sees the keys up to its position.
ContextScanLaunch indexer_launch(const AttentionRow& row);

const Family& indexer_family();

}  // namespace fulcrum::calibrate
