// fulcrum import: what other tools measured, in this project's terms.
#include <unistd.h>

#include <chrono>
#include <iostream>
#include <nlohmann/json.hpp>

#include "calibrate/io/import/detect.h"
#include "calibrate/io/import/nccl_tests.h"
#include "calibrate/io/import/nvbench.h"
#include "calibrate/io/import/tuned_config.h"
#include "calibrate/io/load_trace_rules.h"
#include "cli/command.h"
#include "cli/import_options.h"
#include "cli/options.h"
#include "cli/output_file.h"
#include "cli/table.h"
#include "model/errors.h"
#include "model/io/import/import_json.h"
#include "model/io/import/server_log.h"
#include "model/io/import/serving_formats.h"
#include "model/io/serving_result_file.h"

namespace fulcrum::cli {
namespace {

namespace po = boost::program_options;
using calibrate::io::Container;
using calibrate::io::ImportFormat;

std::string seconds(const std::optional<double>& value) {
  return value ? format_seconds(*value) : "-";
}

std::string number(const std::optional<double>& value) {
  return value ? format_number(*value) : "-";
}

std::string count(const std::optional<double>& value) { return value ? format_count(*value) : "-"; }

/// -o FILE and --json; false where a table should be printed.
bool show_document(const nlohmann::ordered_json& document, const po::variables_map& values) {
  if (values.count("output") != 0) {
    write_file(values["output"].as<std::string>(), document.dump(1) + "\n");
  }
  if (values["json"].as<bool>()) std::cout << document.dump(1) << '\n';
  return values["json"].as<bool>();
}

int show_serving(const std::vector<ServingResult>& results, const std::string& file,
                 const po::variables_map& values) {
  if (show_document(io::serving_results_json(results, file), values)) return 0;
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
               number(r.output_tokens_per_second), seconds(r.tpot.mean_seconds),
               seconds(r.tpot.p99_seconds), seconds(r.ttft.mean_seconds),
               seconds(r.ttft.p99_seconds), seconds(r.itl.mean_seconds), number(r.accept_length)});
  }
  std::cout << results.size() << (results.size() == 1 ? " run of " : " runs of ")
            << results.front().tool
            << (results.front().model.empty() ? "" : ", " + results.front().model) << '\n';
  table.print(std::cout, TerminalStyle::of_stdout());
  return 0;
}

int show_server_log(const std::string& file, const po::variables_map& values) {
  io::ByteSource source = open_import(file, values);
  const io::ServerLog log = io::read_server_log(source);
  if (show_document(io::server_log_json(log, file), values)) return 0;
  std::vector<std::string> notes;
  const auto changes = io::scenario_changes(log, notes);
  std::cout << log.engine << (log.engine_version.empty() ? "" : " " + log.engine_version)
            << (log.model.empty() ? "" : ", " + log.model) << '\n';
  Table facts({{"stated", Align::kLeft}, {"value", Align::kLeft}});
  const auto fact = [&](const char* name, const std::string& value) {
    if (!value.empty() && value != "-") facts.add({name, value});
  };
  fact("KV dtype", log.kv_dtype);
  fact("attention backend", log.attention_backend);
  fact("MoE backend", log.moe_backend);
  fact("speculation", log.speculative_algorithm);
  fact("KV pool, tokens", count(log.pool_tokens));
  fact("KV pool, bytes per token", number(log.pool_bytes_per_token));
  fact("most requests seen running", count(log.peak_running_requests));
  fact("mean accept length", number(log.accept_length));
  facts.print(std::cout, TerminalStyle::of_stdout());
  std::cout << "as changes to a scenario:\n  fulcrum predict SCENARIO";
  for (const io::ScenarioChange& change : changes) {
    std::cout << " \\\n    --set '" << change.pointer << "=" << change.value.dump() << "'";
  }
  std::cout << '\n';
  for (const std::string& note : notes) std::cerr << "note: " << note << '\n';
  return 0;
}

int show_nvbench(const nlohmann::json& document, const std::string& file,
                 const po::variables_map& values) {
  const calibrate::io::NvbenchResult result = calibrate::io::read_nvbench(document, file);
  const auto tables = calibrate::io::gemm_tables(result);
  if (!tables.empty()) return show_tables(tables, file, values);
  if (show_document(calibrate::io::nvbench_json(result, file), values)) return 0;
  Table table({{"benchmark", Align::kLeft, true},
               {"axes", Align::kLeft, true},
               {"cold"},
               {"batch"},
               {"noise"}});
  for (const auto& state : result.states) {
    std::string axes;
    for (const auto& [axis, value] : state.axes) {
      if (!axes.empty()) axes += ' ';
      axes.append(axis).append("=").append(value);
    }
    table.add({state.benchmark, axes, seconds(state.cold_seconds), seconds(state.batch_seconds),
               state.noise_fraction ? format_percent(*state.noise_fraction) : "-"});
  }
  table.print(std::cout, TerminalStyle::of_stdout());
  return 0;
}

