// The ranks of one job as they see each other on the host: agree, meet, exchange. Device traffic is
// the communicator's business.
//
// Two ways to be a rank, one interface: a thread of this process per GPU (run_threads), or a
// process per GPU started by MPI, torchrun or by hand (join_processes).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace fulcrum::replay::collectives {

class Team {
 public:
  virtual ~Team() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// CUDA device of this rank.
  virtual int device() const = 0;
  /// True when every rank is a thread of this process (peer pointers are then valid as they are).
  virtual bool one_process() const = 0;
  /// Every rank's bytes, in rank order; all ranks must call it. Lengths may differ.
  virtual std::vector<std::string> all_gather(const std::string& bytes) = 0;
  /// Returns when all ranks have arrived: within microseconds of each other for threads, tens of
  /// microseconds for processes.
  virtual void barrier() = 0;

  std::string broadcast(const std::string& bytes, int root = 0);
  std::vector<std::vector<double>> all_gather_values(std::span<const double> values);
};

/// Runs `body` as ranks 0 .. devices.size()-1, each on its own thread, and waits for all. When a
/// rank throws, the others leave their next barrier with TeamBroken, and the first exception is
/// rethrown here. A rank that hangs inside CUDA or NCCL is the caller's to time out (run it in a
/// child process).
void run_threads(const std::vector<int>& devices, const std::function<void(Team&)>& body);

/// Another rank failed while this one waited for it.
class TeamBroken : public std::exception {
 public:
  const char* what() const noexcept override { return "another rank failed"; }
};

/// One rank among processes, as a launcher describes it.
struct ProcessRank {
  int rank = 0;
  int size = 1;
  int local_rank = 0;  ///< CUDA device
  std::string master_address = "127.0.0.1";
  std::uint16_t master_port = 29501;
};

/// Connects to rank 0 over TCP and waits until all `size` ranks are there. `meeting` tells apart
/// the teams one job forms one after another. Throws std::runtime_error naming what did not answer.
std::unique_ptr<Team> join_processes(const ProcessRank& self, std::uint32_t meeting,
                                     double timeout_seconds);

}  // namespace fulcrum::replay::collectives
