// GPU activities of a profile: what ran when on which stream. Host events are not kept: kernels of
// a CUDA graph have no host parent, so nothing here is derived from one.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fulcrum::calibrate {

/// A kernel, copy or memset; 32 bytes, because traces hold millions.
struct GpuActivity {
  std::int64_t start_ns = 0;
  std::int64_t duration_ns = 0;
  std::uint32_t name = 0;    ///< index in KernelTrace::names
  std::uint32_t stream = 0;  ///< CUDA stream id as the profiler numbers it
  /// Host call that launched it (CUPTI correlation id); all kernels of one graph launch share it.
  std::uint32_t launch = 0;
  std::uint16_t device = 0;  ///< index in KernelTrace::devices
  bool in_graph = false;     ///< node of a CUDA graph
};

/// Beyond this many activities the rest of a trace is counted, not kept: 128 MB here, and as much
/// again for the sorted copy and for the sort.
inline constexpr std::size_t kMaxActivities = 4'000'000;
/// Distinct kernel names; real traces hold a few thousand at most.
inline constexpr std::size_t kMaxKernelNames = 200'000;

class KernelTrace {
 public:
  /// Index of a name, new or known. At most kMaxKernelNames; later ones share the last.
  std::uint32_t name_index(std::string_view name);
  /// Index of a device ("rank 2, GPU 0"); at most 65535.
  std::uint16_t device_index(std::string_view label);
  /// Keeps the activity unless there are kMaxActivities already.
  void add(const GpuActivity& activity);
  /// Activities of one device, ordered by start.
  std::vector<GpuActivity> of_device(std::uint16_t device) const;

  const std::vector<std::string>& names() const { return names_; }
  const std::vector<std::string>& devices() const { return devices_; }
  const std::vector<GpuActivity>& activities() const { return activities_; }
  std::uint64_t num_dropped() const { return num_dropped_; }

  std::optional<int> rank;         ///< of the process that was profiled
  std::vector<std::string> notes;  ///< what a reader must know, e.g. graphs traced as a whole

 private:
  std::vector<std::string> names_;
  std::vector<std::string> devices_;
  std::map<std::string, std::uint32_t, std::less<>> name_indices_;
  std::map<std::string, std::uint16_t, std::less<>> device_indices_;
  std::vector<GpuActivity> activities_;
  std::uint64_t num_dropped_ = 0;
};

}  // namespace fulcrum::calibrate
