#include "model/io/load_case.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "model/errors.h"
#include "model/speculation.h"
#include "model/validate.h"
#include "tests/model/test_support.h"

namespace fulcrum::io {
namespace {

/// A file of this test's own, removed with it.
class CaseFile {
 public:
  explicit CaseFile(const std::string& text)
      : path_(std::filesystem::temp_directory_path() /
              ("fulcrum_cases_" +
               std::to_string(::testing::UnitTest::GetInstance()->random_seed()) + "_" +
               ::testing::UnitTest::GetInstance()->current_test_info()->name())) {
    std::ofstream(path_) << text;
  }
  ~CaseFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  CaseFile(const CaseFile&) = delete;
  CaseFile& operator=(const CaseFile&) = delete;
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

CaseSet cases_of(const std::string& text) { return load_cases(CaseFile(text).path()); }

TEST(LoadCases, ReadsNamesOverridesAndConcurrency) {
  const CaseSet set = cases_of(
      R"({"id":"a","scenario":"campaign-a","overrides":{"workload.input_tokens":77},"concurrency":4,)"
      R"("measured":{"output_tokens_per_second":20,"tpot_seconds":0.2},"source":"s","panel":"p"})"
      "\n\n"
      R"({"id":"b","scenario":"campaign-a","concurrency":8,"measured":{"step_seconds":0.2}})");
  ASSERT_EQ(set.cases.size(), 2u);
  EXPECT_EQ(set.cases[0].deployment.workload.input_tokens, 77.0);
  EXPECT_EQ(set.cases[0].concurrency, 4.0);
  EXPECT_EQ(set.cases[0].measured.result.tpot.mean_seconds, 0.2);
  EXPECT_EQ(set.cases[1].measured.step_seconds, 0.2);
  EXPECT_TRUE(set.excluded.empty());
}

TEST(LoadCases, TakesAScenarioWrittenOutAndAnArrayOfCases) {
  std::ifstream in(test::data_path("scenarios/campaign-a.json"));
  nlohmann::json scenario = nlohmann::json::parse(in);
  scenario.erase("schema");
  scenario.erase("name");
  const nlohmann::json file =
      nlohmann::json::array({{{"id", "x"},
                              {"scenario", scenario},
                              {"concurrency", 1},
                              {"measured", {{"output_tokens_per_second", 10}}}}});
  const CaseSet set = cases_of(file.dump(1));
  ASSERT_EQ(set.cases.size(), 1u);
  EXPECT_EQ(set.cases[0].deployment.name, "x");
}

TEST(LoadCases, AMeasuredAcceptLengthIsTakenAsGiven) {
  const CaseSet set =
      cases_of(R"({"id":"a","scenario":"campaign-b","concurrency":1,)"
               R"("measured":{"output_tokens_per_second":10,"accept_length":1.5}})");
  ASSERT_EQ(set.cases.size(), 1u);
  EXPECT_TRUE(set.cases[0].acceptance_is_measured);
  EXPECT_NEAR(accept_length(set.cases[0].deployment.speculation.acceptance), 1.5, 1e-9);
}

TEST(LoadCases, AnOverrideOfAcceptanceReplacesTheScenariosOwnWay) {
  const CaseSet set =
      cases_of(R"({"id":"a","scenario":"campaign-b","overrides":{"speculation.accept_length":1.6},)"
               R"("concurrency":1,"measured":{"step_seconds":0.1}})"
               "\n"
               R"({"id":"b","scenario":"campaign-b","overrides":{"speculation.acceptance":[0.5]},)"
               R"("concurrency":1,"measured":{"step_seconds":0.1}})");
  ASSERT_EQ(set.cases.size(), 2u) << set.excluded.at(0).why;
  EXPECT_NEAR(accept_length(set.cases[0].deployment.speculation.acceptance), 1.6, 1e-9);
  EXPECT_NEAR(accept_length(set.cases[1].deployment.speculation.acceptance), 1.5, 1e-9);
}

TEST(LoadCases, OneBadScenarioExcludesItsCaseAndNoOther) {
  const CaseSet set = cases_of(
      R"({"id":"bad","scenario":"nosuch","concurrency":1,"measured":{"step_seconds":1}})"
      "\n"
      R"({"id":"none","scenario":"campaign-a","concurrency":1,"measured":{"num_prompts":3}})"
      "\n"
      R"({"id":"out","scenario":"campaign-a","concurrency":1,"measured":{},"exclude":"why not"})"
      "\n"
      R"({"id":"good","scenario":"campaign-a","concurrency":1,"measured":{"step_seconds":1}})");
  ASSERT_EQ(set.cases.size(), 1u);
  ASSERT_EQ(set.excluded.size(), 3u);
  EXPECT_NE(set.excluded[0].why.find("nosuch"), std::string::npos);
  EXPECT_EQ(set.excluded[2].why, "why not");
}

TEST(LoadCases, UnknownKeysAreSaidAndNotFatal) {
  const CaseSet set = cases_of(
      R"({"id":"a","scenario":"campaign-a","concurrency":1,"measured":{"step_seconds":1,"x":2},"y":1})");
  EXPECT_EQ(set.cases.size(), 1u);
  EXPECT_EQ(set.warnings.size(), 2u);
}

TEST(LoadCases, AMalformedFileIsOneClearError) {
  for (const char* text :
       {"", "[]", "{", "{}\n{\"id\"", "null", "3", "{\"id\":\"a\"}",
        R"({"id":"a","scenario":7,"measured":{}})",
        R"({"id":"a","scenario":"campaign-a","concurrency":0,"measured":{"step_seconds":1}})",
        R"({"id":"a","scenario":"campaign-a","concurrency":1,"measured":{"step_seconds":-1}})",
        R"({"id":"a","scenario":"campaign-a","concurrency":1,"measured":{"step_seconds":"1"}})",
        R"({"id":"a","scenario":"campaign-a","concurrency":1,"measured":[]})",
        R"({"id":"a","id":"b","scenario":"campaign-a","measured":{"step_seconds":1}})",
        R"({"id":"a","scenario":"campaign-a","overrides":[1],"measured":{"step_seconds":1}})"}) {
    try {
      const CaseSet set = cases_of(text);
      EXPECT_EQ(set.cases.size(), 0u) << text;  // excluded with a reason is an answer as well
      EXPECT_FALSE(set.excluded.empty()) << text;
    } catch (const InputError& error) {
      EXPECT_FALSE(error.problems().empty()) << text;
    }
  }
}

TEST(LoadCases, AnAssumptionNeedsBothEnds) {
  const std::string head =
      R"({"id":"a","scenario":"campaign-a","concurrency":1,"measured":{"step_seconds":1},"assumptions":)";
  EXPECT_EQ(cases_of(head + R"([{"why":"w","path":"workload.output_tokens","low":10,"high":20}]})")
                .cases.at(0)
                .assumptions.at(0)
                .low->workload.output_tokens,
            10.0);
  EXPECT_EQ(
      cases_of(head + R"([{"why":"w","path":"workload.output_tokens","low":10}]})").excluded.size(),
      1u);
}

TEST(LoadMeasured, ReadsACaseFileAndABareObject) {
  std::vector<std::string> warnings;
  const CaseFile bare(R"({"concurrency": 16, "output_tokens_per_second": 23})");
  EXPECT_EQ(load_measured(bare.path(), warnings).at(0).result.output_tokens_per_second, 23.0);
}

TEST(LoadMeasured, ReadsEveryLineOfACaseFile) {
  std::vector<std::string> warnings;
  const CaseFile cases(
      R"({"id":"a","scenario":"x","concurrency":4,"measured":{"tpot_seconds":{"mean":0.1,"p50":0.09}}})"
      "\n"
      R"({"id":"b","scenario":"x","concurrency":8,"measured":{"tpot_seconds":0.2}})");
  const auto all = load_measured(cases.path(), warnings);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].result.tpot.p50_seconds, 0.09);
  EXPECT_EQ(all[1].result.concurrency, 8.0);
}

}  // namespace
}  // namespace fulcrum::io
