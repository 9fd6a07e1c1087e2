#include "model/io/load_model.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "model/errors.h"
#include "model/io/json_reader.h"
#include "tests/model/test_support.h"

namespace fulcrum {
namespace {

/// Message of loading the Flash config after `change`.
template <class Change>
std::string error_after(Change change) {
  nlohmann::json config = io::read_json_file(test::data_path("models/deepseek-v4-flash.json"));
  change(config);
  const auto path = std::filesystem::temp_directory_path() /
                    ("fulcrum-config-" + std::to_string(::getpid()) + ".json");
  std::ofstream(path) << config;
  std::string message;
  try {
    io::load_model(path.string());
  } catch (const InputError& error) {
    message = error.what();
  }
  std::filesystem::remove(path);
  return message;
}

TEST(LoadModel, FlashProAndNvfp4AreReadAsPublished) {
  const ModelConfig flash = test::model("deepseek-v4-flash");
  EXPECT_EQ(flash.count(LayerKind::kSwa), 2);
  EXPECT_EQ(flash.count(LayerKind::kCsa), 21);
  EXPECT_EQ(flash.count(LayerKind::kHca), 20);
  EXPECT_EQ(flash.num_mtp_layers, 1);
  EXPECT_EQ(flash.expert_format, ExpertFormat::kMxfp4);
  const ModelConfig pro = test::model("deepseek-v4-pro");
  EXPECT_EQ(pro.count(LayerKind::kSwa), 0);
  EXPECT_EQ(pro.count(LayerKind::kCsa), 30);
  EXPECT_EQ(pro.count(LayerKind::kHca), 31);
  EXPECT_EQ(test::model("deepseek-v4-flash-nvfp4").expert_format, ExpertFormat::kNvfp4);
}

TEST(LoadModel, AnotherArchitectureIsRefusedByName) {
  const std::string message = error_after([](auto& c) { c["model_type"] = "llama"; });
  EXPECT_NE(message.find("/model_type: is \"llama\""), std::string::npos) << message;
  EXPECT_NE(message.find("deepseek_v4"), std::string::npos);
}

TEST(LoadModel, AMissingFieldIsNamed) {
  EXPECT_NE(error_after([](auto& c) { c.erase("q_lora_rank"); }).find("/q_lora_rank: is missing"),
            std::string::npos);
  EXPECT_NE(error_after([](auto& c) { c.erase("compress_ratios"); }).find("/compress_ratios"),
            std::string::npos);
}

TEST(LoadModel, ContradictionsAreNamed) {
  EXPECT_NE(error_after([](auto& c) {
              c["num_experts_per_tok"] = 300;
            }).find("/num_experts_per_tok: contradicts"),
            std::string::npos);
  EXPECT_NE(error_after([](auto& c) {
              c["num_hidden_layers"] = 44;
            }).find("/compress_ratios: has 44 entries (allowed: 45"),
            std::string::npos);
  EXPECT_NE(error_after([](auto& c) { c["compress_ratios"][3] = 7; }).find("/compress_ratios/3"),
            std::string::npos);
}

TEST(LoadModel, NonsenseValuesAreRefused) {
  EXPECT_NE(error_after([](auto& c) { c["hidden_size"] = -4096; }).find("/hidden_size"),
            std::string::npos);
  EXPECT_NE(error_after([](auto& c) { c["hidden_size"] = 4096.5; }).find("whole number"),
            std::string::npos);
  EXPECT_NE(error_after([](auto& c) { c["hidden_size"] = "4096"; }).find("is \"4096\""),
            std::string::npos);
  EXPECT_NE(error_after([](auto& c) { c = nlohmann::json::array(); }).find("an object"),
            std::string::npos);
}

}  // namespace
}  // namespace fulcrum
