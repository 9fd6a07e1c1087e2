// `fulcrum report` is written by the Python package, which draws; this hands over to it.
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <stdexcept>
#include <vector>

#include "cli/command.h"
#include "cli/options.h"
#include "model/io/data_dir.h"

namespace fulcrum::cli {

int run_report(const Arguments& arguments) {
  const bool help =
      !arguments.empty() && (arguments.front() == "--help" || arguments.front() == "-h");
  if (help) {
    std::cout
        << "usage: fulcrum report [SCENARIO ...] [-o report.html] [OPTIONS]\n\n"
           "Writes one self-contained HTML page: step breakdown, roofline, concurrency curves,\n"
           "MTP gain by cause, levers, memory, assumptions with their sources. Needs the Python\n"
           "package (pip install . in the source tree); FULCRUM_PYTHON names the interpreter.\n\n"
           "options:\n"
           "  -o, --output FILE       report.html when not given\n"
           "  -c, --concurrency LIST  requests in flight, e.g. 1,8,16\n"
           "  --cases FILE            measured cases (JSONL) to draw beside the prediction\n"
           "  --json                  print what was written as JSON\n"
           "  -h, --help              show this help\n\nexample:\n"
           "  fulcrum report campaign-a campaign-b -o report.html\n";
    return 0;
  }
  const char* chosen = std::getenv("FULCRUM_PYTHON");
  const std::string python = chosen != nullptr && *chosen != '\0' ? chosen : "python3";
  const std::string probe =
      "import importlib.util as u, sys; "
      "sys.exit(0 if u.find_spec('fulcrum') and u.find_spec('plotly') else 3)";
  const auto quoted = [](const std::string& text) {
    std::string out = "'";
    for (char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return out + "'";
  };
  if (std::system((quoted(python) + " -c " + quoted(probe) + " 2>/dev/null").c_str()) != 0) {
    throw std::runtime_error("the Python package is not installed for " + python +
                             ": run `pip install \".[report]\"` in the source tree, or set "
                             "FULCRUM_PYTHON to an interpreter that has it");
  }
  // The page must come from the same data as the program's own answers.
  setenv("FULCRUM_DATA_DIR", io::data_dir().c_str(), 1);
  std::vector<std::string> words{python, "-m", "fulcrum.report"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  execvp(argv[0], argv.data());
  throw std::runtime_error("cannot start " + python);
}

}  // namespace fulcrum::cli
