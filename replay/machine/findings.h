// From facts to what they mean for a measurement: a pure function, so that every rule is tested
// without the machine it is about.
#pragma once

#include <string>
#include <vector>

#include "replay/machine/facts.h"

namespace fulcrum::replay::machine {

enum class Severity {
  kBlocks,    ///< nothing can be measured
  kDistorts,  ///< numbers taken now are not those of this hardware undisturbed
  kNote,      ///< worth knowing when numbers are compared
};
const char* to_string(Severity severity);

struct Finding {
  Severity severity = Severity::kNote;
  std::string code;    ///< stable, for scripts: "power_capped"
  std::string where;   ///< "GPU 0", "GPU 0 - GPU 1", "host", "environment"
  std::string what;    ///< what was read
  std::string why;     ///< what it does to a measurement
  std::string remedy;  ///< what the owner could do; "" when nothing
};

/// Most severe first; within a severity, host before GPUs before pairs.
std::vector<Finding> find(const MachineFacts& facts);

}  // namespace fulcrum::replay::machine
