#include "replay/collectives/team.h"

#include <atomic>
#include <cstring>
#include <exception>
#include <mutex>
#include <thread>

namespace fulcrum::replay::collectives {

std::string Team::broadcast(const std::string& bytes, int root) {
  return all_gather(rank() == root ? bytes : std::string())[static_cast<std::size_t>(root)];
}

std::vector<std::vector<double>> Team::all_gather_values(std::span<const double> values) {
  const std::string own(reinterpret_cast<const char*>(values.data()), values.size_bytes());
  std::vector<std::vector<double>> result;
  for (const std::string& bytes : all_gather(own)) {
    std::vector<double> decoded(bytes.size() / sizeof(double));
    if (!bytes.empty()) std::memcpy(decoded.data(), bytes.data(), bytes.size());
    result.push_back(std::move(decoded));
  }
  return result;
}

namespace {

// A barrier that spins: condition variables wake the ranks tens of microseconds apart, which would
// be measured as straggling.
class SpinBarrier {
 public:
  explicit SpinBarrier(int size) : size_(size) {}
  void wait() {
    const std::uint64_t round = round_.load(std::memory_order_acquire);
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == size_) {
      arrived_.store(0, std::memory_order_relaxed);
      round_.store(round + 1, std::memory_order_release);
      return;
    }
    while (round_.load(std::memory_order_acquire) == round) {
      if (broken_.load(std::memory_order_relaxed)) throw TeamBroken();
      std::this_thread::yield();
    }
  }
  void break_up() { broken_.store(true); }

 private:
  const int size_;
  std::atomic<int> arrived_{0};
  std::atomic<std::uint64_t> round_{0};
  std::atomic<bool> broken_{false};
};

struct Shared {
  explicit Shared(int size) : barrier(size), slots(static_cast<std::size_t>(size)) {}
  SpinBarrier barrier;
  std::vector<std::string> slots;
};

class ThreadTeam final : public Team {
 public:
  ThreadTeam(Shared& shared, int rank, int device)
      : shared_(shared), rank_(rank), device_(device) {}
  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(shared_.slots.size()); }
  int device() const override { return device_; }
  bool one_process() const override { return true; }
  std::vector<std::string> all_gather(const std::string& bytes) override {
    shared_.slots[static_cast<std::size_t>(rank_)] = bytes;
    shared_.barrier.wait();
    std::vector<std::string> all = shared_.slots;
    shared_.barrier.wait();  // Nobody overwrites a slot that another still copies.
    return all;
  }
  void barrier() override { shared_.barrier.wait(); }

 private:
  Shared& shared_;
  int rank_;
  int device_;
};

}  // namespace

void run_threads(const std::vector<int>& devices, const std::function<void(Team&)>& body) {
  Shared shared(static_cast<int>(devices.size()));
  std::mutex mutex;
  std::exception_ptr first;
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    threads.emplace_back([&, i] {
      try {
        ThreadTeam team(shared, static_cast<int>(i), devices[i]);
        body(team);
      } catch (...) {
        const std::lock_guard<std::mutex> lock(mutex);
        if (!first) first = std::current_exception();
        shared.barrier.break_up();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (first) std::rethrow_exception(first);
}

}  // namespace fulcrum::replay::collectives
