#include "replay/shape.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

namespace fulcrum::replay {
namespace {

const std::vector<Dimension> kDimensions = {
    {.name = "m", .meaning = "tokens", .default_value = 1, .min = 1, .max = 512},
    {.name = "k",
     .meaning = "columns",
     .default_value = 256,
     .min = 128,
     .max = 4096,
     .multiple = 128}};

std::string message_of(const std::string& text) {
  try {
    parse_shape(text, kDimensions);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

TEST(Shape, MissingDimensionsTakeTheirDefaultsInTheKernelsOrder) {
  EXPECT_EQ(parse_shape("k=512", kDimensions).to_string(), "m=1,k=512");
  EXPECT_EQ(parse_shape("k=512,m=3", kDimensions).to_string(), "m=3,k=512");
  EXPECT_EQ(parse_shape("", kDimensions).to_string(), "m=1,k=256");
}

TEST(Shape, ListsAreSplitAtSemicolonsAndAnEmptyListIsTheDefaultShape) {
  const auto shapes = parse_shapes("m=1;;m=2,k=128", kDimensions);
  ASSERT_EQ(shapes.size(), 2u);
  EXPECT_EQ(shapes[1].to_string(), "m=2,k=128");
  EXPECT_EQ(parse_shapes("", kDimensions).size(), 1u);
}

TEST(Shape, ErrorsNameTheKeyWhatWasFoundAndWhatIsAllowed) {
  EXPECT_NE(message_of("n=1").find("unknown dimension 'n', allowed: m, k"), std::string::npos);
  EXPECT_NE(message_of("m=0").find("m=0, allowed: 1..512"), std::string::npos);
  EXPECT_NE(message_of("k=130").find("128..4096 in multiples of 128"), std::string::npos);
  EXPECT_NE(message_of("m=1x").find("m=1x"), std::string::npos);
  EXPECT_NE(message_of("m").find("expected name=value"), std::string::npos);
  EXPECT_NE(message_of("m=1,m=2").find("given twice"), std::string::npos);
  EXPECT_NE(message_of("m=99999999999999999999").find("allowed"), std::string::npos);
}

TEST(Shape, AskingForADimensionThatIsNotThereThrows) {
  EXPECT_THROW(parse_shape("", kDimensions)["n"], std::invalid_argument);
}

}  // namespace
}  // namespace fulcrum::replay
