// Every shipped file, damaged in many ways, is either read or refused with an InputError that says
// where. Run under the sanitizers too, this stands in for a coverage-guided fuzzer where the
// compiler has none.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "model/errors.h"
#include "model/io/data_dir.h"
#include "model/io/json_reader.h"
#include "model/io/load_acceptance.h"
#include "model/io/load_calibration.h"
#include "model/io/load_hardware.h"
#include "model/io/load_kernel_set.h"
#include "model/io/load_lever.h"
#include "model/io/load_model.h"
#include "model/io/load_scenario.h"
#include "model/io/load_trace.h"
#include "tests/fuzz/mutate.h"

namespace fulcrum {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

struct Loader {
  const char* folder;
  std::function<void(const std::string& path)> load;
  bool strict;       ///< unknown keys are errors; published configs carry keys we do not read
  int num_variants;  ///< per file and kind of damage; scenarios load three more files each
};

/// A kernel set is bound to a GPU while it is read.
void load_kernels(const std::string& path) {
  const bool hopper =
      path.find("sm90") != std::string::npos || path.find("fulcrum-reference") != std::string::npos;
  const std::string gpu = hopper ? "h200-sxm" : "rtx-pro-6000-server";
  const Hardware hardware = io::load_hardware(io::data_dir() + "/hardware/" + gpu + ".json");
  std::vector<std::string> warnings;
  io::load_kernel_set(path, path, "", hardware, {}, warnings);
}

/// What a lever sets is checked when it is pulled.
void load_and_pull(const std::string& path) {
  std::vector<std::string> warnings;
  io::resolve_scenario(io::pull(io::read_scenario("campaign-stock"), io::load_lever(path)),
                       warnings);
}

const std::vector<Loader>& loaders() {
  static const std::vector<Loader> kLoaders{
      {"hardware", [](const std::string& path) { io::load_hardware(path); }, true, 300},
      {"models", [](const std::string& path) { io::load_model(path); }, false, 300},
      {"scenarios",
       [](const std::string& path) {
         std::vector<std::string> warnings;
         io::resolve_scenario(io::read_scenario(path), warnings);
       },
       true, 60},
      {"kernels", load_kernels, true, 100},
      {"acceptance", [](const std::string& path) { io::load_acceptance(path); }, true, 60},
      {"levers", load_and_pull, true, 150},
      {"calibration", [](const std::string& path) { io::load_calibration(path); }, true, 60},
  };
  return kLoaders;
}

std::string read_text(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

/// Calls `visit` for every shipped file; its variants are written to a scratch file of the same
/// name, since some schemas repeat the file's stem.
class ShippedFiles : public testing::Test {
 protected:
  ShippedFiles() : scratch_(fs::temp_directory_path() / ("fulcrum-" + std::to_string(getpid()))) {
    fs::create_directories(scratch_);
  }
  ~ShippedFiles() override {
    std::error_code ignored;
    fs::remove_all(scratch_, ignored);
  }

  void visit_all(const std::function<void(const Loader&, const fs::path&)>& visit) {
    int num_files = 0;
    for (const Loader& loader : loaders()) {
      const fs::path folder = fs::path(io::data_dir()) / loader.folder;
      if (!fs::is_directory(folder)) continue;
      for (const auto& entry : fs::directory_iterator(folder)) {
        if (entry.path().extension() != ".json") continue;
        visit(loader, entry.path());
        ++num_files;
      }
    }
    EXPECT_GE(num_files, 11);  // 8 GPUs and 3 models at least
  }

  enum class Outcome { kRead, kRefused, kWrongFailure };
  Outcome load_text(const Loader& loader, const fs::path& original, const std::string& text) {
    const fs::path path = scratch_ / original.filename();
    fs::remove(path);  // ext4 flushes a file that is truncated and rewritten: 5 ms each
    std::ofstream(path, std::ios::binary) << text;
    try {
      loader.load(path.string());
      return Outcome::kRead;
    } catch (const InputError& error) {
      refusal_ = error.what();
      if (error.problems().empty()) return Outcome::kWrongFailure;
      for (const InputProblem& problem : error.problems()) {
        if (problem.file.empty() || problem.message.empty()) return Outcome::kWrongFailure;
      }
      return Outcome::kRefused;
    } catch (const std::exception& error) {
      ADD_FAILURE() << original << ": " << typeid(error).name() << ": " << error.what();
      return Outcome::kWrongFailure;
    }
  }

  std::string refusal_;  ///< message of the last kRefused

 private:
  fs::path scratch_;
};

TEST_F(ShippedFiles, DamagedTracesAreReadOrRefused) {
  const Loader loader{"", [](const std::string& path) { io::load_trace(path); }, false, 0};
  const std::string text =
      "{\"timestamp\": 1500, \"input_length\": 6758, \"output_length\": 500, \"hash_ids\": [0]}\n"
      "{\"arrival_time\": 27.5, \"prompt_len\": 7, \"output_len\": 9, \"prompt\": \"x\"}\n"
      "{\"timestamp\": 1e3, \"input_length\": 1, \"output_length\": 1}\n";
  ASSERT_EQ(load_text(loader, "trace.jsonl", text), Outcome::kRead) << refusal_;
  fuzz::Generator generator(20260805);
  for (int i = 0; i < 2000; ++i) {
    const std::string variant = fuzz::damage_text(text, generator);
    EXPECT_NE(load_text(loader, "trace.jsonl", variant), Outcome::kWrongFailure) << variant;
  }
  for (const char* huge : {"1e300", "-1e300", "1e999"}) {
    const std::string line =
        std::string("{\"arrival_seconds\": ") + huge + ", \"input_len\": 1, \"output_len\": 1}\n";
    EXPECT_EQ(load_text(loader, "trace.jsonl", line), Outcome::kRefused) << line;
  }
}

TEST_F(ShippedFiles, AreReadAsTheyAre) {
  visit_all([&](const Loader& loader, const fs::path& path) {
    EXPECT_EQ(load_text(loader, path, read_text(path)), Outcome::kRead) << refusal_;
  });
}

TEST_F(ShippedFiles, DamagedBytesAreReadOrRefused) {
  fuzz::Generator generator(20260801);
  visit_all([&](const Loader& loader, const fs::path& path) {
    const std::string text = read_text(path);
    for (int i = 0; i < loader.num_variants; ++i) {
      const std::string variant = fuzz::damage_text(text, generator);
      EXPECT_NE(load_text(loader, path, variant), Outcome::kWrongFailure) << path << "\n"
                                                                          << variant;
    }
  });
}

TEST_F(ShippedFiles, TruncatedFilesAreRefused) {
  fuzz::Generator generator(20260802);
  visit_all([&](const Loader& loader, const fs::path& path) {
    const std::string text = read_text(path);
    const std::size_t last_brace = text.rfind('}');
    for (int i = 0; i < loader.num_variants / 4; ++i) {
      const std::string variant = text.substr(0, fuzz::pick(generator, last_brace + 1));
      EXPECT_EQ(load_text(loader, path, variant), Outcome::kRefused) << path << "\n" << variant;
    }
  });
}

TEST_F(ShippedFiles, DamagedValuesAreReadOrRefused) {
  fuzz::Generator generator(20260803);
  visit_all([&](const Loader& loader, const fs::path& path) {
    const json document = json::parse(read_text(path));
    for (int i = 0; i < loader.num_variants; ++i) {
      const json variant = fuzz::damage_value(document, generator);
      EXPECT_NE(load_text(loader, path, variant.dump()), Outcome::kWrongFailure) << path << "\n"
                                                                                 << variant.dump(1);
    }
  });
}

TEST_F(ShippedFiles, UnknownKeysAreRefused) {
  fuzz::Generator generator(20260804);
  visit_all([&](const Loader& loader, const fs::path& path) {
    if (!loader.strict) return;
    const json document = json::parse(read_text(path));
    for (int i = 0; i < loader.num_variants; ++i) {
      const json variant = fuzz::rename_key(document, generator);
      const json change = json::diff(document, variant);
      // A kernel set names its variants as it likes.
      if (!change.empty() &&
          change[0]["path"].get<std::string>().rfind('/') == std::string("/variants").size() &&
          change[0]["path"].get<std::string>().starts_with("/variants/")) {
        continue;
      }
      EXPECT_EQ(load_text(loader, path, variant.dump()), Outcome::kRefused) << path << "\n"
                                                                            << change.dump(1);
    }
  });
}

}  // namespace
}  // namespace fulcrum
