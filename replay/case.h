// What a kernel must offer to be replayed. replay/registry.cpp lists every KernelEntry in one
// table; registry_<family>.cpp files define them.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/common/claim.h"
#include "replay/shape.h"
#include "replay/verification.h"

namespace fulcrum::replay {

// One kernel at one shape with its device buffers. Buffers are allocated and filled with random
// inputs in the maker, so that launch() does nothing but enqueue.
class Case {
 public:
  virtual ~Case() = default;
  // Enqueues one invocation on rotating set `set` in [0, num_sets). Captured into graphs: no
  // synchronization, no allocation. Throws kernels::CudaError.
  virtual void launch(int set, cudaStream_t stream) = 0;
  // Poisons the outputs, launches set 0, synchronizes and compares every output element with the
  // double-precision host reference.
  virtual Verification verify(cudaStream_t stream) = 0;
};

// Thrown by a maker when this device or library cannot run the shape, which only trying shows: the
// entry is skipped with this reason, not failed.
class Unsupported : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct CaseOptions {
  int num_sets = 1;        // Copies of the rotating inputs (weights, KV) at different addresses.
  std::uint64_t seed = 1;  // Of the random inputs.
};

struct DeviceTraits {
  int compute_capability = 0;  // 10 * major + minor, e.g. 90, 120.
  std::int64_t num_sms = 0;
  std::int64_t l2_bytes = 0;
  std::int64_t memory_bytes = 0;
  std::int64_t shared_memory_per_block_bytes = 0;
};

struct KernelEntry {
  std::string name;
  std::string family;
  std::string summary;
  std::vector<Dimension> dimensions;
  kernels::Claim (*claim)(const Shape&) = nullptr;
  // Bytes of one rotating set: what a decode step reads from DRAM because other layers evicted it.
  double (*rotating_bytes)(const Shape&) = nullptr;
  // Why this kernel cannot run this shape on this device; nullopt when it can.
  std::optional<std::string> (*unsupported)(const Shape&, const DeviceTraits&) = nullptr;
  std::unique_ptr<Case> (*make)(const Shape&, const CaseOptions&) = nullptr;
  // Lists of shapes in parse_shapes() syntax: small ones that reach every code path, and those that
  // the calibration plan times.
  std::string verify_shapes;
  std::string calibration_shapes;
};

}  // namespace fulcrum::replay
