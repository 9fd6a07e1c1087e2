#include "calibrate/trace/kernel_trace.h"

#include <algorithm>

namespace fulcrum::calibrate {
namespace {

constexpr std::size_t kMaxDevices = 65'535;

}  // namespace

std::uint32_t KernelTrace::name_index(std::string_view name) {
  const auto found = name_indices_.find(name);
  if (found != name_indices_.end()) return found->second;
  if (names_.size() >= kMaxKernelNames) return static_cast<std::uint32_t>(names_.size() - 1);
  const auto index = static_cast<std::uint32_t>(names_.size());
  names_.emplace_back(name);
  name_indices_.emplace(std::string(name), index);
  return index;
}

std::uint16_t KernelTrace::device_index(std::string_view label) {
  const auto found = device_indices_.find(label);
  if (found != device_indices_.end()) return found->second;
  if (devices_.size() >= kMaxDevices) return static_cast<std::uint16_t>(devices_.size() - 1);
  const auto index = static_cast<std::uint16_t>(devices_.size());
  devices_.emplace_back(label);
  device_indices_.emplace(std::string(label), index);
  return index;
}

void KernelTrace::add(const GpuActivity& activity) {
  if (activities_.size() >= kMaxActivities) {
    ++num_dropped_;
    return;
  }
  if (activities_.size() == activities_.capacity()) {
    activities_.reserve(std::min(kMaxActivities, 2 * activities_.size() + 1024));
  }
  activities_.push_back(activity);
}

std::vector<GpuActivity> KernelTrace::of_device(std::uint16_t device) const {
  std::vector<GpuActivity> result;
  for (const GpuActivity& activity : activities_) {
    if (activity.device == device) result.push_back(activity);
  }
  std::stable_sort(result.begin(), result.end(),
                   [](const auto& a, const auto& b) { return a.start_ns < b.start_ns; });
  return result;
}

}  // namespace fulcrum::calibrate
