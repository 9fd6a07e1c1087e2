#include <stdexcept>

#include "replay/collectives/command.h"

namespace fulcrum::replay::collectives {

int run_collectives(const CommandOptions&, const std::vector<std::string>&) {
  throw std::runtime_error(
      "this build has no CUDA: no CUDA compiler was found when it was configured (or "
      "FULCRUM_ENABLE_CUDA is off), so no GPU can be driven; --predict works");
}

}  // namespace fulcrum::replay::collectives