int show_tuned_config(const nlohmann::json& document, const std::string& file,
                      const po::variables_map& values) {
  const calibrate::io::TunedConfig config = calibrate::io::read_tuned_config(document, file);
  if (show_document(calibrate::io::tuned_config_json(config, file), values)) return 0;
  std::cout << config.dtype << (config.num_experts ? ", E=" + count(config.num_experts) : "")
            << ", N=" << count(config.n) << (config.k ? ", K=" + count(config.k) : "") << " on "
            << config.device_name << '\n';
  Table table({{"rows"}, {"block m"}, {"n"}, {"k"}, {"group m"}, {"warps"}, {"stages"}});
  for (const auto& tile : config.tiles) {
    table.add({format_count(tile.m), format_count(tile.block_m), format_count(tile.block_n),
               format_count(tile.block_k), count(tile.group_m), count(tile.num_warps),
               count(tile.num_stages)});
  }
  table.print(std::cout, TerminalStyle::of_stdout());
  return 0;
}

int import_json(const std::string& file, std::optional<ImportFormat> format,
                const po::variables_map& values) {
  io::ByteSource source = open_import(file, values);
  const auto documents = io::parse_import_json(source);
  const nlohmann::json& first = documents.front().value;
  const bool single = documents.size() == 1 && first.is_object();
  const auto is = [&](ImportFormat wanted, bool looks) {
    return format ? *format == wanted : single && looks;
  };
  if (is(ImportFormat::kNvbench, first.contains("benchmarks") && first.contains("devices"))) {
    return show_nvbench(first, file, values);
  }
  if (is(ImportFormat::kNcclTests, first.contains("nccl_version") && first.contains("results"))) {
    return show_tables(
        {calibrate::io::read_nccl_json(first, file, values["operation"].as<std::string>())}, file,
        values);
  }
  if (is(ImportFormat::kTunedConfig, calibrate::io::is_tuned_config(first))) {
    return show_tuned_config(first, file, values);
  }
  if (single && first.contains("schema") && !format) {
    return show_serving(io::read_serving_results(file), file, values);
  }
  std::optional<io::ServingFormat> serving;
  if (format) {
    serving = io::serving_format_named(
        calibrate::io::kImportFormatNames[static_cast<std::size_t>(*format)]);
  }
  return show_serving(io::import_serving_results(documents, file, serving), file, values);
}

Container container_for(const std::string& file, std::optional<ImportFormat> format,
                        const po::variables_map& values) {
  io::ByteSource source = open_import(file, values);
  if (format) return calibrate::io::container_of(*format, source);
  if (const auto container = calibrate::io::detect_container(source)) return *container;
  std::string known;
  for (const std::string_view name : calibrate::io::kImportFormatNames) {
    known += (known.empty() ? "" : ", ") + std::string(name);
  }
  throw InputError({file, "", "is in no format that is known", known + "; name it if it is one"});
}

int import_traces(const std::vector<std::string>& files, std::optional<ImportFormat> format,
                  const po::variables_map& values) {
  calibrate::TraceRules own;
  if (values.count("rules") != 0) {
    own = calibrate::io::load_trace_rules(values["rules"].as<std::string>());
  }
  const calibrate::TraceRules rules = calibrate::io::shipped_trace_rules(own);
  std::vector<calibrate::StepProfile> profiles;
  std::vector<std::string> notes;
  std::string source;
  for (const std::string& file : files) {
    const Container container = container_for(file, format, values);
    if (container != Container::kTorchTrace && container != Container::kSqlite &&
        container != Container::kNsysCsv) {
      throw InputError({file, "", "is no trace", "several files must all be traces, one per rank"});
    }
    auto found = read_profiles(file, static_cast<int>(container), rules, values, notes);
    std::move(found.begin(), found.end(), std::back_inserter(profiles));
    source += (source.empty() ? "" : ", ") + file;
  }
  return show_profiles(profiles, source, rules.name, notes, values);
}

void check_options(const po::variables_map& values) {
  const auto within = [&](const char* option, double lower, double upper) {
    const double x = values[option].as<double>();
    if (!(x >= lower && x <= upper)) {
      throw InputError({"command line", "--" + std::string(option), "is out of range",
                        format_number(lower) + " to " + format_number(upper)});
    }
  };
  within("steps", 1.0, 1e9);
  within("concurrency", 1.0, 1e6);
  within("max-gib", 1e-3, 1e6);
}

}  // namespace

