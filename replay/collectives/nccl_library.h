// NCCL, loaded at run time: a program built without it runs everywhere and says what is missing.
// The few declarations used are restated from nccl.h (NCCL 2.18 to 2.28); where the header is found
// when building, nccl_header_check.cpp compares them.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <stdexcept>
#include <string>

namespace fulcrum::replay::collectives {

/// ncclUniqueId: what every rank needs to join a communicator.
struct NcclUniqueId {
  char internal[128];
};

/// ncclDataType_t, the values used here.
enum class NcclType : int { kInt8 = 0, kFloat16 = 6, kFloat32 = 7, kBfloat16 = 9 };
std::size_t size_of(NcclType type);

inline constexpr int kNcclSum = 0;      // ncclSum
inline constexpr int kNcclSuccess = 0;  // ncclSuccess

/// An NCCL call that failed: expression, code, NCCL's text and its last error, place.
class NcclError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// NCCL could not be loaded: no library by that name, or one that lacks a function.
class NcclMissing : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

using NcclComm = void*;

/// Functions of the loaded library, under the names of nccl.h without the prefix.
struct NcclFunctions {
  int (*get_version)(int*) = nullptr;
  int (*get_unique_id)(NcclUniqueId*) = nullptr;
  int (*comm_init_rank)(NcclComm*, int, NcclUniqueId, int) = nullptr;
  int (*comm_destroy)(NcclComm) = nullptr;
  int (*comm_abort)(NcclComm) = nullptr;
  int (*all_reduce)(const void*, void*, std::size_t, int, int, NcclComm, cudaStream_t) = nullptr;
  int (*all_gather)(const void*, void*, std::size_t, int, NcclComm, cudaStream_t) = nullptr;
  int (*group_start)() = nullptr;
  int (*group_end)() = nullptr;
  const char* (*get_error_string)(int) = nullptr;
  const char* (*get_last_error)(NcclComm) = nullptr;
};

/// Loads the library once per process: FULCRUM_NCCL_LIBRARY if set, else libnccl.so.2. Throws
/// NcclMissing. Set NCCL_* variables before the first communicator: NCCL reads them then.
const NcclFunctions& nccl();

/// e.g. 22809 for 2.28.9. Throws NcclMissing or NcclError.
int nccl_version();

void check_nccl(int code, const char* expression, const char* file, int line);

}  // namespace fulcrum::replay::collectives

#define FULCRUM_NCCL_CHECK(expression) \
  ::fulcrum::replay::collectives::check_nccl((expression), #expression, __FILE__, __LINE__)
