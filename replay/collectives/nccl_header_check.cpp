// Compiled where nccl.h is found: what nccl_library.h restates must be what NCCL declares.
#include <nccl.h>

#include "replay/collectives/nccl_library.h"

namespace fulcrum::replay::collectives {

static_assert(sizeof(NcclUniqueId) == sizeof(ncclUniqueId));
static_assert(alignof(NcclUniqueId) == alignof(ncclUniqueId));
static_assert(static_cast<int>(NcclType::kInt8) == ncclInt8);
static_assert(static_cast<int>(NcclType::kFloat16) == ncclFloat16);
static_assert(static_cast<int>(NcclType::kFloat32) == ncclFloat32);
static_assert(static_cast<int>(NcclType::kBfloat16) == ncclBfloat16);
static_assert(kNcclSum == ncclSum);
static_assert(kNcclSuccess == ncclSuccess);

}  // namespace fulcrum::replay::collectives
