#include "replay/collectives/launcher.h"

#include <charconv>
#include <stdexcept>

namespace fulcrum::replay::collectives {
namespace {

struct Variables {
  const char* launcher;
  const char* rank;
  const char* size;
  const char* local_rank;
};

constexpr Variables kLaunchers[] = {
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK"},
    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
    {"MPICH", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"},
    {"Slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"},
};

int whole_number(const char* name, const std::string& text, int lowest, int highest) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < lowest ||
      value > highest) {
    throw std::invalid_argument(std::string(name) + ": found '" + text + "', allowed: " +
                                std::to_string(lowest) + ".." + std::to_string(highest));
  }
  return value;
}

}  // namespace

std::optional<LaunchedRank> launched_rank(const Lookup& lookup) {
  for (const Variables& names : kLaunchers) {
    const auto rank = lookup(names.rank);
    const auto size = lookup(names.size);
    // Slurm sets its variables in every shell of a job; one task is no team.
    if (!rank || !size || (std::string(names.launcher) == "Slurm" && *size == "1")) continue;
    constexpr int kMaxRanks = 1 << 16;
    LaunchedRank found;
    found.launcher = names.launcher;
    found.rank.size = whole_number(names.size, *size, 1, kMaxRanks);
    found.rank.rank = whole_number(names.rank, *rank, 0, found.rank.size - 1);
    const auto local = lookup(names.local_rank);
    if (!local) {
      throw std::invalid_argument(std::string(names.local_rank) +
                                  " is not set, but it names the GPU of rank " + *rank);
    }
    found.rank.local_rank = whole_number(names.local_rank, *local, 0, found.rank.size - 1);
    const auto address = lookup("MASTER_ADDR");
    if (address && !address->empty()) {
      found.rank.master_address = *address;
    } else if (found.rank.local_rank != found.rank.rank) {
      throw std::invalid_argument("MASTER_ADDR is not set, but the ranks are on several hosts");
    }
    constexpr int kDefaultPort = 29500;  // torchrun's
    const auto port = lookup("MASTER_PORT");
    const int base = port ? whole_number("MASTER_PORT", *port, 1, 65534) : kDefaultPort;
    found.rank.master_port = static_cast<std::uint16_t>(base + 1);
    return found;
  }
  return std::nullopt;
}

}  // namespace fulcrum::replay::collectives
