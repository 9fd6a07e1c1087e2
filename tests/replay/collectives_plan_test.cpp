// What `replay collectives` runs, what it expects back, and what it would say beforehand.
#include <gtest/gtest.h>

#include <cmath>

#include "kernels/common/formats.h"
#include "replay/collectives/launcher.h"
#include "replay/collectives/pattern.h"
#include "replay/collectives/prior.h"
#include "replay/collectives/setting.h"
#include "replay/collectives/summary.h"
#include "replay/io/collective_record.h"

namespace fulcrum::replay::collectives {
namespace {

std::string error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

TEST(Settings, AreTheCombinationsThatExist) {
  const auto settings = settings_of({.operations = "all_reduce,all_gather",
                                     .carriers = "nccl,peer_one_shot",
                                     .protocols = "default,LL",
                                     .algorithms = "Ring,Tree",
                                     .channels = "default,2"});
  // All-reduce: 2 protocols x 2 algorithms x 2 channel counts and the peer kernel once; all-gather
  // by ring only.
  EXPECT_EQ(settings.size(), 8u + 1u + 4u);
  EXPECT_EQ(settings[0].name(), "all_reduce nccl default Ring");
  EXPECT_EQ(settings[3].name(), "all_reduce nccl LL Ring 2ch");
  EXPECT_EQ(settings[8].name(), "all_reduce peer_one_shot");
}

TEST(Settings, BecomeNcclsVariablesAndNeverMulticast) {
  const Setting setting{.protocol = "LL128", .algorithm = "Tree", .channels = 4};
  const std::map<std::string, std::string> expected = {{"NCCL_NVLS_ENABLE", "0"},
                                                       {"NCCL_PROTO", "LL128"},
                                                       {"NCCL_ALGO", "Tree"},
                                                       {"NCCL_MIN_NCHANNELS", "4"},
                                                       {"NCCL_MAX_NCHANNELS", "4"}};
  EXPECT_EQ(setting.environment(), expected);
  EXPECT_EQ(Setting{}.environment().size(), 1u);
  EXPECT_TRUE(Setting{.carrier = Carrier::kPeerOneShot}.environment().empty());
}

TEST(Settings, MistakesNameOptionFoundAndAllowed) {
  EXPECT_EQ(error_of([] { (void)settings_of({.protocols = "LL256"}); }),
            "--protocols: found 'LL256', allowed: default, LL, LL128, Simple");
  EXPECT_NE(error_of([] { (void)settings_of({.channels = "0"}); }).find("--channels: found '0'"),
            std::string::npos);
  EXPECT_NE(error_of([] {
              (void)settings_of({.operations = "all_gather", .carriers = "peer_one_shot"});
            }).find("only all-reduce"),
            std::string::npos);
  for (const char* bad : {"", "8", "2G", "x", "4K:", "-1", "2048M", "64K:4K"}) {
    EXPECT_NE(error_of([&] { (void)parse_sizes(bad); }), "") << bad;
  }
  for (const char* bad : {"", "a", "0,0", "-1"}) {
    EXPECT_NE(error_of([&] { (void)parse_devices(bad); }), "") << bad;
  }
}

TEST(Sizes, DoubleFromFirstToLast) {
  EXPECT_EQ(parse_sizes("256:2K"), (std::vector<std::int64_t>{256, 512, 1024, 2048}));
  EXPECT_EQ(parse_sizes("1M,4K,4096"), (std::vector<std::int64_t>{4096, 1048576}));
  EXPECT_EQ(parse_sizes("256:64M").size(), 19u);
}

TEST(Sizes, AreWholePiecesPerRank) {
  EXPECT_EQ(message_bytes(Operation::kAllReduce, 1000, 3), 992);
  EXPECT_EQ(message_bytes(Operation::kAllGather, 1000, 3), 3 * 320);  // 333 -> 320 each
  EXPECT_EQ(message_bytes(Operation::kAllGather, 16, 8), 8 * 16);
}

TEST(LinkBytes, AreTheLeastAnyAlgorithmMoves) {
  EXPECT_DOUBLE_EQ(link_bytes(Operation::kAllReduce, 800, 8), 2.0 * 7.0 / 8.0 * 800.0);
  EXPECT_DOUBLE_EQ(link_bytes(Operation::kAllGather, 800, 8), 7.0 / 8.0 * 800.0);
  EXPECT_DOUBLE_EQ(link_bytes(Operation::kAllReduce, 800, 1), 0.0);
}

TEST(Patterns, SumsAreExactWholeNumbers) {
  constexpr std::size_t kCount = 300'000;  // more than one chunk of the parallel fill
  const Patterns patterns(1, 5, kCount);
  double total = 0.0;
  for (std::size_t i = 0; i < kCount; ++i) {
    float sum = 0.0F;
    for (const auto& message : patterns.message) sum += kernels::decode_bf16(message[i]);
    ASSERT_EQ(kernels::decode_bf16(patterns.sum[i]), sum);
    ASSERT_LE(std::abs(sum), 40.0F);
    total += kernels::decode_bf16(patterns.message[0][i]);
  }
  // Mean 0, variance (17^2 - 1) / 12 = 24: five standard errors of the mean.
  EXPECT_NEAR(total / kCount, 0.0, 5.0 * std::sqrt(24.0 / kCount));
  EXPECT_NE(patterns.message[0], patterns.message[1]);
}

TEST(Patterns, OneWrongElementIsFoundWhereverItIs) {
  const Patterns patterns(2, 3, 64);
  std::vector<std::uint16_t> reduced(patterns.sum.begin(), patterns.sum.begin() + 48);
  EXPECT_EQ(count_wrong(patterns, Operation::kAllReduce, 48, reduced), 0u);
  reduced[47] ^= 1U;
  EXPECT_EQ(count_wrong(patterns, Operation::kAllReduce, 48, reduced), 1u);

  std::vector<std::uint16_t> gathered;
  for (const auto& message : patterns.message) {
    gathered.insert(gathered.end(), message.begin(), message.begin() + 16);
  }
  EXPECT_EQ(count_wrong(patterns, Operation::kAllGather, 16, gathered), 0u);
  std::swap_ranges(gathered.begin(), gathered.begin() + 16, gathered.begin() + 16);
  EXPECT_GT(count_wrong(patterns, Operation::kAllGather, 16, gathered), 16u);  // two ranks swapped
  EXPECT_THROW((void)count_wrong(patterns, Operation::kAllReduce, 16, gathered),
               std::invalid_argument);
  EXPECT_THROW(Patterns(1, 33, 8), std::invalid_argument);
}

constexpr PriorLink kNvlink{.link_bytes_per_second = 450e9, .hop_seconds = 0.6e-6};

TEST(Prior, IsNcclsOwnFormula) {
  // Ring LL of 1 MiB between two: 6.6 + 2 x 0.6 us, and 1 MiB at min(141, 0.5 x 370.8) GB/s.
  const Setting ll{.protocol = "LL", .algorithm = "Ring"};
  EXPECT_NEAR(*prior_seconds(ll, 1 << 20, 2, kNvlink), 7.8e-6 + 1048576.0 / 141e9, 1e-12);
  // Ring Simple among eight: 8.4 + 14 x 3.4 us, and 7/4 of 64 MiB at 370.8 GB/s.
  const Setting simple{.protocol = "Simple", .algorithm = "Ring"};
  EXPECT_NEAR(*prior_seconds(simple, 64 << 20, 8, kNvlink), 56.0e-6 + 1.75 * 67108864.0 / 370.8e9,
              1e-9);
  // One-shot between two: a graph node, three trips, the message once.
  EXPECT_NEAR(*prior_seconds({.carrier = Carrier::kPeerOneShot}, 8192, 2, kNvlink),
              0.5e-6 + 1.8e-6 + 8192.0 / 450e9, 1e-12);
}

TEST(Prior, NcclsOwnChoiceIsTheFastestOfItsProtocols) {
  for (const std::int64_t bytes : parse_sizes("256:64M")) {
    const double chosen = *prior_seconds({}, bytes, 2, kNvlink);
    double best = 1.0;
    for (const char* protocol : {"LL", "LL128", "Simple"}) {
      best = std::min(best, *prior_seconds({.protocol = protocol}, bytes, 2, kNvlink));
    }
    EXPECT_DOUBLE_EQ(chosen, best);
    EXPECT_GE(chosen, link_bytes(Operation::kAllReduce, bytes, 2) / kNvlink.link_bytes_per_second);
  }
  EXPECT_FALSE(prior_seconds({}, 4096, 1, kNvlink));
}

std::optional<LaunchedRank> under(const std::map<std::string, std::string>& variables) {
  return launched_rank([&](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  });
}

TEST(Launcher, ReadsTorchrun) {
  const auto found = under({{"RANK", "9"},
                            {"WORLD_SIZE", "16"},
                            {"LOCAL_RANK", "1"},
                            {"MASTER_ADDR", "node0"},
                            {"MASTER_PORT", "1234"}});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->launcher, "torchrun");
  EXPECT_EQ(found->rank.rank, 9);
  EXPECT_EQ(found->rank.size, 16);
  EXPECT_EQ(found->rank.local_rank, 1);
  EXPECT_EQ(found->rank.master_address, "node0");
  EXPECT_EQ(found->rank.master_port, 1235);  // torchrun's store keeps 1234
}

TEST(Launcher, ReadsMpiOnOneHostWithoutAnAddress) {
  const auto found = under({{"OMPI_COMM_WORLD_RANK", "1"},
                            {"OMPI_COMM_WORLD_SIZE", "2"},
                            {"OMPI_COMM_WORLD_LOCAL_RANK", "1"}});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->launcher, "Open MPI");
  EXPECT_EQ(found->rank.master_address, "127.0.0.1");
  EXPECT_EQ(found->rank.master_port, 29501);
}

