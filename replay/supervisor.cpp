#include "replay/supervisor.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <stdexcept>

namespace fulcrum::replay {
namespace {

using Clock = std::chrono::steady_clock;

void write_all(int descriptor, const std::string& text) {
  std::size_t written = 0;
  while (written < text.size()) {
    const ssize_t n = ::write(descriptor, text.data() + written, text.size() - written);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) _exit(4);  // The parent is gone; nobody is left to tell.
    written += static_cast<std::size_t>(n);
  }
}

std::string describe_status(int status) {
  if (WIFSIGNALED(status)) {
    return std::string("killed by signal ") + strsignal(WTERMSIG(status));
  }
  return "exited with code " + std::to_string(WEXITSTATUS(status));
}

// A child and the pipe that its lines come through.
class Child {
 public:
  explicit Child(const std::function<void(int descriptor)>& body) {
    int ends[2];
    if (pipe(ends) != 0) throw std::runtime_error(std::string("pipe: ") + std::strerror(errno));
    process_ = fork();
    if (process_ < 0) throw std::runtime_error(std::string("fork: ") + std::strerror(errno));
    if (process_ == 0) {
      close(ends[0]);
      signal(SIGINT, SIG_IGN);  // The terminal signals the whole group; the parent decides.
      body(ends[1]);
      _exit(0);  // No destructors of the parent's objects.
    }
    close(ends[1]);
    descriptor_ = ends[0];
  }
  ~Child() {
    if (!reaped_) {
      kill(process_, SIGKILL);
      reap();
    }
    close(descriptor_);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  enum class Read { kLine, kTimeout, kClosed };
  // Waits up to `wait_seconds` for a whole line.
  Read read_line(std::string& line, double wait_seconds) {
    const auto deadline = Clock::now() + std::chrono::duration<double>(wait_seconds);
    while (true) {
      if (const std::size_t end = buffer_.find('\n'); end != std::string::npos) {
        line = buffer_.substr(0, end);
        buffer_.erase(0, end + 1);
        return Read::kLine;
      }
      const double left = std::chrono::duration<double>(deadline - Clock::now()).count();
      if (left <= 0) return Read::kTimeout;
      pollfd waiting{descriptor_, POLLIN, 0};
      const int ready = poll(&waiting, 1, static_cast<int>(1e3 * left) + 1);
      if (ready < 0 && errno == EINTR) return Read::kTimeout;
      if (ready <= 0) continue;
      char chunk[65536];
      const ssize_t n = ::read(descriptor_, chunk, sizeof chunk);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return Read::kClosed;
      buffer_.append(chunk, static_cast<std::size_t>(n));
    }
  }
  std::string kill_and_describe() {
    kill(process_, SIGKILL);
    return describe_status(reap());
  }
  int reap() {
    int status = 0;
    while (waitpid(process_, &status, 0) < 0 && errno == EINTR) {
    }
    reaped_ = true;
    return status;
  }

 private:
  pid_t process_ = -1;
  int descriptor_ = -1;
  bool reaped_ = false;
  std::string buffer_;
};

constexpr int kStoppedEarly = 3;  // The child finished an item but can run no more.

void child_loop(const std::vector<PlanItem>& items, std::size_t first,
                const std::function<RunItem()>& make_runner, int descriptor) {
  RunItem run;
  try {
    run = make_runner();
  } catch (const std::exception& error) {
    write_all(descriptor, std::string("!") + error.what() + "\n");
    _exit(1);
  }
  for (std::size_t i = first; i < items.size(); ++i) {
    bool stop = false;
    write_all(descriptor, run(items[i], stop) + "\n");
    if (stop) _exit(kStoppedEarly);
  }
}

}  // namespace

bool supervise(const std::vector<PlanItem>& items, const std::function<RunItem()>& make_runner,
               const SupervisorOptions& options, const SupervisorCallbacks& callbacks) {
  std::size_t next = 0;
  while (next < items.size()) {
    Child child([&](int descriptor) { child_loop(items, next, make_runner, descriptor); });
    auto last_result = Clock::now();
    bool alive = true;
    while (alive && next < items.size()) {
      if (callbacks.interrupted()) return false;
      std::string line;
      switch (child.read_line(line, 0.2)) {
        case Child::Read::kLine:
          if (!line.empty() && line.front() == '!') throw std::runtime_error(line.substr(1));
          callbacks.finished(next++, line);
          last_result = Clock::now();
          break;
        case Child::Read::kTimeout: {
          const double waited = std::chrono::duration<double>(Clock::now() - last_result).count();
          if (waited < options.item_timeout_seconds) break;
          child.kill_and_describe();
          callbacks.died(next++, "hung: no result within " +
                                     std::to_string(options.item_timeout_seconds) +
                                     " s, process killed");
          alive = false;
          break;
        }
        case Child::Read::kClosed: {
          const int status = child.reap();
          const bool stopped = WIFEXITED(status) && WEXITSTATUS(status) == kStoppedEarly;
          if (!stopped) callbacks.died(next++, "worker process " + describe_status(status));
          alive = false;
          break;
        }
      }
    }
    if (alive) child.reap();
  }
  return true;
}

std::string run_in_child(const std::function<std::string()>& body, double timeout_seconds) {
  Child child([&](int descriptor) {
    try {
      write_all(descriptor, body() + "\n");
    } catch (const std::exception& error) {
      write_all(descriptor, std::string("!") + error.what() + "\n");
    }
  });
  std::string line;
  switch (child.read_line(line, timeout_seconds)) {
    case Child::Read::kLine:
      if (!line.empty() && line.front() == '!') throw std::runtime_error(line.substr(1));
      return line;
    case Child::Read::kTimeout:
      throw std::runtime_error("the device did not answer within " +
                               std::to_string(timeout_seconds) + " s");
    case Child::Read::kClosed:
      break;
  }
  throw std::runtime_error("the probing process " + describe_status(child.reap()));
}

}  // namespace fulcrum::replay
