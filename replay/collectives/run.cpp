// One child process per setting: NCCL reads its variables when a communicator is made, and a hang
// or a crash costs that setting only. The parent never touches CUDA.
#include <cuda_runtime_api.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <stdexcept>

#include "kernels/common/check.h"
#include "replay/build_info.h"
#include "replay/collectives/command.h"
#include "replay/collectives/launcher.h"
#include "replay/collectives/measure.h"
#include "replay/collectives/nccl_library.h"
#include "replay/collectives/peer_group.h"
#include "replay/collectives/summary.h"
#include "replay/io/collective_record.h"
#include "replay/io/measurement_file.h"
#include "replay/machine/read_machine.h"
#include "replay/supervisor.h"

namespace fulcrum::replay::collectives {
namespace {

constexpr double kProbeTimeoutSeconds = 60.0;
constexpr double kMeetingTimeoutSeconds = 60.0;
constexpr std::uint64_t kSeed = 20261130;
/// Records of one child in its one line of text: ASCII's record separator, which JSON escapes.
constexpr char kRecordSeparator = '\x1e';

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

int count_devices() {
  const std::string text = run_in_child(
      [] {
        int count = 0;
        const cudaError_t code = cudaGetDeviceCount(&count);
        if (code != cudaSuccess) {
          throw std::runtime_error(std::string("no usable GPU: ") + cudaGetErrorString(code));
        }
        return std::to_string(count);
      },
      kProbeTimeoutSeconds);
  return std::stoi(text);
}

/// Who takes part: threads for `devices`, or this process as one rank.
struct Ranks {
  std::vector<int> devices;
  std::optional<LaunchedRank> launched;

  int count() const { return launched ? launched->rank.size : static_cast<int>(devices.size()); }
  bool writes() const { return !launched || launched->rank.rank == 0; }
  std::string launcher() const {
    return launched ? launched->launcher : std::string("threads of one process");
  }
};

Ranks ranks_of(const CommandOptions& options) {
  Ranks ranks;
  ranks.launched = launched_rank([](const char* name) -> std::optional<std::string> {
    const char* value = std::getenv(name);
    if (value == nullptr) return std::nullopt;
    return std::string(value);
  });
  if (ranks.launched) {
    if (!options.devices.empty()) {
      throw std::invalid_argument("--gpus: under " + ranks.launched->launcher +
                                  " each process drives the GPU of its local rank");
    }
    return ranks;
  }
  const int present = count_devices();
  ranks.devices = options.devices;
  for (int d = 0; options.devices.empty() && d < present; ++d) ranks.devices.push_back(d);
  for (const int d : ranks.devices) {
    if (d >= present) {
      throw std::invalid_argument("--gpus: found " + std::to_string(d) + ", but CUDA sees " +
                                  std::to_string(present) + " devices");
    }
  }
  return ranks;
}

std::string measure_in_child(const Setting& setting, std::uint32_t meeting, const Ranks& ranks,
                             const MeasureOptions& options, const Patterns& patterns,
                             const std::string& session_id) {
  for (const auto& [name, value] : setting.environment()) setenv(name.c_str(), value.c_str(), 1);
  std::vector<CollectiveResult> results;
  const auto skipped = [&](const std::string& why) {
    CollectiveResult result;
    result.setting = setting;
    result.num_ranks = ranks.count();
    result.status = "skipped";
    result.reason = why;
    results = {result};
  };
  try {
    if (ranks.launched) {
      const auto team = join_processes(ranks.launched->rank, meeting, kMeetingTimeoutSeconds);
      results = measure_setting(*team, setting, options, patterns);
    } else {
      run_threads(ranks.devices, [&](Team& team) {
        std::vector<CollectiveResult> own = measure_setting(team, setting, options, patterns);
        if (team.rank() == 0) results = std::move(own);
      });
    }
  } catch (const NcclMissing& why) {
    skipped(why.what());
  } catch (const NoPeerAccess& why) {
    skipped(why.what());
  }
  std::string text;
  for (const CollectiveResult& result : results) {
    text += (text.empty() ? "" : std::string(1, kRecordSeparator)) +
            collective_to_line(result, session_id);
  }
  return text;
}

std::vector<std::string> split_records(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(kRecordSeparator, begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

}  // namespace

int run_collectives(const CommandOptions& options, const std::vector<std::string>& argv) {
  const Ranks ranks = ranks_of(options);
  CollectivesSession session;
  session.started_at = utc_now();
  session.id = session.started_at + "-" + std::to_string(getpid());
  session.argv = argv;
  // A record names the program, not where it lay on this machine.
  session.argv.front().erase(0, session.argv.front().find_last_of('/') + 1);
  session.git_sha = FULCRUM_GIT_SHA;
  session.num_ranks = ranks.count();
  session.launcher = ranks.launcher();
  session.machine = machine::read_machine();

  std::unique_ptr<MeasurementFile> file;
  Summary summary;
  const auto keep = [&](const std::string& line) {
    if (!ranks.writes()) return;
    if (file) file->write(line);
    if (options.json) std::printf("%s\n", line.c_str());
  };
  if (ranks.writes()) {
    if (!options.out_path.empty()) file = std::make_unique<MeasurementFile>(options.out_path);
    keep(collectives_session_to_line(session));
    std::fprintf(stderr, "%d ranks (%s), NCCL %s\n", ranks.count(), session.launcher.c_str(),
                 session.machine.nccl_version.value_or("not found").c_str());
  }
  MeasureOptions measure;
  measure.sizes_bytes = options.sizes_bytes;
  measure.launches = options.launches;
  std::int64_t largest = 0;
  for (const std::int64_t size : options.sizes_bytes) {
    for (const Operation operation : {Operation::kAllReduce, Operation::kAllGather}) {
      largest = std::max(largest, message_bytes(operation, size, ranks.count()));
    }
  }
  const Patterns patterns(kSeed, ranks.count(), static_cast<std::size_t>(largest) / 2);

  bool failed = false;
  std::uint32_t meeting = 0;
  for (const Setting& setting : options.settings) {
    ++meeting;
    std::vector<std::string> lines;
    try {
      lines = split_records(run_in_child(
          [&] { return measure_in_child(setting, meeting, ranks, measure, patterns, session.id); },
          options.setting_timeout_seconds));
    } catch (const std::exception& error) {
      CollectiveResult lost;
      lost.setting = setting;
      lost.num_ranks = ranks.count();
      lost.status = "failed";
      lost.reason = error.what();
      lines = {collective_to_line(lost, session.id)};
    }
    if (!ranks.writes()) continue;
    for (const std::string& line : lines) {
      keep(line);
      const CollectiveLine read = read_collective_line(line);
      failed |= read.status == "failed";
      summary.add(read);
      if (read.status != "ok") {
        std::fprintf(stderr, "%s, %lld bytes, %s: %s: %s\n", read.setting.c_str(),
                     static_cast<long long>(read.bytes), read.launch.c_str(), read.status.c_str(),
                     read.reason.c_str());
      }
    }
    std::fprintf(stderr, "[%u/%zu] %s\n", meeting, options.settings.size(), setting.name().c_str());
  }
  if (ranks.writes() && !options.json) std::printf("%s", summary.text().c_str());
  return failed ? 1 : 0;
}

}  // namespace fulcrum::replay::collectives
