#include "replay/io/record.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "replay/registry.h"

namespace fulcrum::replay {
namespace {

namespace fs = std::filesystem;

class Record : public testing::Test {
 protected:
  void SetUp() override {
    path_ = (fs::temp_directory_path() / ("fulcrum_record_" + std::to_string(getpid()))).string();
    fs::remove(path_);
  }
  void TearDown() override { fs::remove(path_); }
  std::string content() const {
    std::ifstream file(path_);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }
  std::string path_;
};

Session session(const std::string& id, const std::string& sha) {
  Session s;
  s.id = id;
  s.argv = {"fulcrum_replay", "spin"};
  s.git_sha = sha;
  s.started_at = "2026-01-01T00:00:00Z";
  s.device_name = "Test GPU";
  s.device_uuid = "GPU-1";
  s.compute_capability = 90;
  s.power_limit_watts = 700;
  return s;
}

EntryResult spin_entry(std::int64_t ns, EntryStatus status) {
  const KernelEntry* spin = find_kernel("spin");
  EntryResult entry;
  entry.item = {.kernel = spin, .shape = parse_shape("ns=" + std::to_string(ns), spin->dimensions)};
  entry.status = status;
  Timing timing;
  timing.samples_seconds = {1e-4, 2e-4, 3e-4};
  timing.summary = summarize(timing.samples_seconds);
  timing.stop_reason = StopReason::kMaxSamples;
  entry.timing = timing;
  entry.claim = {.bytes = 2e5, .flop = 4e5};
  return entry;
}

TEST_F(Record, SessionsSurviveTheRoundTrip) {
  const Session before = session("a", "sha");
  const Session after = session_from_line(session_to_line(before));
  EXPECT_EQ(after.id, before.id);
  EXPECT_EQ(after.argv, before.argv);
  EXPECT_EQ(after.device_uuid, before.device_uuid);
  EXPECT_EQ(after.power_limit_watts, before.power_limit_watts);
  EXPECT_THROW(session_from_line("{}"), std::runtime_error);
  EXPECT_THROW(session_from_line("not json"), std::runtime_error);
}

TEST_F(Record, EntriesKeepRawSamplesAndRates) {
  const std::string line = entry_to_line(spin_entry(1000, EntryStatus::kOk), "a");
  EXPECT_NE(line.find("\"schema\":\"fulcrum/measurement/1\""), std::string::npos);
  EXPECT_NE(line.find("\"samples_seconds\":[0.0001,0.0002,0.0003]"), std::string::npos);
  EXPECT_NE(line.find("\"achieved_bytes_per_second\":1000000000.0"),
            std::string::npos);  // 2e5 / 2e-4.
  EXPECT_NE(summarize_line(line).text.find("200.000 us"), std::string::npos);
}

TEST_F(Record, OnlyGoodEntriesOfTheSameDeviceAndBuildAreFinished) {
  {
    MeasurementFile file(path_);
    file.write(session_to_line(session("a", "sha")));
    file.write(entry_to_line(spin_entry(1000, EntryStatus::kOk), "a"));
    file.write(entry_to_line(spin_entry(2000, EntryStatus::kFailed), "a"));
    file.write(entry_to_line(spin_entry(3000, EntryStatus::kThrottled), "a"));
    file.write(session_to_line(session("b", "other")));
    file.write(entry_to_line(spin_entry(4000, EntryStatus::kOk), "b"));
  }
  std::ofstream(path_, std::ios::app) << R"({"schema":"fulcrum/measurement/1","record":"ent)";
  const auto keys = finished_keys(path_, session("c", "sha"));
  EXPECT_EQ(keys, std::set<std::string>({spin_entry(1000, EntryStatus::kOk).item.key()}));
}

TEST_F(Record, FilesAreAppendedTo) {
  { MeasurementFile(path_).write("one"); }
  { MeasurementFile(path_).write("two"); }
  EXPECT_EQ(content(), "one\ntwo\n");
}

TEST_F(Record, AFullDiskKeepsWholeLinesAndSaysSo) {
  // A file size limit fails a write midway as a full disk does, and needs no disk to fill.
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{100, 100};
    setrlimit(RLIMIT_FSIZE, &limit);
    MeasurementFile file(path_);
    file.write(std::string(59, 'a'));
    try {
      file.write(std::string(59, 'b'));
    } catch (const std::runtime_error& error) {
      const std::string text = error.what();
      _exit(text.find(path_) != std::string::npos &&
                    text.find("everything measured before is kept") != std::string::npos
                ? 0
                : 2);
    }
    _exit(1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(content(), std::string(59, 'a') + "\n");
}

}  // namespace
}  // namespace fulcrum::replay
