// A star of TCP connections around rank 0. Host traffic only: addresses, handles, timings.
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <thread>
#include <utility>

#include "replay/collectives/team.h"

namespace fulcrum::replay::collectives {
namespace {

using Clock = std::chrono::steady_clock;

class Socket {
 public:
  explicit Socket(int descriptor = -1) : descriptor_(descriptor) {}
  ~Socket() {
    if (descriptor_ >= 0) (void)close(descriptor_);
  }
  Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  int get() const { return descriptor_; }
  bool open() const { return descriptor_ >= 0; }

 private:
  int descriptor_;
};

[[noreturn]] void fail(const std::string& what) {
  throw std::runtime_error(what + ": " + std::strerror(errno));
}

void set_options(int descriptor, double timeout_seconds) {
  const int one = 1;
  (void)setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  const auto whole = static_cast<time_t>(timeout_seconds);
  const timeval limit{.tv_sec = whole, .tv_usec = 0};
  (void)setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  (void)setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

void send_all(const Socket& socket, const void* data, std::size_t size, const std::string& peer) {
  const char* next = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t sent = send(socket.get(), next, size, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) fail("sending to " + peer);
    next += sent;
    size -= static_cast<std::size_t>(sent);
  }
}

void receive_all(const Socket& socket, void* data, std::size_t size, const std::string& peer) {
  char* next = static_cast<char*>(data);
  while (size > 0) {
    const ssize_t got = recv(socket.get(), next, size, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got == 0) throw std::runtime_error(peer + " closed the connection");
    if (got < 0) fail("waiting for " + peer);
    next += got;
    size -= static_cast<std::size_t>(got);
  }
}

// Ranks of one job run the same program on the same kind of machine: native byte order.
void send_text(const Socket& socket, const std::string& text, const std::string& peer) {
  const std::uint64_t size = text.size();
  send_all(socket, &size, sizeof size, peer);
  send_all(socket, text.data(), text.size(), peer);
}

// An exchange is a few kilobytes per rank; more is a stranger on the port.
constexpr std::uint64_t kMaxMessageBytes = std::uint64_t{1} << 26U;

std::string receive_text(const Socket& socket, const std::string& peer) {
  std::uint64_t size = 0;
  receive_all(socket, &size, sizeof size, peer);
  if (size > kMaxMessageBytes) throw std::runtime_error(peer + " does not speak this protocol");
  std::string text(size, '\0');
  receive_all(socket, text.data(), text.size(), peer);
  return text;
}

struct Greeting {
  char magic[8] = {'f', 'u', 'l', 'c', 'r', 'u', 'm', '1'};
  std::uint32_t meeting = 0;
  std::int32_t rank = 0;
  std::int32_t size = 0;
};

class ProcessTeam final : public Team {
 public:
  ProcessTeam(const ProcessRank& self, std::vector<Socket> peers)
      : self_(self), peers_(std::move(peers)) {}
  int rank() const override { return self_.rank; }
  int size() const override { return self_.size; }
  int device() const override { return self_.local_rank; }
  bool one_process() const override { return self_.size == 1; }
  std::vector<std::string> all_gather(const std::string& bytes) override {
    std::vector<std::string> all(static_cast<std::size_t>(self_.size));
    all[static_cast<std::size_t>(self_.rank)] = bytes;
    if (self_.rank == 0) {
      for (int r = 1; r < self_.size; ++r) at(all, r) = receive_text(peer(r), name(r));
      for (int r = 1; r < self_.size; ++r) {
        for (const std::string& text : all) send_text(peer(r), text, name(r));
      }
    } else {
      send_text(peer(0), bytes, name(0));
      for (std::string& text : all) text = receive_text(peer(0), name(0));
    }
    return all;
  }
  void barrier() override { (void)all_gather(std::string()); }

 private:
  static std::string name(int rank) { return "rank " + std::to_string(rank); }
  static std::string& at(std::vector<std::string>& all, int rank) {
    return all[static_cast<std::size_t>(rank)];
  }
  const Socket& peer(int rank) const { return peers_[static_cast<std::size_t>(rank)]; }

