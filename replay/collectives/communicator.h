// One rank's NCCL communicator. Collectives are enqueued on the caller's stream and can be captured
// into a CUDA graph.
//
//   run_threads({0, 1}, [&](Team& team) {
//     Communicator comm(team);                     // selects team.device() for this thread
//     comm.all_reduce(x, x, tokens * hidden, NcclType::kBfloat16, stream);
//   });
#pragma once

#include <cuda_runtime_api.h>

#include "replay/collectives/nccl_library.h"
#include "replay/collectives/team.h"

namespace fulcrum::replay::collectives {

class Communicator {
 public:
  /// Collective over the team: all ranks construct at once. Sets the calling thread's CUDA device
  /// and NCCL_NVLS_ENABLE=0 (NVLink multicast is never used). Throws NcclMissing, NcclError,
  /// kernels::CudaError.
  explicit Communicator(Team& team);
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }

  /// Sum over ranks of `count` elements; `send` may equal `receive`.
  void all_reduce(const void* send, void* receive, std::size_t count, NcclType type,
                  cudaStream_t stream) const;
  /// `receive` gets size() blocks of `count` elements in rank order.
  void all_gather(const void* send, void* receive, std::size_t count, NcclType type,
                  cudaStream_t stream) const;

 private:
  NcclComm comm_ = nullptr;
  int rank_ = 0;
  int size_ = 1;
};

}  // namespace fulcrum::replay::collectives
