// Owners of the runtime's handles, for code that times work.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>

#include "kernels/common/check.h"

namespace fulcrum::replay {

class OwnedStream {
 public:
  OwnedStream() { FULCRUM_CUDA_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  ~OwnedStream() { (void)cudaStreamDestroy(stream_); }
  OwnedStream(const OwnedStream&) = delete;
  OwnedStream& operator=(const OwnedStream&) = delete;
  operator cudaStream_t() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

class OwnedEvent {
 public:
  OwnedEvent() { FULCRUM_CUDA_CHECK(cudaEventCreate(&event_)); }
  ~OwnedEvent() { (void)cudaEventDestroy(event_); }
  OwnedEvent(const OwnedEvent&) = delete;
  OwnedEvent& operator=(const OwnedEvent&) = delete;
  operator cudaEvent_t() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

/// What `enqueue` puts on the stream, captured and instantiated.
class OwnedGraph {
 public:
  OwnedGraph(cudaStream_t stream, const std::function<void()>& enqueue) {
    FULCRUM_CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    cudaGraph_t graph = nullptr;
    try {
      enqueue();
    } catch (...) {
      (void)cudaStreamEndCapture(stream, &graph);
      if (graph != nullptr) (void)cudaGraphDestroy(graph);
      throw;
    }
    FULCRUM_CUDA_CHECK(cudaStreamEndCapture(stream, &graph));
    const cudaError_t code = cudaGraphInstantiate(&executable_, graph, 0);
    (void)cudaGraphDestroy(graph);
    FULCRUM_CUDA_CHECK(code);
  }
  ~OwnedGraph() {
    if (executable_ != nullptr) (void)cudaGraphExecDestroy(executable_);
  }
  OwnedGraph(const OwnedGraph&) = delete;
  OwnedGraph& operator=(const OwnedGraph&) = delete;
  void launch(cudaStream_t stream) const {
    FULCRUM_CUDA_CHECK(cudaGraphLaunch(executable_, stream));
  }

 private:
  cudaGraphExec_t executable_ = nullptr;
};

/// Waits for `stop`.
inline double elapsed_seconds(cudaEvent_t start, cudaEvent_t stop) {
  float milliseconds = 0;
  FULCRUM_CUDA_CHECK(cudaEventSynchronize(stop));
  FULCRUM_CUDA_CHECK(cudaEventElapsedTime(&milliseconds, start, stop));
  return 1e-3 * static_cast<double>(milliseconds);
}

}  // namespace fulcrum::replay