  ProcessRank self_;
  std::vector<Socket> peers_;  ///< rank 0: one per other rank, at its index; others: [0] only
};

double seconds_left(Clock::time_point deadline) {
  return std::chrono::duration<double>(deadline - Clock::now()).count();
}

Socket listen_on(std::uint16_t port) {
  // Dual-stack where there is IPv6: IPv4 peers arrive as mapped addresses.
  Socket listener(socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const bool six = listener.open();
  if (!six) listener = Socket(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!listener.open()) fail("opening a socket");
  const int one = 1;
  const int zero = 0;
  (void)setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (six) (void)setsockopt(listener.get(), IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof zero);
  sockaddr_in6 any6{};
  any6.sin6_family = AF_INET6;
  any6.sin6_addr = in6addr_any;
  any6.sin6_port = htons(port);
  sockaddr_in any4{};
  any4.sin_family = AF_INET;
  any4.sin_port = htons(port);
  const auto* address =
      six ? reinterpret_cast<const sockaddr*>(&any6) : reinterpret_cast<const sockaddr*>(&any4);
  const socklen_t size = six ? sizeof any6 : sizeof any4;
  const bool bound = bind(listener.get(), address, size) == 0;
  if (!bound || listen(listener.get(), 1024) != 0) {
    fail("rank 0 cannot listen on port " + std::to_string(port));
  }
  return listener;
}

std::vector<Socket> gather_peers(const ProcessRank& self, std::uint32_t meeting,
                                 Clock::time_point deadline, double timeout_seconds) {
  std::vector<Socket> peers(static_cast<std::size_t>(self.size));
  const Socket listener = listen_on(self.master_port);
  int missing = self.size - 1;
  while (missing > 0) {
    pollfd waiting{.fd = listener.get(), .events = POLLIN, .revents = 0};
    const double left = seconds_left(deadline);
    if (left <= 0.0 || poll(&waiting, 1, static_cast<int>(1e3 * left)) == 0) {
      throw std::runtime_error(std::to_string(missing) + " of " + std::to_string(self.size) +
                               " ranks did not reach rank 0 on port " +
                               std::to_string(self.master_port));
    }
    Socket peer(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!peer.open()) continue;
    set_options(peer.get(), timeout_seconds);
    Greeting greeting;
    receive_all(peer, &greeting, sizeof greeting, "a connecting rank");
    const Greeting expected{.meeting = meeting, .rank = greeting.rank, .size = self.size};
    const bool known = greeting.rank > 0 && greeting.rank < self.size;
    if (std::memcmp(&greeting, &expected, sizeof greeting) != 0 || !known ||
        peers[static_cast<std::size_t>(greeting.rank)].open()) {
      throw std::runtime_error("a rank of another job, or a rank twice, on port " +
                               std::to_string(self.master_port));
    }
    peers[static_cast<std::size_t>(greeting.rank)] = std::move(peer);
    --missing;
  }
  return peers;
}

Socket connect_once(const ProcessRank& self) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const std::string port = std::to_string(self.master_port);
  if (const int code = getaddrinfo(self.master_address.c_str(), port.c_str(), &hints, &found);
      code != 0) {
    throw std::runtime_error("MASTER_ADDR " + self.master_address + ": " + gai_strerror(code));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, &freeaddrinfo);
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    Socket candidate(socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC, at->ai_protocol));
    if (candidate.open() && connect(candidate.get(), at->ai_addr, at->ai_addrlen) == 0) {
      return candidate;
    }
  }
  return Socket();
}

}  // namespace

std::unique_ptr<Team> join_processes(const ProcessRank& self, std::uint32_t meeting,
                                     double timeout_seconds) {
  const auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                           std::chrono::duration<double>(timeout_seconds));
  if (self.rank == 0) {
    return std::make_unique<ProcessTeam>(self,
                                         gather_peers(self, meeting, deadline, timeout_seconds));
  }
  std::vector<Socket> peers;
  Socket root = connect_once(self);
  while (!root.open()) {
    if (seconds_left(deadline) <= 0.0) {
      throw std::runtime_error("rank 0 does not answer at " + self.master_address + ":" +
                               std::to_string(self.master_port));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    root = connect_once(self);
  }
  set_options(root.get(), timeout_seconds);
  const Greeting greeting{.meeting = meeting, .rank = self.rank, .size = self.size};
  send_all(root, &greeting, sizeof greeting, "rank 0");
  peers.push_back(std::move(root));
  return std::make_unique<ProcessTeam>(self, std::move(peers));
}

}  // namespace fulcrum::replay::collectives
