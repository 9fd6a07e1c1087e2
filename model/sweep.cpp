#include "model/sweep.h"

#include <algorithm>
#include <exception>
#include <thread>

namespace fulcrum {
namespace {

SweepRow row_of(const Throughput& point, double busy_replicas) {
  SweepRow row;
  row.batch_limiter = point.batch.limiter;
  if (point.batch.requests < 1.0) return row;
  row.effective_batch = point.batch.requests * busy_replicas;
  row.accept_length = point.accept_length;
  row.step_seconds = log_normal_interval(point.step_seconds, point.step_log_sigma);
  row.tpot_seconds = log_normal_interval(point.tpot_seconds, point.log_sigma);
  row.ttft_seconds = log_normal_interval(point.ttft_seconds, point.log_sigma);
  row.output_tokens_per_second =
      log_normal_interval(point.output_tokens_per_second, point.log_sigma);
  return row;
}

}  // namespace

void for_parts(
    std::size_t count, int num_threads,
    const std::function<void(std::size_t part, std::size_t begin, std::size_t end)>& work) {
  const std::size_t parts =
      std::clamp<std::size_t>(count, 1, static_cast<std::size_t>(std::max(1, num_threads)));
  if (parts == 1) {
    work(0, 0, count);
    return;
  }
  std::vector<std::exception_ptr> failures(parts);
  std::vector<std::thread> threads;
  for (std::size_t part = 0; part < parts; ++part) {
    threads.emplace_back([&, part] {
      try {
        work(part, count * part / parts, count * (part + 1) / parts);
      } catch (...) {
        failures[part] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

SweepRunner::SweepRunner(const Deployment& deployment, int num_threads)
    : replicas_(deployment.replicas()) {
  for (int i = 0; i < std::max(1, num_threads); ++i) pricers_.emplace_back(deployment);
}

void SweepRunner::run(std::span<const SweepPoint> points, std::span<SweepRow> rows) {
  for_parts(points.size(), static_cast<int>(pricers_.size()),
            [&](std::size_t part, std::size_t begin, std::size_t end) {
              for (std::size_t i = begin; i < end; ++i) {
                const SweepPoint& p = points[i];
                const Throughput priced =
                    pricers_[part].at(p.concurrency, p.input_tokens, p.output_tokens);
                rows[i] = row_of(priced, std::min(replicas_, p.concurrency));
              }
            });
}

}  // namespace fulcrum
