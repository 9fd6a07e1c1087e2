// Threads for the host references: the whole grid of a check must not take longer than the GPU's
// lease.
#pragma once

#include <cstdint>
#include <functional>

namespace fulcrum::kernels {

// Calls body(i) for i in [0, count) from all cores; body must only write what belongs to its i.
// The first exception of a body is rethrown here.
void parallel_for(std::int64_t count, const std::function<void(std::int64_t)>& body);

}  // namespace fulcrum::kernels
