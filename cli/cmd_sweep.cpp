#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <set>
#include <thread>

#include "cli/command.h"
#include "cli/options.h"
#include "cli/scenario_options.h"
#include "cli/sweep_output.h"
#include "cli/table.h"
#include "model/errors.h"

namespace fulcrum::cli {
namespace {

namespace po = boost::program_options;
namespace fs = std::filesystem;

struct Shard {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
};

/// "i/n", 1-based: the i-th of n runs of points in order.
Shard shard_of(const std::string& text, std::uint64_t num_points) {
  const std::size_t slash = text.find('/');
  char* end = nullptr;
  const std::uint64_t i = std::strtoull(text.c_str(), &end, 10);
  const bool first_ends = slash != std::string::npos && end == text.c_str() + slash;
  const std::uint64_t n = first_ends ? std::strtoull(text.c_str() + slash + 1, &end, 10) : 0;
  constexpr std::uint64_t kMostShards = 1'000'000;
  if (!first_ends || *end != '\0' || i < 1 || i > n || n > kMostShards) {
    throw InputError({"command line", "--shard", "is \"" + text + "\"", "i/n with 1 <= i <= n"});
  }
  const auto bound = [&](std::uint64_t k) {
    return num_points / n * k + std::min(k, num_points % n);
  };
  return {bound(i - 1), bound(i)};
}

std::string header_of(const io::SweepPlan& plan) {
  std::string header;
  for (const std::string& column : sweep_columns(plan)) {
    header += (header.empty() ? "" : ",") + csv_field(column);
  }
  return header + '\n';
}

/// Lines of points [first, last) as they are written.
std::string lines_of(const io::SweepPlan& plan, std::uint64_t first, std::uint64_t last) {
  std::string text;
  std::vector<std::string> ignored;
  io::run_sweep(
      plan, first, last, 1,
      [&](const io::SweepBlock& block) { text += sweep_lines(block, false, 1); }, ignored);
  return text;
}

/// Where an interrupted file of this very sweep stops: cuts a torn last line off and recomputes
/// the last whole one, which must be equal. Returns the next point.
std::uint64_t resume_point(const std::string& path, const io::SweepPlan& plan, const Shard& shard) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return shard.first;
  const auto refuse = [&](const std::string& why) -> InputError {
    return InputError(
        {path, "", why, "a file that the same sweep has begun; or leave --resume out"});
  };
  std::string line;
  std::string last_line;
  std::getline(in, line);
  if (line + '\n' != header_of(plan)) throw refuse("has other columns than this sweep");
  std::uint64_t num_lines = 0;
  std::uint64_t whole_bytes = line.size() + 1;
  while (std::getline(in, line) && !in.eof()) {
    last_line.swap(line);
    whole_bytes += last_line.size() + 1;
    ++num_lines;
  }
  in.close();
  if (num_lines > shard.last - shard.first) throw refuse("has more points than this sweep");
  const std::uint64_t next = shard.first + num_lines;
  if (num_lines > 0 && last_line + '\n' != lines_of(plan, next - 1, next)) {
    throw refuse("has another result for point " + std::to_string(next - 1));
  }
  fs::resize_file(path, whole_bytes);
  return next;
}

/// Points a second on stderr, where someone is watching.
class Progress {
 public:
  explicit Progress(std::uint64_t total) : total_(total), shown_(isatty(STDERR_FILENO) == 1) {}
  ~Progress() {
    if (written_) std::cerr << '\n';
  }
  void add(std::uint64_t points) {
    done_ += points;
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start_;
    if (!shown_ || spent.count() < 1.0) return;
    std::cerr << "\r" << format_percent(static_cast<double>(done_) / static_cast<double>(total_))
              << " of " << total_ << " points, " << format_seconds(spent.count()) << "   ";
    written_ = true;
  }

