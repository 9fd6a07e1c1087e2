#include "kernels/gemm/cublaslt.h"

#include <cublasLt.h>
#include <dlfcn.h>

#include <array>
#include <stdexcept>
#include <vector>

#include "kernels/common/device_buffer.h"

namespace fulcrum::kernels {
namespace {

constexpr std::size_t kWorkspaceBytes = 32u << 20;  // What NVIDIA recommends for sm_90 and newer.

struct Library {
  decltype(&cublasLtCreate) create = nullptr;
  decltype(&cublasLtDestroy) destroy = nullptr;
  decltype(&cublasLtMatmulDescCreate) desc_create = nullptr;
  decltype(&cublasLtMatmulDescDestroy) desc_destroy = nullptr;
  decltype(&cublasLtMatmulDescSetAttribute) desc_set = nullptr;
  decltype(&cublasLtMatrixLayoutCreate) layout_create = nullptr;
  decltype(&cublasLtMatrixLayoutDestroy) layout_destroy = nullptr;
  decltype(&cublasLtMatmulPreferenceCreate) preference_create = nullptr;
  decltype(&cublasLtMatmulPreferenceDestroy) preference_destroy = nullptr;
  decltype(&cublasLtMatmulPreferenceSetAttribute) preference_set = nullptr;
  decltype(&cublasLtMatmulAlgoGetHeuristic) heuristic = nullptr;
  decltype(&cublasLtMatmul) matmul = nullptr;
  std::string absence;
};

template <typename Function>
void resolve(void* handle, const char* name, Function& function, std::string& absence) {
  function = reinterpret_cast<Function>(dlsym(handle, name));
  if (function == nullptr && absence.empty()) absence = std::string("cuBLASLt lacks ") + name;
}

Library load() {
  Library lib;
  const std::string name = "libcublasLt.so." + std::to_string(CUBLAS_VER_MAJOR);
  void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    lib.absence = name + " cannot be loaded (is it on LD_LIBRARY_PATH?)";
    return lib;
  }
  resolve(handle, "cublasLtCreate", lib.create, lib.absence);
  resolve(handle, "cublasLtDestroy", lib.destroy, lib.absence);
  resolve(handle, "cublasLtMatmulDescCreate", lib.desc_create, lib.absence);
  resolve(handle, "cublasLtMatmulDescDestroy", lib.desc_destroy, lib.absence);
  resolve(handle, "cublasLtMatmulDescSetAttribute", lib.desc_set, lib.absence);
  resolve(handle, "cublasLtMatrixLayoutCreate", lib.layout_create, lib.absence);
  resolve(handle, "cublasLtMatrixLayoutDestroy", lib.layout_destroy, lib.absence);
  resolve(handle, "cublasLtMatmulPreferenceCreate", lib.preference_create, lib.absence);
  resolve(handle, "cublasLtMatmulPreferenceDestroy", lib.preference_destroy, lib.absence);
  resolve(handle, "cublasLtMatmulPreferenceSetAttribute", lib.preference_set, lib.absence);
  resolve(handle, "cublasLtMatmulAlgoGetHeuristic", lib.heuristic, lib.absence);
  resolve(handle, "cublasLtMatmul", lib.matmul, lib.absence);
  return lib;
}

const Library& library() {
  static const Library lib = load();
  return lib;
}

void check(cublasStatus_t status, const char* what) {
  if (status != CUBLAS_STATUS_SUCCESS) {
    throw std::runtime_error(std::string(what) + " failed with cuBLAS status " +
                             std::to_string(static_cast<int>(status)));
  }
}

}  // namespace

struct CublasLtGemm::State {
  CublasLtKind kind = CublasLtKind::kBf16;
  cublasLtHandle_t handle = nullptr;
  cublasLtMatmulDesc_t desc = nullptr;
  cublasLtMatrixLayout_t weight = nullptr;
  cublasLtMatrixLayout_t x = nullptr;
  cublasLtMatrixLayout_t y = nullptr;
  cublasLtMatmulAlgo_t algorithm = {};
  DeviceBuffer<std::uint8_t> workspace{kWorkspaceBytes};

  ~State() {
    const Library& lib = library();
    if (y != nullptr) lib.layout_destroy(y);
    if (x != nullptr) lib.layout_destroy(x);
    if (weight != nullptr) lib.layout_destroy(weight);
    if (desc != nullptr) lib.desc_destroy(desc);
    if (handle != nullptr) lib.destroy(handle);
  }

