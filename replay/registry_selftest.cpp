// The instrument's own entries (family "selftest") and deliberate faults (family "fault", in no
// plan).
#include "kernels/common/device_buffer.h"
#include "replay/registry.h"
#include "replay/spin.h"

namespace fulcrum::replay {
namespace {

kernels::Claim no_claim(const Shape&) { return {}; }
double no_bytes(const Shape&) { return 0; }
std::optional<std::string> runs_anywhere(const Shape&, const DeviceTraits&) { return std::nullopt; }

// These have no output to compare; one launch that completes counts as one element.
class SelfTestCase : public Case {
 public:
  Verification verify(cudaStream_t stream) override {
    launch(0, stream);
    FULCRUM_CUDA_CHECK(cudaStreamSynchronize(stream));
    Verification done;
    done.num_elements = 1;
    return done;
  }
};

class SpinCase : public SelfTestCase {
 public:
  explicit SpinCase(std::int64_t nanoseconds) : nanoseconds_(nanoseconds) {}
  void launch(int, cudaStream_t stream) override {
    FULCRUM_CUDA_CHECK(launch_spin(nanoseconds_, stream));
  }

 private:
  std::int64_t nanoseconds_;
};

class EmptyCase : public SelfTestCase {
 public:
  void launch(int, cudaStream_t stream) override { FULCRUM_CUDA_CHECK(launch_empty(stream)); }
};

class IllegalAddressCase : public SelfTestCase {
 public:
  void launch(int, cudaStream_t stream) override {
    FULCRUM_CUDA_CHECK(launch_illegal_write(stream));
  }
};

class HangCase : public SelfTestCase {
 public:
  HangCase() : flag_(1) { flag_.zero(); }
  void launch(int, cudaStream_t stream) override {
    FULCRUM_CUDA_CHECK(launch_hang(flag_.data(), stream));
  }

 private:
  kernels::DeviceBuffer<std::int32_t> flag_;
};

class OutOfMemoryCase : public EmptyCase {
 public:
  // One byte array larger than any device.
  OutOfMemoryCase() : buffer_(std::size_t{1} << 46) {}

 private:
  kernels::DeviceBuffer<std::uint8_t> buffer_;
};

template <typename CaseType>
std::unique_ptr<Case> make_plain(const Shape&, const CaseOptions&) {
  return std::make_unique<CaseType>();
}

KernelEntry entry(const char* name, const char* family, const char* summary,
                  std::unique_ptr<Case> (*make)(const Shape&, const CaseOptions&)) {
  return {.name = name,
          .family = family,
          .summary = summary,
          .dimensions = {},
          .claim = no_claim,
          .rotating_bytes = no_bytes,
          .unsupported = runs_anywhere,
          .make = make,
          .verify_shapes = "",
          .calibration_shapes = ""};
}

}  // namespace

std::vector<KernelEntry> selftest_entries() {
  KernelEntry empty =
      entry("empty", "selftest", "an empty kernel: the launch floor", make_plain<EmptyCase>);
  empty.calibration_shapes = std::string(";");  // One shape without dimensions.
  KernelEntry spin =
      entry("spin", "selftest", "one thread that spins for a known time on %globaltimer",
            [](const Shape& shape, const CaseOptions&) -> std::unique_ptr<Case> {
              return std::make_unique<SpinCase>(shape["ns"]);
            });
  spin.dimensions = {{.name = "ns",
                      .meaning = "duration in nanoseconds",
                      .default_value = 200'000,
                      .min = 1'000,
                      .max = 1'000'000'000}};
  spin.calibration_shapes = std::string("ns=200000;ns=1000000");
  return {empty, spin,
          entry("fault_illegal_address", "fault", "writes outside every allocation",
                make_plain<IllegalAddressCase>),
          entry("fault_hang", "fault", "never ends; the watchdog must", make_plain<HangCase>),
          entry("fault_out_of_memory", "fault", "asks for more memory than any device has",
                make_plain<OutOfMemoryCase>)};
}

}  // namespace fulcrum::replay
