// What `replay collectives` can be asked to time: who carries the message, by which algorithm and
// protocol, over how many channels.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace fulcrum::replay::collectives {

enum class Operation { kAllReduce, kAllGather };
enum class Carrier { kNccl, kPeerOneShot, kPeerTwoShot };
const char* to_string(Operation operation);
const char* to_string(Carrier carrier);

/// One communicator's worth of settings: NCCL reads its own when the communicator is made, so each
/// setting is measured in a process of its own. "" and 0 leave the choice to NCCL.
struct Setting {
  Operation operation = Operation::kAllReduce;
  Carrier carrier = Carrier::kNccl;
  std::string protocol{};   ///< "LL", "LL128", "Simple"
  std::string algorithm{};  ///< "Ring", "Tree"
  int channels = 0;

  bool operator==(const Setting&) const = default;
  /// "all_reduce nccl LL Ring", "all_reduce peer_one_shot", "all_gather nccl default"
  std::string name() const;
  /// NCCL_* variables that bring it about; NCCL_NVLS_ENABLE=0 always.
  std::map<std::string, std::string> environment() const;
};

/// How launches are timed; different words because they answer different questions.
///   graph   many in one CUDA graph, per collective: what a captured decode step pays
///   eager   as many launched by the host one after another: what an eager step pays
///   single  one, behind a spinning kernel, per rank: transfer and wait told apart
enum class LaunchKind { kGraph, kEager, kSingle };
const char* to_string(LaunchKind kind);

/// Lists as typed on the command line ("default" for NCCL's own choice). Throws
/// std::invalid_argument naming option, what was found and what is allowed.
struct SettingLists {
  std::string operations = "all_reduce,all_gather";
  std::string carriers = "nccl,peer_one_shot,peer_two_shot";
  std::string protocols = "default,LL,LL128,Simple";
  std::string algorithms = "default";
  std::string channels = "default";
};
/// All combinations that exist: the peer carriers only all-reduce and have no protocols, NCCL
/// gathers by ring only.
std::vector<Setting> settings_of(const SettingLists& lists);

/// "256:64M" (powers of two), "8K,64K" or "4096": bytes. Throws std::invalid_argument.
std::vector<std::int64_t> parse_sizes(const std::string& text);
/// "0,1" -> devices. Throws std::invalid_argument.
std::vector<int> parse_devices(const std::string& text);

/// Bytes really sent for a wanted size: a multiple of 16 bytes per rank.
std::int64_t message_bytes(Operation operation, std::int64_t wanted_bytes, int num_ranks);

/// Bytes that cross a rank's link in the direction that carries more: what every algorithm must
/// move at least (2(n-1)/n S for an all-reduce, (n-1)/n S for an all-gather of S bytes in total).
double link_bytes(Operation operation, std::int64_t bytes, int num_ranks);

}  // namespace fulcrum::replay::collectives
