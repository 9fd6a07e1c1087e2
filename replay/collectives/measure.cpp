#include "replay/collectives/measure.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "replay/collectives/communicator.h"
#include "replay/collectives/peer_group.h"
#include "replay/cuda_handles.h"
#include "replay/spin.h"

namespace fulcrum::replay::collectives {
namespace {

/// Hides the host's launches: long enough to enqueue what follows.
constexpr std::int64_t kSpinNanoseconds = 60'000;
/// Well above the microseconds by which ranks miss each other anyway.
constexpr std::int64_t kInjectedNanoseconds = 100'000;
constexpr std::size_t kBytesPerElement = 2;

double median(std::vector<double> values) { return summarize(values).median_seconds; }

std::string device_pci_bus_id(int device) {
  char text[32] = {};
  FULCRUM_CUDA_CHECK(cudaDeviceGetPCIBusId(text, sizeof text, device));
  return text;
}

class Rank {
 public:
  Rank(Team& team, const Setting& setting, const MeasureOptions& options, const Patterns& patterns)
      : team_(team), setting_(setting), options_(options), patterns_(patterns) {
    FULCRUM_CUDA_CHECK(cudaSetDevice(team.device()));
    std::int64_t largest = 0;
    for (const std::int64_t size : options.sizes_bytes) {
      largest = std::max(largest, message_bytes(setting.operation, size, team.size()));
    }
    if (setting.carrier == Carrier::kNccl) {
      nccl_ = std::make_unique<Communicator>(team);
    } else {
      peers_ = std::make_unique<PeerGroup>(team, largest);
      times_ = kernels::DeviceBuffer<kernels::PeerTimes>(1);
    }
    const std::size_t elements = static_cast<std::size_t>(largest) / kBytesPerElement;
    in_ = kernels::DeviceBuffer<std::uint16_t>(elements);
    out_ = kernels::DeviceBuffer<std::uint16_t>(elements);
    const auto& message = patterns.message[static_cast<std::size_t>(team.rank())];
    in_.upload({message.begin(), message.begin() + static_cast<std::ptrdiff_t>(elements)});
    nvml_ = std::make_unique<Nvml>(device_pci_bus_id(team.device()));
    stream_ = std::make_unique<OwnedStream>();
    start_ = std::make_unique<OwnedEvent>();
    stop_ = std::make_unique<OwnedEvent>();
  }

  std::vector<CollectiveResult> measure() {
    std::vector<CollectiveResult> results;
    for (const std::int64_t size : options_.sizes_bytes) {
      bytes_ = message_bytes(setting_.operation, size, team_.size());
      const auto elements = static_cast<std::size_t>(bytes_) / kBytesPerElement;
      count_ = setting_.operation == Operation::kAllReduce
                   ? elements
                   : elements / static_cast<std::size_t>(team_.size());
      CollectiveResult base;
      base.setting = setting_;
      base.num_ranks = team_.size();
      base.bytes = bytes_;
      check(base, [&] { enqueue(nullptr); });
      if (base.elements_wrong > 0) {
        base.status = "failed";
        base.reason = std::to_string(base.elements_wrong) + " of " +
                      std::to_string(base.elements_checked) + " elements are wrong";
        results.push_back(base);
        continue;
      }
      for (const LaunchKind launch : options_.launches) {
        base.launch = launch;
        results.push_back(time(base));
      }
      if (options_.delayed_size_bytes == size && has_single()) {
        base.launch = LaunchKind::kSingle;
        base.injected_delay_seconds = 1e-9 * static_cast<double>(kInjectedNanoseconds);
        results.push_back(time(base));
      }
    }
    return results;
  }

 private:
  bool has_single() const {
    return std::find(options_.launches.begin(), options_.launches.end(), LaunchKind::kSingle) !=
           options_.launches.end();
  }

