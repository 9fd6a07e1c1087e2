#include <cstring>
#include <exception>
#include <iostream>

#include "cli/command.h"
#include "cli/options.h"
#include "model/errors.h"

namespace fulcrum::cli {
namespace {

constexpr int kRunTimeFailure = 1;
constexpr int kBadInput = 2;

constexpr Command kCommands[] = {
    {"predict", "what a deployment does: step breakdown, TPOT, TTFT, tok/s", run_predict},
    {"levers", "what each change gives, its ceiling, its cost, whether to do it", run_levers},
    {"tune-plan", "which GEMM shapes are worth tuning, what it can give, which candidates can win",
     run_tune_plan},
    {"explain", "why the step is this long, why MTP stops paying, what a target needs",
     run_explain},
    {"simulate", "continuous batching request by request: latency percentiles", run_simulate},
    {"sweep",
     "grids of any scenario values to CSV: resumable, in shards, a million points a second",
     run_sweep},
    {"report", "one HTML page with plots, for colleagues", run_report},
    {"check", "a measurement: impossible, implausible, not comparable or plausible", run_check},
    {"validate", "cases with measurements: error, interval coverage, shape, gain", run_validate},
    {"replay", "on the GPU: check real kernels against references, time them, record", run_replay},
    {"doctor", "what this machine has, and what would distort a measurement on it", run_doctor},
    {"calibrate", "fit cost laws to measured kernel times; say how wrong they are", run_calibrate},
    {"import", "what other tools measured: benchmark results, traces, logs", run_import},
};

void print_usage(std::ostream& out) {
  out << "Fulcrum " FULCRUM_VERSION
         ": predict what a lever moves before you pull it.\n\n"
         "usage: fulcrum COMMAND [OPTIONS]\n\ncommands:\n";
  for (const Command& command : commands()) {
    out << "  " << command.name << std::string(12 - command.name.size(), ' ') << command.summary
        << '\n';
  }
  out << "\n`fulcrum COMMAND --help` explains a command with an example.\n"
         "exit status: 0 ok, 1 run-time failure, 2 bad input or usage\n";
}

/// Every command's help as one Markdown page: cli/COMMANDS.md quotes it.
void print_markdown_help() {
  for (const Command& command : commands()) {
    std::cout << "## " << command.name << "\n\n" << command.summary << "\n\n";
    if (command.run == run_replay) {
      // Its options depend on whether this build has CUDA.
      std::cout << "Its options: `fulcrum replay --help` and "
                   "[replay/README.md](../replay/README.md).\n\n";
      continue;
    }
    std::cout << "```text\n";
    command.run({"--help"});
    std::cout << "```\n\n";
  }
}

int dispatch(const Arguments& arguments) {
  if (arguments.empty()) {
    print_usage(std::cerr);
    return kBadInput;
  }
  const std::string& name = arguments.front();
  if (name == "--help" || name == "-h" || name == "help") {
    if (arguments.size() == 2 && arguments[1] == "--markdown") {
      print_markdown_help();
    } else {
      print_usage(std::cout);
    }
    return 0;
  }
  if (name == "--version") {
    std::cout << "fulcrum " FULCRUM_VERSION "\n";
    return 0;
  }
  for (const Command& command : commands()) {
    if (name == command.name) {
      return command.run(Arguments(arguments.begin() + 1, arguments.end()));
    }
  }
  std::string known;
  for (const Command& command : commands()) {
    known += (known.empty() ? "" : ", ") + std::string(command.name);
  }
  throw InputError({"command line", "", "\"" + name + "\" is not a command", known});
}

}  // namespace

std::span<const Command> commands() { return kCommands; }

}  // namespace fulcrum::cli

int main(int argc, char** argv) {
  using namespace fulcrum;
  try {
    const int status = cli::dispatch(cli::Arguments(argv + 1, argv + argc));
    std::cout.flush();
    if (!std::cout) {
      std::cerr << "fulcrum: error: standard output cannot be written\n";
      return cli::kRunTimeFailure;
    }
    return status;
  } catch (const InputError& error) {
    std::cout.flush();
    std::cerr << "fulcrum: error: " << error.what() << '\n';
    return cli::kBadInput;
  } catch (const std::exception& error) {
    std::cout.flush();
    std::cerr << "fulcrum: error: " << error.what() << '\n';
    return cli::kRunTimeFailure;
  }
}
