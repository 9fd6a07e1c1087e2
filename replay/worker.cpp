#include "replay/worker.h"

#include <algorithm>
#include <cstdio>
#include <stdexcept>

#include "kernels/common/check.h"

namespace fulcrum::replay {
namespace {

std::string format_uuid(const cudaUUID_t& uuid) {
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    char hex[4];
    std::snprintf(hex, sizeof hex, "%02x", static_cast<unsigned char>(uuid.bytes[i]));
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += hex;
  }
  return text;
}

void run_checked(EntryResult& result, const WorkerOptions& options, const Session& session,
                 const Nvml& nvml) {
  const PlanItem& item = result.item;
  const KernelEntry& kernel = *item.kernel;
  const DeviceTraits traits{.compute_capability = session.compute_capability,
                            .num_sms = session.num_sms,
                            .l2_bytes = session.l2_bytes,
                            .memory_bytes = session.memory_bytes,
                            .shared_memory_per_block_bytes = session.shared_memory_per_block_bytes};
  result.claim = kernel.claim(item.shape);
  if (const auto why = kernel.unsupported(item.shape, traits)) {
    result.status = EntryStatus::kSkipped;
    result.reason = *why;
    return;
  }
  const bool cold = item.time && item.cache == CacheState::kCold;
  result.num_sets =
      cold ? sets_for_cold(kernel.rotating_bytes(item.shape), static_cast<double>(session.l2_bytes))
           : 1;
  const auto instance =
      kernel.make(item.shape, {.num_sets = result.num_sets, .seed = options.seed});
  FULCRUM_CUDA_CHECK(cudaDeviceSynchronize());
  if (item.verify) {
    result.verification = instance->verify(nullptr);
    if (!result.verification->passed()) {
      result.status = EntryStatus::kFailed;
      result.reason = "outputs differ from the reference: " + result.verification->worst;
      return;
    }
    result.status = EntryStatus::kVerified;
  }
  if (!item.time) return;
  const TimingOptions timing_options{
      .cache = item.cache, .launch = item.launch, .stopping = options.stopping};
  const auto launch = [&](int set, cudaStream_t stream) { instance->launch(set, stream); };
  result.timing = measure(timing_options, result.num_sets, launch, nvml);
  if (result.timing->throttled()) {
    // Once more, in case the reason was a passing one; the second reading stands.
    result.timing = measure(timing_options, result.num_sets, launch, nvml);
  }
  result.status = EntryStatus::kOk;
  if (result.timing->throttled()) {
    result.status = EntryStatus::kThrottled;
    result.reason = "the device reported throttling before or after the samples";
  } else if (is_noisy(result.timing->summary, result.timing->stop_reason)) {
    result.status = EntryStatus::kNoisy;
    result.reason = "the middle 80 % of samples spreads over more than 10 % of the median";
  }
}

}  // namespace

std::string pci_bus_id() {
  char text[32] = {};
  FULCRUM_CUDA_CHECK(cudaDeviceGetPCIBusId(text, sizeof text, 0));
  return text;
}

Session describe_device() {
  int count = 0;
  const cudaError_t code = cudaGetDeviceCount(&count);
  if (code != cudaSuccess || count == 0) {
    throw std::runtime_error(std::string("no usable GPU: ") + (code == cudaSuccess
                                                                   ? "device count is 0"
                                                                   : cudaGetErrorString(code)));
  }
  cudaDeviceProp properties{};
  FULCRUM_CUDA_CHECK(cudaGetDeviceProperties(&properties, 0));
  Session session;
  session.device_name = properties.name;
  session.device_uuid = format_uuid(properties.uuid);
  session.compute_capability = 10 * properties.major + properties.minor;
  session.num_sms = properties.multiProcessorCount;
  session.l2_bytes = properties.l2CacheSize;
  session.memory_bytes = static_cast<std::int64_t>(properties.totalGlobalMem);
  session.shared_memory_per_block_bytes =
      static_cast<std::int64_t>(properties.sharedMemPerBlockOptin);
  FULCRUM_CUDA_CHECK(cudaRuntimeGetVersion(&session.cuda_runtime_version));
  const Nvml nvml(pci_bus_id());
  session.nvml_absence = nvml.absence();
  session.driver_version = nvml.driver_version().value_or("");
  session.power_limit_watts = nvml.power_limit_watts();
  return session;
}

EntryResult run_item(const PlanItem& item, const WorkerOptions& options, const Session& session,
                     const Nvml& nvml, bool& context_lost) {
  EntryResult result;
  result.item = item;
  try {
    run_checked(result, options, session, nvml);
  } catch (const kernels::CudaError& error) {
    result.status = EntryStatus::kFailed;
    result.reason = error.what();
    context_lost = error.sticky();
  } catch (const Unsupported& why) {
    result.status = EntryStatus::kSkipped;
    result.reason = why.what();
  } catch (const std::exception& error) {
    result.status = EntryStatus::kFailed;
    result.reason = error.what();
  }
  return result;
}

}  // namespace fulcrum::replay
