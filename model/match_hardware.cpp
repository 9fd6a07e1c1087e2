#include "model/match_hardware.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <sstream>

namespace fulcrum {
namespace {

/// Drivers report less than the datasheet's capacity: ECC and firmware take up to 0.5 %, a system
/// with unified memory (GB10) up to 7 %.
constexpr double kCapacityTolerance = 0.08;

std::set<std::string> words_of(const std::string& text) {
  std::istringstream in(text);
  std::set<std::string> words;
  for (std::string word; in >> word;) words.insert(word);
  return words;
}

}  // namespace

std::optional<std::size_t> match_hardware(const DeviceIdentity& device,
                                          std::span<const Hardware> described) {
  const std::set<std::string> name = words_of(device.name);
  std::optional<std::size_t> best;
  double best_score = 0.0;
  for (std::size_t i = 0; i < described.size(); ++i) {
    const Hardware& hardware = described[i];
    if (hardware.compute_capability != device.compute_capability) continue;
    const double capacity = hardware.memory_capacity_mib.value;
    if (device.memory_mib &&
        std::abs(*device.memory_mib - capacity) > kCapacityTolerance * capacity) {
      continue;
    }
    const std::set<std::string> label = words_of(hardware.label);
    double shared = 0.0;
    for (const std::string& word : name) shared += label.contains(word) ? 1.0 : 0.0;
    // Shared words over all words: "Max-Q" in the label but not in the name counts against it. The
    // vendor's name alone is no match.
    if (shared < std::min<double>(2.0, static_cast<double>(name.size()))) continue;
    const double score = shared / (static_cast<double>(name.size() + label.size()) - shared);
    if (score > best_score) {
      best_score = score;
      best = i;
    }
  }
  return best;
}

}  // namespace fulcrum
