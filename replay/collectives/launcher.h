// How this process came to be a rank: torchrun's, Open MPI's, MPICH's or Slurm's environment.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "replay/collectives/team.h"

namespace fulcrum::replay::collectives {

/// Looks a variable up; nothing when it is not set.
using Lookup = std::function<std::optional<std::string>(const char* name)>;

struct LaunchedRank {
  ProcessRank rank;
  std::string launcher;  ///< "torchrun", "Open MPI", "MPICH", "Slurm"
};

/// Nothing when no launcher's variables are set (one process then drives all GPUs). The ranks meet
/// at MASTER_ADDR (this host if unset) on the port after MASTER_PORT (29500 if unset): torchrun's
/// own store keeps MASTER_PORT itself. Throws std::invalid_argument when variables are incomplete
/// or no numbers, or when several hosts are likely and MASTER_ADDR is not set.
std::optional<LaunchedRank> launched_rank(const Lookup& lookup);

}  // namespace fulcrum::replay::collectives
