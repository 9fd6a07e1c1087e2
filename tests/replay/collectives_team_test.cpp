#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <thread>

#include "replay/collectives/team.h"

namespace fulcrum::replay::collectives {
namespace {

// A port that was free a moment ago.
std::uint16_t free_port() {
  const int descriptor = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  EXPECT_EQ(bind(descriptor, reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &size), 0);
  (void)close(descriptor);
  return ntohs(address.sin_port);
}

void expect_everyone_hears_everyone(Team& team) {
  for (int round = 0; round < 50; ++round) {
    const std::string own(static_cast<std::size_t>(team.rank() + round), 'x');
    const std::vector<std::string> all = team.all_gather(own);
    ASSERT_EQ(all.size(), static_cast<std::size_t>(team.size()));
    for (std::size_t r = 0; r < all.size(); ++r) {
      EXPECT_EQ(all[r].size(), r + static_cast<std::size_t>(round));
    }
  }
  EXPECT_EQ(team.broadcast(team.rank() == 1 ? "from one" : "ignored", 1), "from one");
  const std::array<double, 2> values = {1.5 * team.rank(), -1.0};
  const auto gathered = team.all_gather_values(values);
  EXPECT_DOUBLE_EQ(gathered[1][0], 1.5);
  EXPECT_EQ(gathered[0].size(), 2u);
}

TEST(ThreadTeam, ExchangesInRankOrder) { run_threads({0, 1, 2}, expect_everyone_hears_everyone); }

TEST(ThreadTeam, NobodyLeavesABarrierBeforeAllHaveArrived) {
  std::atomic<int> arrived{0};
  run_threads({0, 1, 2, 3}, [&](Team& team) {
    for (int round = 1; round <= 200; ++round) {
      arrived.fetch_add(1);
      team.barrier();
      EXPECT_GE(arrived.load(), 4 * round);
      team.barrier();
    }
  });
}

TEST(ThreadTeam, GivesTheDevicesInOrder) {
  run_threads({3, 1}, [](Team& team) { EXPECT_EQ(team.device(), team.rank() == 0 ? 3 : 1); });
}

TEST(ThreadTeam, AThrowingRankFreesTheOthersAndIsReported) {
  try {
    run_threads({0, 1, 2}, [](Team& team) {
      if (team.rank() == 1) throw std::runtime_error("rank 1 is out of memory");
      team.barrier();
    });
    FAIL() << "no exception";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "rank 1 is out of memory");
  }
}

TEST(ProcessTeam, ExchangesInRankOrderOverTcp) {
  const std::uint16_t port = free_port();
  std::vector<std::thread> ranks;
  for (int r = 2; r >= 0; --r) {  // Rank 0 last: the others must wait for its port.
    ranks.emplace_back([=] {
      const auto team =
          join_processes({.rank = r, .size = 3, .local_rank = r, .master_port = port}, 7, 20.0);
      EXPECT_FALSE(team->one_process());
      EXPECT_EQ(team->device(), r);
      expect_everyone_hears_everyone(*team);
      team->barrier();
    });
  }
  for (std::thread& rank : ranks) rank.join();
}

TEST(ProcessTeam, SaysHowManyRanksAreMissing) {
  try {
    (void)join_processes({.rank = 0, .size = 3, .master_port = free_port()}, 0, 0.2);
    FAIL() << "no exception";
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find("2 of 3 ranks did not reach rank 0"),
              std::string::npos)
        << error.what();
  }
}

TEST(ProcessTeam, SaysWhereRankZeroWasSought) {
  const std::uint16_t port = free_port();
  try {
    (void)join_processes({.rank = 1, .size = 2, .master_port = port}, 0, 0.2);
    FAIL() << "no exception";
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find("127.0.0.1:" + std::to_string(port)),
              std::string::npos);
  }
}

TEST(ProcessTeam, RefusesARankOfAnotherMeeting) {
  const std::uint16_t port = free_port();
  std::thread stranger([=] {
    try {
      const auto team = join_processes({.rank = 1, .size = 2, .master_port = port}, 2, 5.0);
      (void)team->all_gather(std::string());
    } catch (const std::runtime_error&) {
      return;  // Turned away.
    }
    ADD_FAILURE() << "a rank of meeting 2 was let into meeting 1";
  });
  EXPECT_THROW((void)join_processes({.rank = 0, .size = 2, .master_port = port}, 1, 5.0),
               std::runtime_error);
  stranger.join();
}

}  // namespace
}  // namespace fulcrum::replay::collectives