  template <typename T>
  void set(cublasLtMatmulDescAttributes_t attribute, const T& value) {
    check(library().desc_set(desc, attribute, &value, sizeof value),
          "cublasLtMatmulDescSetAttribute");
  }
};

std::string cublaslt_absence() { return library().absence; }

Claim cublaslt_gemm_claim(CublasLtKind kind, int m, int n, int k) {
  const double element_bytes = kind == CublasLtKind::kBf16 ? 2 : 1;
  double scale_bytes = 0;
  if (kind == CublasLtKind::kFp8Tensor) scale_bytes = 8;
  if (kind == CublasLtKind::kFp8Block) scale_bytes = 4.0 * (k / 128) * (m + (n + 127) / 128);
  return {.bytes = element_bytes * (1.0 * n * k + 1.0 * m * k) + scale_bytes + 2.0 * m * n,
          .flop = 2.0 * m * n * k};
}

CublasLtGemm::CublasLtGemm(CublasLtKind kind, int m, int n, int k, int algorithm) {
  const Library& lib = library();
  if (!lib.absence.empty()) throw std::runtime_error(lib.absence);
  state_ = std::make_unique<State>();
  State& s = *state_;
  s.kind = kind;
  const bool fp8 = kind != CublasLtKind::kBf16;
  const cudaDataType_t element = fp8 ? CUDA_R_8F_E4M3 : CUDA_R_16BF;
  check(lib.create(&s.handle), "cublasLtCreate");
  check(lib.desc_create(&s.desc, CUBLAS_COMPUTE_32F, CUDA_R_32F), "cublasLtMatmulDescCreate");
  // Column-major view: y^T [n, m] = weight^T' [n, k] * x^T [k, m]; the row-major weight is a
  // transposed [k, n].
  s.set(CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T);
  s.set(CUBLASLT_MATMUL_DESC_TRANSB, CUBLAS_OP_N);
  if (kind == CublasLtKind::kFp8Block) {
    s.set(CUBLASLT_MATMUL_DESC_A_SCALE_MODE, CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F);
    s.set(CUBLASLT_MATMUL_DESC_B_SCALE_MODE, CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F);
  }
  if (fp8) {
    // The heuristic wants to see that scales will be given; launch() puts in the real addresses.
    const void* any_scale = s.workspace.data();
    s.set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, any_scale);
    s.set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, any_scale);
  }
  const auto columns = static_cast<std::uint64_t>(k);
  const auto rows = static_cast<std::uint64_t>(n);
  const auto tokens = static_cast<std::uint64_t>(m);
  check(lib.layout_create(&s.weight, element, columns, rows, k), "cublasLtMatrixLayoutCreate");
  check(lib.layout_create(&s.x, element, columns, tokens, k), "cublasLtMatrixLayoutCreate");
  check(lib.layout_create(&s.y, CUDA_R_16BF, rows, tokens, n), "cublasLtMatrixLayoutCreate");

  cublasLtMatmulPreference_t preference = nullptr;
  check(lib.preference_create(&preference), "cublasLtMatmulPreferenceCreate");
  lib.preference_set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &kWorkspaceBytes,
                     sizeof kWorkspaceBytes);
  std::vector<cublasLtMatmulHeuristicResult_t> results(static_cast<std::size_t>(algorithm) + 1);
  int found = 0;
  const cublasStatus_t status = lib.heuristic(s.handle, s.desc, s.weight, s.x, s.y, s.y, preference,
                                              algorithm + 1, results.data(), &found);
  lib.preference_destroy(preference);
  check(status, "cublasLtMatmulAlgoGetHeuristic");
  if (found <= algorithm) {
    throw std::runtime_error("cuBLASLt offers " + std::to_string(found) +
                             " algorithms for this shape, number " + std::to_string(algorithm) +
                             " was asked for");
  }
  s.algorithm = results[static_cast<std::size_t>(algorithm)].algo;
}

CublasLtGemm::~CublasLtGemm() = default;

void CublasLtGemm::launch(const CublasLtArgs& args, cudaStream_t stream) {
  State& s = *state_;
  if (s.kind != CublasLtKind::kBf16) {
    s.set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, args.weight_scale);
    s.set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, args.x_scale);
  }
  const float one = 1;
  const float zero = 0;
  check(
      library().matmul(s.handle, s.desc, &one, args.weight, s.weight, args.x, s.x, &zero, args.y,
                       s.y, args.y, s.y, &s.algorithm, s.workspace.data(), kWorkspaceBytes, stream),
      "cublasLtMatmul");
}

}  // namespace fulcrum::kernels
