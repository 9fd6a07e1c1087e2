// Owning, typed device memory for the harness and the GPU tests.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "kernels/common/check.h"

namespace fulcrum::kernels {

template <typename T>
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  explicit DeviceBuffer(std::size_t size) : size_(size) {
    if (size_ > 0) FULCRUM_CUDA_CHECK(cudaMalloc(reinterpret_cast<void**>(&data_), bytes()));
  }
  explicit DeviceBuffer(const std::vector<T>& host) : DeviceBuffer(host.size()) { upload(host); }
  DeviceBuffer(DeviceBuffer&& other) noexcept { swap(other); }
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
    swap(other);
    return *this;
  }
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;
  ~DeviceBuffer() {
    if (data_ != nullptr)
      (void)cudaFree(data_);  // The context may be lost already; nothing to do about it.
  }

  T* data() { return data_; }
  const T* data() const { return data_; }
  std::size_t size() const { return size_; }
  std::size_t bytes() const { return size_ * sizeof(T); }

  void upload(const std::vector<T>& host) {
    if (host.size() != size_) throw std::invalid_argument("DeviceBuffer::upload: size differs");
    if (size_ > 0) {
      FULCRUM_CUDA_CHECK(cudaMemcpy(data_, host.data(), bytes(), cudaMemcpyHostToDevice));
    }
  }
  std::vector<T> download() const {
    std::vector<T> host(size_);
    if (size_ > 0) {
      FULCRUM_CUDA_CHECK(cudaMemcpy(host.data(), data_, bytes(), cudaMemcpyDeviceToHost));
    }
    return host;
  }
  // All bits set: NaN in every float format here, so an element a kernel never writes cannot pass a
  // check.
  void poison() {
    if (size_ > 0) FULCRUM_CUDA_CHECK(cudaMemset(data_, 0xff, bytes()));
  }
  void zero() {
    if (size_ > 0) FULCRUM_CUDA_CHECK(cudaMemset(data_, 0, bytes()));
  }

 private:
  void swap(DeviceBuffer& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
  }

  T* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace fulcrum::kernels
