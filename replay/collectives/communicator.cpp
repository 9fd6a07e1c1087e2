#include "replay/collectives/communicator.h"

#include <cstdlib>
#include <cstring>

#include "kernels/common/check.h"

namespace fulcrum::replay::collectives {

Communicator::Communicator(Team& team) : rank_(team.rank()), size_(team.size()) {
  FULCRUM_CUDA_CHECK(cudaSetDevice(team.device()));
  NcclUniqueId id{};
  if (rank_ == 0) {
    // Before NCCL reads its settings, by one thread while the others wait for the id.
    setenv("NCCL_NVLS_ENABLE", "0", 1);
    FULCRUM_NCCL_CHECK(nccl().get_unique_id(&id));
  } else if (!team.one_process()) {
    setenv("NCCL_NVLS_ENABLE", "0", 1);
  }
  const std::string bytes = team.broadcast(std::string(id.internal, sizeof id.internal));
  std::memcpy(id.internal, bytes.data(), sizeof id.internal);
  FULCRUM_NCCL_CHECK(nccl().comm_init_rank(&comm_, size_, id, rank_));
}

Communicator::~Communicator() {
  if (comm_ != nullptr) (void)nccl().comm_destroy(comm_);  // Nothing to do about a failure here.
}

void Communicator::all_reduce(const void* send, void* receive, std::size_t count, NcclType type,
                              cudaStream_t stream) const {
  FULCRUM_NCCL_CHECK(
      nccl().all_reduce(send, receive, count, static_cast<int>(type), kNcclSum, comm_, stream));
}

void Communicator::all_gather(const void* send, void* receive, std::size_t count, NcclType type,
                              cudaStream_t stream) const {
  FULCRUM_NCCL_CHECK(
      nccl().all_gather(send, receive, count, static_cast<int>(type), comm_, stream));
}

}  // namespace fulcrum::replay::collectives
