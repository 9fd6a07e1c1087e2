#include "model/io/json_reader.h"

#include <gtest/gtest.h>

namespace fulcrum::io {
namespace {

std::string error_of(const std::string& text) {
  try {
    parse_json(text, "f.json");
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(ParseJson, TruncatedTextNamesItsPlace) {
  EXPECT_NE(error_of("{\n \"a\": [1, 2").find("f.json: line 2"), std::string::npos);
  EXPECT_NE(error_of("").find("not valid JSON"), std::string::npos);
}

TEST(ParseJson, DuplicateKeysAreRefused) {
  EXPECT_NE(error_of(R"({"a": 1, "b": {"a": 2, "a": 3}})").find("\"a\" appears twice"),
            std::string::npos);
  EXPECT_EQ(error_of(R"({"a": {"x": 1}, "b": {"x": 2}})"), "");
}

TEST(ParseJson, NumbersOutsideADoubleAreRefused) {
  EXPECT_NE(error_of(R"({"a": 1e999})").find("no double"), std::string::npos);
}

TEST(JsonObject, AllProblemsAreGatheredWithTheirPointers) {
  const auto value =
      parse_json(R"({"size": -1, "name": 3, "colour": "red", "deep": {"x": "y"}})", "f.json");
  std::vector<InputProblem> problems;
  JsonObject object(value, "f.json", "", problems);
  object.number("size", kPositive);
  object.string("name");
  object.number("missing", kPositive);
  object.object("deep", [](JsonObject& deep) { deep.number("x", kPositive); });
  object.reject_unknown();
  ASSERT_EQ(problems.size(), 5u);
  EXPECT_EQ(problems[0].pointer, "/size");
  EXPECT_EQ(problems[0].allowed, "a number, > 0");
  EXPECT_EQ(problems[1].pointer, "/name");
  EXPECT_EQ(problems[2].message, "is missing");
  EXPECT_EQ(problems[3].pointer, "/deep/x");
  EXPECT_EQ(problems[4].pointer, "/colour");
}

TEST(JsonObject, ASlipOfThePenGetsASuggestion) {
  const auto value = parse_json(R"({"memory_bandwith_gb_per_s": 1})", "f.json");
  std::vector<InputProblem> problems;
  JsonObject object(value, "f.json", "", problems);
  object.ignore("memory_bandwidth_gb_per_s");
  object.reject_unknown();
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_NE(problems[0].allowed.find("memory_bandwidth_gb_per_s"), std::string::npos);
}

TEST(JsonObject, AFittedNumberNeedsItsStandardError) {
  const auto value =
      parse_json(R"({"a": {"value": 1, "basis": "fitted", "source": "s"}})", "f.json");
  std::vector<InputProblem> problems;
  JsonObject object(value, "f.json", "", problems);
  object.sourced("a", kPositive);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].pointer, "/a/standard_error");
}

}  // namespace
}  // namespace fulcrum::io