 private:
  std::uint64_t total_;
  std::uint64_t done_ = 0;
  bool shown_;
  bool written_ = false;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

void write_json(std::ostream& out, const io::SweepPlan& plan, const Shard& shard, int threads,
                std::vector<std::string>& warnings) {
  const auto head = [&] {
    const nlohmann::json name = plan.scenario.value.value("name", "");
    out << "{\"schema\":\"fulcrum/sweep/1\",\"scenario\":" << name.dump()
        << ",\"columns\":" << nlohmann::json(sweep_columns(plan)).dump() << ",\"rows\":[\n";
  };
  if (shard.first == shard.last) head();
  io::run_sweep(
      plan, shard.first, shard.last, threads,
      [&](const io::SweepBlock& block) {
        if (block.first == shard.first) head();
        std::string text = sweep_lines(block, true, threads);
        if (block.first + block.points.size() == shard.last) text.erase(text.size() - 2, 1);
        out << text;
      },
      warnings);
  out << "]}\n";
}

int write_csv(const std::string& path, bool resume, const io::SweepPlan& plan, Shard shard,
              int threads, std::vector<std::string>& warnings) {
  bool with_header = true;
  const auto write_to = [&](std::ostream& out) {
    Progress progress(shard.last - shard.first);
    io::run_sweep(
        plan, shard.first, shard.last, threads,
        [&](const io::SweepBlock& block) {
          // Not before the first points are priced: bad input writes nothing.
          if (with_header) out << header_of(plan);
          with_header = false;
          out << sweep_lines(block, false, threads);
          if (!out) throw std::runtime_error("the sweep cannot be written: no space left?");
          progress.add(block.points.size());
        },
        warnings);
  };
  if (path.empty()) {
    write_to(std::cout);
    return 0;
  }
  // Written beside its place and moved there when whole: a file of that name is a finished sweep.
  const std::string part = path + ".part";
  if (resume) shard.first = resume_point(part, plan, shard);
  std::error_code ignored;
  with_header = !(resume && fs::exists(part, ignored));
  std::ofstream out(part, with_header ? std::ios::binary : std::ios::binary | std::ios::app);
  if (!out) throw InputError({path, "", "cannot be written", "a writable place"});
  write_to(out);
  out.close();
  if (!out) throw std::runtime_error(part + " cannot be written");
  fs::rename(part, path);
  std::cerr << "wrote " << path << ": points " << shard.first << " to " << shard.last << '\n';
  return 0;
}

}  // namespace

int run_sweep(const Arguments& arguments) {
  po::options_description options = scenario_options();
  options.add_options()("over", po::value<std::vector<std::string>>()->composing(),
                        "PATH=a,b,c or PATH=low:high[:step|:*factor]; repeatable")(
      "output,o", po::value<std::string>(), "write the CSV here (FILE.part until it is whole)")(
      "resume", po::bool_switch(), "go on with FILE.part")(
      "shard", po::value<std::string>(), "i/n: only the i-th of n runs of points")(
      "threads,j", po::value<int>()->default_value(0), "0: one per core")(
      "count", po::bool_switch(), "print the number of points and stop");
  const HelpText help{
      "fulcrum sweep [SCENARIO] --over PATH=VALUES ... [OPTIONS]",
      "Predicts every point of a grid as CSV. Any value of the scenario may be an axis;\n"
      "concurrency, input_tokens and output_tokens cost about a microsecond a point, others are\n"
      "resolved anew. Shards of one sweep join by appending them without their first lines.",
      "  fulcrum sweep campaign-a --over concurrency=1:128 --over input_tokens=1024:65536:*2 \\\n"
      "      --over engine.cuda_graph=true,false -o grid.csv"};
  po::variables_map values;
  if (!parse(arguments, help, options, {"scenario"}, values)) return 0;
  std::vector<io::SweepAxis> axes;
  if (values.count("over") != 0) {
    for (const std::string& text : values["over"].as<std::vector<std::string>>()) {
      axes.push_back(io::parse_sweep_axis(text));
    }
  }
  const io::SweepPlan plan = io::make_sweep_plan(scenario_of(values), axes);
  Shard shard{0, plan.num_points()};
  if (values.count("shard") != 0) {
    shard = shard_of(values["shard"].as<std::string>(), plan.num_points());
  }
  if (values["count"].as<bool>()) {
    std::cout << shard.last - shard.first << '\n';
    return 0;
  }
  constexpr int kMostThreads = 1024;
  int threads = values["threads"].as<int>();
  if (threads < 0 || threads > kMostThreads) {
    throw InputError({"command line", "--threads", "is out of range", "0 to 1024"});
  }
  if (threads == 0) threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  const std::string path = values.count("output") != 0 ? values["output"].as<std::string>() : "";
  std::vector<std::string> warnings;
  if (values["json"].as<bool>()) {
    if (!path.empty()) {
      throw InputError({"command line", "--json", "goes to standard output", "no --output"});
    }
    write_json(std::cout, plan, shard, threads, warnings);
  } else {
    write_csv(path, values["resume"].as<bool>(), plan, shard, threads, warnings);
  }
  std::cout.flush();
  const std::set<std::string> once(warnings.begin(), warnings.end());
  print_warnings({once.begin(), once.end()});
  return 0;
}

}  // namespace fulcrum::cli