io::ByteSource open_import(const std::string& file, const po::variables_map& values) {
  constexpr double kBytesPerGib = 1073741824.0;
  const double gib = values["max-gib"].as<double>();
  io::ByteSource source = io::ByteSource::from_file(
      file, {.max_bytes = static_cast<std::uint64_t>(gib * kBytesPerGib)});
  using Clock = std::chrono::steady_clock;
  const bool terminal = isatty(STDERR_FILENO) != 0;
  const Clock::duration every =
      terminal ? std::chrono::milliseconds(500) : std::chrono::milliseconds(10'000);
  source.progress = [file, terminal, every, last = Clock::now()](std::uint64_t done,
                                                                 std::uint64_t total) mutable {
    if (total == 0 || Clock::now() - last < every) return;
    last = Clock::now();
    const double fraction = static_cast<double>(done) / static_cast<double>(total);
    std::cerr << (terminal ? "\r" : "") << "reading " << file << ": " << format_percent(fraction)
              << (terminal ? "   \r" : "\n") << std::flush;
  };
  return source;
}

int run_import(const Arguments& arguments) {
  po::options_description options;
  const auto text = [] { return po::value<std::string>(); };
  options.add_options()("input", po::value<std::vector<std::string>>()->composing(),
                        "FORMAT (optional) and FILE; several FILEs for the ranks of one trace")(
      "output,o", text(), "write the records here (kernel tables: a folder)")(
      "tables", text(),
      "write a profiled step's kernels here as tables for calibrate (--scenario)")(
      "set", po::value<std::vector<std::string>>()->composing(), "change the scenario: PATH=VALUE")(
      "scenario", text(), "compare a profiled step with this scenario, op by op")(
      "concurrency", po::value<double>()->default_value(1.0), "requests in the profiled step")(
      "rules", text(), "further rules from kernel names to ops, tried before the shipped ones")(
      "anchor", text(), "a step begins where a kernel of this name (regular expression) runs")(
      "steps", po::value<double>()->default_value(1.0), "steps a table of kernel totals covers")(
      "operation", text()->default_value(""), "collective, where nccl-tests output omits it")(
      "device", text(), "GPU of kernel tables, where the file does not say it")(
      "lines", po::value<unsigned>()->default_value(24), "kernels or rows to print")(
      "max-gib", po::value<double>()->default_value(64.0), "largest decompressed file, GiB")(
      "json", po::bool_switch(), "print JSON");
  const HelpText help{
      "fulcrum import [FORMAT] FILE... [OPTIONS]",
      "Reads what other tools measured; plain or gzip. FORMAT is found by itself when left out or\n"
      "\"auto\": sglang, vllm, genai-perf, aiperf, inferencex (benchmark clients); torch-trace,\n"
      "nsys-sqlite, nsys-csv (profiles of a server: steps, time per op, gaps); nccl-tests, "
      "nvbench\n"
      "(kernel times, as tables for calibrate); tuned-config (Triton tiles); server-log (start-up\n"
      "log of SGLang or vLLM, as changes to a scenario).",
      "  fulcrum import bench.jsonl -o results.json\n"
      "  fulcrum import rank0.trace.json.gz --scenario campaign-a --concurrency 1\n"
      "  fulcrum import all_reduce_perf.txt -o tables"};
  po::variables_map values;
  if (!parse(arguments, help, options, {"input"}, values)) return 0;
  if (values.count("input") == 0) {
    throw InputError({"command line", "FILE", "no file given", "[FORMAT] FILE"});
  }
  check_options(values);
  auto files = values["input"].as<std::vector<std::string>>();
  std::optional<ImportFormat> format;
  if (files.size() > 1) {
    format = calibrate::io::import_format_named(files.front());
    if (format || files.front() == "auto") files.erase(files.begin());
  }
  if (files.size() > 1) return import_traces(files, format, values);
  const std::string& file = files.front();
  switch (container_for(file, format, values)) {
    case Container::kServerLog:
      return show_server_log(file, values);
    case Container::kNcclText: {
      io::ByteSource source = open_import(file, values);
      return show_tables(
          {calibrate::io::read_nccl_text(source, values["operation"].as<std::string>())}, file,
          values);
    }
    case Container::kJson:
      return import_json(file, format, values);
    default:
      return import_traces(files, format, values);
  }
}

}  // namespace fulcrum::cli