  void enqueue(kernels::PeerTimes* times) {
    if (nccl_) {
      if (setting_.operation == Operation::kAllReduce) {
        nccl_->all_reduce(in_.data(), out_.data(), count_, NcclType::kBfloat16, *stream_);
      } else {
        nccl_->all_gather(in_.data(), out_.data(), count_, NcclType::kBfloat16, *stream_);
      }
      return;
    }
    peers_->all_reduce(
        {.in = in_.data(),
         .out = out_.data(),
         .count = static_cast<std::int64_t>(count_),
         .type = kernels::PeerType::kBfloat16,
         .algorithm = setting_.carrier == Carrier::kPeerOneShot ? kernels::PeerAlgorithm::kOneShot
                                                                : kernels::PeerAlgorithm::kTwoShot,
         .times = times},
        *stream_);
  }

  /// Every element of every rank, from a poisoned output.
  void check(CollectiveResult& result, const std::function<void()>& run) {
    out_.poison();
    FULCRUM_CUDA_CHECK(cudaDeviceSynchronize());
    team_.barrier();
    run();
    FULCRUM_CUDA_CHECK(cudaStreamSynchronize(*stream_));
    const auto elements = static_cast<std::size_t>(bytes_) / kBytesPerElement;
    std::vector<std::uint16_t> host(elements);
    FULCRUM_CUDA_CHECK(cudaMemcpy(host.data(), out_.data(), static_cast<std::size_t>(bytes_),
                                  cudaMemcpyDeviceToHost));
    const std::size_t wrong = count_wrong(patterns_, setting_.operation, count_, host);
    const double own = static_cast<double>(wrong);
    for (const auto& ranks_wrong : team_.all_gather_values(std::span(&own, 1))) {
      result.elements_wrong += static_cast<std::int64_t>(ranks_wrong[0]);
      result.elements_checked += static_cast<std::int64_t>(elements);
    }
  }

  std::vector<double> by_rank(double own) {
    std::vector<double> values;
    for (const auto& value : team_.all_gather_values(std::span(&own, 1))) {
      values.push_back(value[0]);
    }
    return values;
  }

  /// Time of `run` on this rank's stream, from its own start.
  double timed(bool behind_spin, std::int64_t delay_nanoseconds, const std::function<void()>& run) {
    team_.barrier();
    if (behind_spin) {
      FULCRUM_CUDA_CHECK(launch_spin(kSpinNanoseconds + delay_nanoseconds, *stream_));
    }
    FULCRUM_CUDA_CHECK(cudaEventRecord(*start_, *stream_));
    run();
    FULCRUM_CUDA_CHECK(cudaEventRecord(*stop_, *stream_));
    return elapsed_seconds(*start_, *stop_);
  }

  int launches_per_sample() {
    constexpr int kProbes = 3;
    const auto probe = [&] {
      for (int i = 0; i < kProbes; ++i) enqueue(nullptr);
    };
    (void)timed(true, 0, probe);
    const std::vector<double> seconds = by_rank(timed(true, 0, probe) / kProbes);
    const double estimate_seconds =
        std::max(1e-7, *std::max_element(seconds.begin(), seconds.end()));
    return static_cast<int>(std::clamp(std::ceil(options_.sample_seconds / estimate_seconds), 1.0,
                                       static_cast<double>(options_.max_launches_per_sample)));
  }

  CollectiveResult time(CollectiveResult result) {
    const bool single = result.launch == LaunchKind::kSingle;
    const int launches = single ? 1 : launches_per_sample();
    const auto chain = [&] {
      for (int i = 0; i < launches; ++i) enqueue(nullptr);
    };
    std::unique_ptr<OwnedGraph> graph;
    std::function<void()> run = chain;
    if (result.launch == LaunchKind::kGraph) {
      graph = std::make_unique<OwnedGraph>(*stream_, chain);
      run = [&] { graph->launch(*stream_); };
      check(result, run);
    } else if (single) {
      run = [&] { enqueue(peers_ ? times_.data() : nullptr); };
    }
    const bool behind_spin = result.launch != LaunchKind::kEager;
    const std::int64_t delay =
        result.injected_delay_seconds && team_.rank() == 0 ? kInjectedNanoseconds : 0;
    for (int warm_up = 0; warm_up < 2; ++warm_up) (void)timed(behind_spin, 0, run);
    result.launches_per_sample = launches;
    result.before = nvml_->read();
    take_samples(result, behind_spin, delay, run);
    result.after = nvml_->read();
    FULCRUM_CUDA_CHECK(cudaStreamSynchronize(*stream_));
    judge(result);
    return result;
  }

