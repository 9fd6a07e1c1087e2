// mhc_module_perf tables: hyper-connection mixing, pre and post.
#pragma once

#include "calibrate/family.h"

namespace fulcrum::calibrate {

/// op_name `pre`: the law of model/laws/mhc.h.
const Family& mhc_pre_family();

/// op_name `post`: an elementwise launch.
const Family& mhc_post_family();

}  // namespace fulcrum::calibrate
