#include <algorithm>
#include <fstream>
#include <iostream>
#include <stdexcept>

#include "calibrate/io/op_tables_file.h"
#include "cli/options.h"
#include "cli/replay_step.h"
#include "cli/table.h"
#include "model/errors.h"
#include "model/io/data_dir.h"
#include "model/io/load_model.h"

namespace fulcrum::cli {

namespace po = boost::program_options;

int run_replay_tabulate(const Arguments& arguments) {
  po::options_description options;
  const auto text = [] { return po::value<std::string>(); };
  options.add_options()("file", po::value<std::vector<std::string>>()->composing(),
                        "measurement files with op_alone records")(
      "in-step", po::value<std::vector<std::string>>()->composing(),
      "files with step records: the ops' times inside steps give the tables' error")(
      "hardware", text(), "hardware file that the GPU is, e.g. h200-sxm")(
      "source", text()->default_value("measured by `replay step --alone`"), "where they come from")(
      "date", text()->default_value(""), "of the measurement")(
      "output,o", text(), "write the tables here, else to the terminal");
  po::variables_map values;
  if (!parse(arguments,
             {.usage = "fulcrum replay tabulate FILE... --in-step FILE --hardware NAME -o FILE",
              .description = "Makes the tables that price this repository's kernels: times of ops "
                             "alone on a grid of tokens, widths and rows.",
              .example = "fulcrum replay tabulate alone.jsonl --in-step seen.jsonl --hardware "
                         "h200-sxm -o data/calibration/op_tables/h200-sxm.json"},
             options, {"file"}, values)) {
    return 0;
  }
  if (values.count("file") == 0 || values.count("hardware") == 0) {
    throw InputError({"command line", values.count("file") == 0 ? "FILE" : "--hardware",
                      "is missing", "see --help"});
  }
  std::vector<calibrate::io::StepRecords> files;
  std::vector<calibrate::OpRecord> alone, in_step;
  for (const char* option : {"file", "in-step"}) {
    if (values.count(option) == 0) continue;
    for (const std::string& path : values[option].as<std::vector<std::string>>()) {
      files.push_back(calibrate::io::read_step_records(path));
      const calibrate::io::StepRecords& read = files.back();
      if (read.model != files.front().model || read.device != files.front().device) {
        throw InputError({path, "", "is of " + read.model + " on " + read.device,
                          "the model and device of the first file"});
      }
      const bool is_alone = std::string_view(option) == "file";
      auto& into = is_alone ? alone : in_step;
      const auto& from = is_alone ? read.alone : read.in_step;
      into.insert(into.end(), from.begin(), from.end());
    }
  }
  const ModelConfig model =
      io::load_model(io::resolve("models", files.front().model, "command line", "FILE"));
  std::vector<calibrate::TabulatedOp> tables;
  try {
    tables = calibrate::tabulate_ops(model, alone);
    calibrate::set_discrepancy(model, in_step, tables);
  } catch (const std::invalid_argument& error) {
    throw InputError({files.front().file, "", error.what(), "a full grid of op_alone records"});
  }
  const std::string json =
      calibrate::io::op_tables_text({.hardware = values["hardware"].as<std::string>(),
                                     .source = values["source"].as<std::string>(),
                                     .date = values["date"].as<std::string>()},
                                    files, tables);
  if (values.count("output") == 0) {
    std::cout << json;
    return 0;
  }
  const std::string path = values["output"].as<std::string>();
  std::ofstream out(path);
  out << json;
  if (!out.flush()) throw std::runtime_error(path + " cannot be written");
  std::cout << path << ": " << tables.size() << " ops from " << alone.size()
            << " timings; error from " << in_step.size() << " ops inside steps\n";
  return 0;
}

}  // namespace fulcrum::cli
