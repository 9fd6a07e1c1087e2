// The yardstick: what the memory system streams.
#include "kernels/elementwise/elementwise_launch.h"
#include "replay/case_parts.h"
#include "replay/registry.h"

namespace fulcrum::replay {
namespace {

using kernels::DeviceBuffer;

template <bool kCopy>
class StreamCase : public Case {
 public:
  StreamCase(const Shape& s, const CaseOptions& o)
      : bytes_(static_cast<std::size_t>(s["kib"]) * 1024),
        in_(bytes_ * static_cast<std::size_t>(o.num_sets)),
        out_(kCopy ? bytes_ : 16) {
    fill_bytes(in_.data(), length(in_), o.seed, nullptr);
  }
  void launch(int set, cudaStream_t stream) override {
    const kernels::StreamProblem problem{.num_bytes = static_cast<std::int64_t>(bytes_),
                                         .in = in_.data() + static_cast<std::size_t>(set) * bytes_,
                                         .out = out_.data()};
    FULCRUM_CUDA_CHECK(kCopy ? kernels::stream_copy(problem, stream)
                             : kernels::stream_read(problem, stream));
  }
  Verification verify(cudaStream_t stream) override {
    out_.poison();
    launch(0, stream);
    FULCRUM_CUDA_CHECK(cudaStreamSynchronize(stream));
    Verification done;
    done.num_elements = 1;  // `read` has no output; that it ends is all there is to check.
    if (!kCopy) return done;
    done.num_elements = static_cast<std::int64_t>(bytes_);
    if (out_.download() != download_prefix(in_, bytes_)) {
      done.num_failed = 1;
      done.worst = "the copy differs from its source";
    }
    return done;
  }

 private:
  std::size_t bytes_;
  DeviceBuffer<std::uint8_t> in_;
  DeviceBuffer<std::uint8_t> out_;
};

}  // namespace

std::vector<KernelEntry> stream_entries() {
  KernelEntry read{
      .name = "stream_read",
      .family = "stream",
      .summary = "contiguous read: the yardstick of read-dominated kernels",
      .dimensions = {dimension("kib", "KiB read", 1 << 20, 1, 1 << 24)},
      .claim = [](const Shape& s) { return kernels::stream_read_claim(1024 * s["kib"]); },
      .rotating_bytes = [](const Shape& s) { return 1024.0 * static_cast<double>(s["kib"]); },
      .unsupported = any_device,
      .make = make_case<StreamCase<false>>,
      .verify_shapes = "kib=1;kib=1000",
      .calibration_shapes =
          "kib=256;kib=1024;kib=2048;kib=4096;kib=8192;kib=16384;kib=65536;"
          "kib=262144;kib=1048576"};
  KernelEntry copy = read;
  copy.name = "stream_copy";
  copy.summary = "contiguous copy, bytes read plus bytes written";
  copy.claim = [](const Shape& s) { return kernels::stream_copy_claim(1024 * s["kib"]); };
  copy.make = make_case<StreamCase<true>>;
  copy.verify_shapes = "kib=1;kib=1000;kib=4099";
  copy.calibration_shapes = "kib=65536;kib=1048576";
  return {read, copy};
}

}  // namespace fulcrum::replay