  void take_samples(CollectiveResult& result, bool behind_spin, std::int64_t delay,
                    const std::function<void()>& run) {
    const bool single = result.launch == LaunchKind::kSingle;
    const std::size_t num_ranks = static_cast<std::size_t>(team_.size());
    std::vector<std::vector<double>> meet(num_ranks);
    std::vector<std::vector<double>> move(num_ranks);
    double total_seconds = 0;
    while (result.stop_reason == StopReason::kContinue) {
      // All ranks see all durations and so decide alike when to stop.
      const std::vector<double> seconds = by_rank(timed(behind_spin, delay, run));
      const auto [shortest, longest] = std::minmax_element(seconds.begin(), seconds.end());
      result.samples_seconds.push_back(*shortest / result.launches_per_sample);
      if (single) result.wait_samples_seconds.push_back(*longest - *shortest);
      if (single && peers_) {
        const kernels::PeerTimes times = times_.download()[0];
        const auto nanoseconds = [](std::uint64_t from, std::uint64_t to) {
          return 1e-9 * static_cast<double>(to - from);
        };
        const double own[2] = {nanoseconds(times.entered, times.met),
                               nanoseconds(times.met, times.done)};
        const auto all = team_.all_gather_values(own);
        for (std::size_t r = 0; r < num_ranks; ++r) {
          meet[r].push_back(all[r][0]);
          move[r].push_back(all[r][1]);
        }
      }
      total_seconds += *longest;
      result.summary = summarize(result.samples_seconds);
      result.stop_reason = should_stop(options_.stopping, result.summary, total_seconds);
    }
    if (single && peers_) {
      for (std::size_t r = 0; r < num_ranks; ++r) {
        result.meet_seconds_by_rank.push_back(median(meet[r]));
        result.move_seconds_by_rank.push_back(median(move[r]));
      }
    }
  }

  void judge(CollectiveResult& result) {
    const std::uint64_t own =
        (result.before.throttle_reasons.value_or(0) | result.after.throttle_reasons.value_or(0)) &
        kThrottleMask;
    bool throttled = false;
    for (const double bits : by_rank(static_cast<double>(own))) throttled |= bits != 0.0;
    if (result.elements_wrong > 0) {
      result.status = "failed";
      result.reason = std::to_string(result.elements_wrong) + " of " +
                      std::to_string(result.elements_checked) + " elements are wrong in the graph";
    } else if (throttled) {
      result.status = "throttled";
      result.reason = "a device reported throttling before or after the samples";
    } else if (is_noisy(result.summary, result.stop_reason)) {
      result.status = "noisy";
      result.reason = "the middle 80 % of samples spreads over more than 10 % of the median";
    }
  }

  Team& team_;
  const Setting& setting_;
  const MeasureOptions& options_;
  const Patterns& patterns_;
  kernels::DeviceBuffer<std::uint16_t> in_;
  kernels::DeviceBuffer<std::uint16_t> out_;
  kernels::DeviceBuffer<kernels::PeerTimes> times_;
  std::unique_ptr<Communicator> nccl_;
  std::unique_ptr<PeerGroup> peers_;
  std::unique_ptr<Nvml> nvml_;
  std::unique_ptr<OwnedStream> stream_;
  std::unique_ptr<OwnedEvent> start_;
  std::unique_ptr<OwnedEvent> stop_;
  std::int64_t bytes_ = 0;
  std::size_t count_ = 0;
};

}  // namespace

std::vector<CollectiveResult> measure_setting(Team& team, const Setting& setting,
                                              const MeasureOptions& options,
                                              const Patterns& patterns) {
  return Rank(team, setting, options, patterns).measure();
}

}  // namespace fulcrum::replay::collectives