TEST(Launcher, NoLauncherMeansOneProcess) {
  EXPECT_FALSE(under({}));
  EXPECT_FALSE(under({{"RANK", "0"}}));
  EXPECT_FALSE(under({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}}));
}

TEST(Launcher, IncompleteVariablesAreRefused) {
  const std::map<std::string, std::string> good = {
      {"RANK", "1"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "0"}, {"MASTER_ADDR", "a"}};
  const auto with = [&](const char* name, const char* value) {
    auto changed = good;
    changed[name] = value;
    return error_of([&] { (void)under(changed); });
  };
  EXPECT_EQ(with("RANK", "2"), "RANK: found '2', allowed: 0..1");
  EXPECT_EQ(with("WORLD_SIZE", "two"), "WORLD_SIZE: found 'two', allowed: 1..65536");
  EXPECT_EQ(with("MASTER_PORT", "70000"), "MASTER_PORT: found '70000', allowed: 1..65534");
  EXPECT_NE(with("MASTER_ADDR", ""), "");  // local rank 0 is not rank 1: several hosts
  auto missing = good;
  missing.erase("LOCAL_RANK");
  EXPECT_NE(error_of([&] { (void)under(missing); }).find("LOCAL_RANK is not set"),
            std::string::npos);
}

CollectiveResult result_of(const char* protocol, double seconds) {
  CollectiveResult result;
  result.setting = {.protocol = protocol};
  result.num_ranks = 2;
  result.bytes = 8192;
  result.elements_checked = 8192;
  result.samples_seconds = {seconds, seconds, seconds};
  result.summary = summarize(result.samples_seconds);
  return result;
}

