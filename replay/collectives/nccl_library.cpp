#include "replay/collectives/nccl_library.h"

#include <dlfcn.h>

#include <cstdlib>

namespace fulcrum::replay::collectives {
namespace {

template <typename Function>
void resolve(void* library, const std::string& path, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr) throw NcclMissing(path + " lacks " + name);
}

NcclFunctions load() {
  const char* named = std::getenv("FULCRUM_NCCL_LIBRARY");
  const std::string path = named != nullptr && *named != '\0' ? named : "libnccl.so.2";
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = dlerror();
    throw NcclMissing("NCCL cannot be loaded: " + std::string(why != nullptr ? why : path) +
                      " (FULCRUM_NCCL_LIBRARY names the file)");
  }
  NcclFunctions f;
  resolve(library, path, "ncclGetVersion", f.get_version);
  resolve(library, path, "ncclGetUniqueId", f.get_unique_id);
  resolve(library, path, "ncclCommInitRank", f.comm_init_rank);
  resolve(library, path, "ncclCommDestroy", f.comm_destroy);
  resolve(library, path, "ncclCommAbort", f.comm_abort);
  resolve(library, path, "ncclAllReduce", f.all_reduce);
  resolve(library, path, "ncclAllGather", f.all_gather);
  resolve(library, path, "ncclGroupStart", f.group_start);
  resolve(library, path, "ncclGroupEnd", f.group_end);
  resolve(library, path, "ncclGetErrorString", f.get_error_string);
  resolve(library, path, "ncclGetLastError", f.get_last_error);
  return f;
}

}  // namespace

std::size_t size_of(NcclType type) {
  switch (type) {
    case NcclType::kInt8:
      return 1;
    case NcclType::kFloat16:
    case NcclType::kBfloat16:
      return 2;
    case NcclType::kFloat32:
      return 4;
  }
  throw std::invalid_argument("size_of: not an NcclType");
}

const NcclFunctions& nccl() {
  // Never unloaded: communicators of other threads may outlive any owner.
  static const NcclFunctions functions = load();
  return functions;
}

int nccl_version() {
  int version = 0;
  FULCRUM_NCCL_CHECK(nccl().get_version(&version));
  return version;
}

void check_nccl(int code, const char* expression, const char* file, int line) {
  if (code == kNcclSuccess) return;
  const char* last = nccl().get_last_error(nullptr);
  throw NcclError(std::string(file) + ":" + std::to_string(line) + ": " + expression +
                  " failed: " + nccl().get_error_string(code) + " (" + std::to_string(code) + ")" +
                  (last != nullptr && *last != '\0' ? std::string(": ") + last : ""));
}

}  // namespace fulcrum::replay::collectives
