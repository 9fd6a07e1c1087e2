// Fixtures of `fulcrum import`, damaged by a seeded generator, are read or refused with an
// InputError that says where. FULCRUM_FUZZ_RUNS sets the variants per parser (default 500);
// tests/fuzz/import_fuzzer.cpp explores further under libFuzzer.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "model/errors.h"
#include "tests/fuzz/import_parsers.h"
#include "tests/fuzz/mutate.h"

namespace fulcrum::fuzz {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> seeds_of(const ImportParser& parser) {
  std::vector<std::string> seeds;
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(FULCRUM_SOURCE_DIR "/tests/import/fixtures")) {
    std::istringstream parts{std::string(parser.seeds)};
    std::string part;
    while (std::getline(parts, part, ',')) {
      if (entry.path().filename().string().find(part) == std::string::npos) continue;
      files.push_back(entry.path());
      break;
    }
  }
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files) {
    std::ifstream in(file, std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    seeds.push_back(std::move(text).str());
  }
  if (parser.name == "nsys_sqlite") seeds.push_back(nsys_sqlite_seed());
  return seeds;
}

std::size_t num_runs() {
  const char* runs = std::getenv("FULCRUM_FUZZ_RUNS");
  return runs != nullptr ? std::strtoull(runs, nullptr, 10) : 500;
}

/// True when the parser read the bytes; a wrong kind of failure fails the test.
bool reads(const ImportParser& parser, const std::string& bytes) {
  try {
    parser.parse(bytes);
    return true;
  } catch (const InputError& error) {
    EXPECT_FALSE(error.problems().empty());
    return false;
  } catch (const std::exception& error) {
    ADD_FAILURE() << parser.name << ": " << typeid(error).name() << ": " << error.what() << "\n"
                  << bytes.substr(0, 2000);
    return false;
  }
}

class ImportParsers : public testing::TestWithParam<ImportParser> {};

TEST_P(ImportParsers, ReadTheirSeeds) {
  const auto seeds = seeds_of(GetParam());
  ASSERT_FALSE(seeds.empty());
  for (const std::string& seed : seeds) EXPECT_TRUE(reads(GetParam(), seed)) << seed;
}

TEST_P(ImportParsers, ReadOrRefuseDamagedSeeds) {
  const auto seeds = seeds_of(GetParam());
  Generator generator(20261130);
  const std::size_t runs = num_runs();
  for (std::size_t i = 0; i < runs && !HasFailure(); ++i) {
    reads(GetParam(), damage_text(seeds[pick(generator, seeds.size())], generator));
  }
}

INSTANTIATE_TEST_SUITE_P(All, ImportParsers, testing::ValuesIn(import_parsers()),
                         [](const auto& parser) { return std::string(parser.param.name); });

}  // namespace
}  // namespace fulcrum::fuzz