TEST(Record, SurvivesBeingWrittenAndRead) {
  const CollectiveLine line = read_collective_line(collective_to_line(result_of("LL", 8e-6), "s"));
  EXPECT_EQ(line.setting, "all_reduce nccl LL");
  EXPECT_EQ(line.bytes, 8192);
  EXPECT_EQ(line.launch, "graph");
  EXPECT_EQ(line.status, "ok");
  EXPECT_DOUBLE_EQ(*line.median_seconds, 8e-6);
  EXPECT_DOUBLE_EQ(*line.bus_bytes_per_second, 8192.0 / 8e-6);
  EXPECT_FALSE(line.delayed);
  CollectiveResult skipped;
  skipped.status = "skipped";
  skipped.reason = "no NCCL \xff here";
  EXPECT_FALSE(read_collective_line(collective_to_line(skipped, "s")).median_seconds);
  EXPECT_THROW((void)read_collective_line("{\"record\":\"session\"}"), std::runtime_error);
  EXPECT_THROW((void)read_collective_line("{"), std::runtime_error);
}

TEST(Summary, MarksTheFastestOfEachSize) {
  Summary summary;
  for (const auto& [protocol, seconds] :
       {std::pair{"LL", 8e-6}, std::pair{"LL128", 9e-6}, std::pair{"Simple", 12e-6}}) {
    summary.add(read_collective_line(collective_to_line(result_of(protocol, seconds), "s")));
  }
  const std::string text = summary.text();
  EXPECT_NE(text.find("all_reduce, graph (us)"), std::string::npos);
  EXPECT_NE(text.find("8K"), std::string::npos);
  EXPECT_NE(text.find("8.00*"), std::string::npos);
  EXPECT_NE(text.find("9.00 "), std::string::npos);
  EXPECT_EQ(text.find("9.00*"), std::string::npos);
}

}  // namespace
}  // namespace fulcrum::replay::collectives
