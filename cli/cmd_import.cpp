// fulcrum import: what other tools measured, in this project's terms.
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/options.h"
#include "cli/output_file.h"
#include "cli/table.h"
#include "model/errors.h"
#include "model/io/serving_result_file.h"

namespace fulcrum::cli {
namespace {

namespace po = boost::program_options;

std::string milliseconds(const std::optional<double>& seconds) {
  return seconds ? format_seconds(*seconds) : "-";
}

std::string number(const std::optional<double>& value) {
  return value ? format_number(*value) : "-";
}

std::string count(const std::optional<double>& value) { return value ? format_count(*value) : "-"; }

void print_serving(const std::vector<ServingResult>& results) {
  Table table({{"run", Align::kLeft, true},
               {"C"},
               {"done"},
               {"in"},
               {"out"},
               {"tok/s"},
               {"TPOT"},
               {"p99"},
               {"TTFT"},
               {"p99"},
               {"ITL"},
               {"accept"}});
  for (const ServingResult& r : results) {
    table.add({r.label.empty() ? r.id : r.label, count(r.concurrency), count(r.num_completed),
               number(r.input_tokens_per_request), number(r.output_tokens_per_request),
               number(r.output_tokens_per_second), milliseconds(r.tpot.mean_seconds),
               milliseconds(r.tpot.p99_seconds), milliseconds(r.ttft.mean_seconds),
               milliseconds(r.ttft.p99_seconds), milliseconds(r.itl.mean_seconds),
               number(r.accept_length)});
  }
  std::cout << results.size() << (results.size() == 1 ? " run of " : " runs of ")
            << results.front().tool
            << (results.front().model.empty() ? "" : ", " + results.front().model) << '\n';
  table.print(std::cout, TerminalStyle::of_stdout());
}

}  // namespace

int run_import(const Arguments& arguments) {
  po::options_description options;
  options.add_options()("input", po::value<std::vector<std::string>>()->composing(),
                        "FILE, or FORMAT and FILE")("output,o", po::value<std::string>(),
                                                    "write the imported records here")(
      "json", po::bool_switch(), "print JSON");
  const HelpText help{
      "fulcrum import [FORMAT] FILE [OPTIONS]",
      "Reads what other tools measured. FORMAT is found by itself when left out or \"auto\":\n"
      "sglang, vllm, genai-perf, aiperf, inferencex (results of benchmark clients).",
      "  fulcrum import bench.jsonl -o results.json\n"
      "  fulcrum check campaign-a results.json"};
  po::variables_map values;
  if (!parse(arguments, help, options, {"input"}, values)) return 0;
  if (values.count("input") == 0) {
    throw InputError({"command line", "FILE", "no file given", "[FORMAT] FILE"});
  }
  auto inputs = values["input"].as<std::vector<std::string>>();
  if (inputs.size() > 2) {
    throw InputError({"command line", "FILE", "more than one file given", "[FORMAT] FILE"});
  }
  const std::string& file = inputs.back();
  const auto results = io::read_serving_results(file);
  const auto document = io::serving_results_json(results, file);
  if (values.count("output") != 0) {
    write_file(values["output"].as<std::string>(), document.dump(1) + "\n");
  }
  if (values["json"].as<bool>()) {
    std::cout << document.dump(1) << '\n';
  } else {
    print_serving(results);
  }
  return 0;
}

}  // namespace fulcrum::cli
