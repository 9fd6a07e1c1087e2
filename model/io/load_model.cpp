#include "model/io/load_model.h"

#include <array>
#include <cmath>
#include <filesystem>
#include <string_view>
#include <utility>

#include "model/io/json_reader.h"

namespace fulcrum::io {
namespace {

constexpr Range kCount{1.0, 1e7};
constexpr int kCsaRatio = 4;
constexpr int kHcaRatio = 128;

void read_shapes(JsonObject& config, ModelConfig& model) {
  const std::array<std::pair<const char*, int*>, 20> fields{{
      {"hidden_size", &model.hidden},
      {"num_hidden_layers", &model.num_layers},
      {"num_attention_heads", &model.num_heads},
      {"head_dim", &model.head_dim},
      {"qk_rope_head_dim", &model.rope_dim},
      {"q_lora_rank", &model.q_lora},
      {"o_lora_rank", &model.o_lora},
      {"o_groups", &model.o_groups},
      {"index_n_heads", &model.index_heads},
      {"index_head_dim", &model.index_dim},
      {"index_topk", &model.index_top_k},
      {"sliding_window", &model.window},
      {"n_routed_experts", &model.num_experts},
      {"n_shared_experts", &model.num_shared_experts},
      {"num_experts_per_tok", &model.top_k},
      {"moe_intermediate_size", &model.expert_inter},
      {"hc_mult", &model.hc_streams},
      {"hc_sinkhorn_iters", &model.sinkhorn_iterations},
      {"vocab_size", &model.vocab},
      {"max_position_embeddings", &model.max_position},
  }};
  for (const auto& [key, target] : fields) {
    *target = config.integer(key, kCount);
  }
  model.num_hash_layers = config.integer("num_hash_layers", Range{0, 1e4});
  model.num_mtp_layers = config.integer("num_nextn_predict_layers", Range{0, 16});
  model.draft_experts = model.num_experts;
  model.draft_top_k = model.top_k;
}

/// DSpark checkpoints keep num_nextn_predict_layers at 1 and state their stages only by the
/// entries of compress_ratios beyond the backbone.
void read_dspark(JsonObject& config, ModelConfig& model) {
  if (!config.has("dspark_block_size")) return;
  model.draft_method = DraftMethod::kDspark;
  model.dspark_block = config.integer("dspark_block_size", Range{1, 64});
  model.dspark_markov_rank = config.integer("dspark_markov_rank", kCount);
  const std::vector<double> targets = config.numbers("dspark_target_layer_ids", Range{0, 1e4});
  model.dspark_target_layers = static_cast<int>(targets.size());
  for (const double layer : targets) {
    if (layer >= model.num_layers) {
      config.problem("dspark_target_layer_ids", "names layer " + std::to_string(layer),
                     "layers of the backbone, below num_hidden_layers");
    }
  }
  if (targets.empty()) {
    config.problem("dspark_target_layer_ids", "is empty", "the layers the draft reads");
  }
  model.draft_experts = config.integer_or("dspark_n_routed_experts", kCount, model.num_experts);
  model.draft_top_k = config.integer_or("dspark_num_experts_per_tok", kCount, model.top_k);
  const std::vector<double> ratios = config.numbers("compress_ratios", Range{0, 1e6});
  const int beyond = static_cast<int>(ratios.size()) - model.num_layers;
  if (beyond >= 1 && beyond <= 16) model.num_mtp_layers = beyond;
}

void read_layers(JsonObject& config, ModelConfig& model) {
  const std::vector<double> ratios = config.numbers("compress_ratios", Range{0, 1e6});
  const auto expected = static_cast<std::size_t>(model.num_layers + model.num_mtp_layers);
  if (ratios.size() != expected) {
    config.problem(
        "compress_ratios", "has " + std::to_string(ratios.size()) + " entries",
        std::to_string(expected) + ", one per num_hidden_layers and num_nextn_predict_layers");
    return;
  }
  const auto ratio_problem = [&](int i, std::string message, std::string allowed) {
    config.problems().push_back({config.file(),
                                 config.pointer_to("compress_ratios") + "/" + std::to_string(i),
                                 std::move(message), std::move(allowed)});
  };
  for (int i = 0; i < static_cast<int>(ratios.size()); ++i) {
    const double ratio = ratios[static_cast<std::size_t>(i)];
    const bool is_draft = i >= model.num_layers;
    LayerKind kind = LayerKind::kSwa;
    if (ratio == kCsaRatio) {
      kind = LayerKind::kCsa;
    } else if (ratio == kHcaRatio) {
      kind = LayerKind::kHca;
    } else if (ratio != 0.0) {
      ratio_problem(i, "is " + std::to_string(ratio), "0 (sliding window), 4 (CSA) or 128 (HCA)");
    }
    if (is_draft && ratio != 0.0) {
      ratio_problem(i, "is a compressed draft layer", "0: draft layers attend to the window only");
    }
    if (!is_draft) model.layers.push_back(kind);
  }
}

void read_quantization(JsonObject& config, ModelConfig& model) {
  config.object("quantization_config", [&](JsonObject& quantization) {
    constexpr std::array<std::string_view, 1> kMethods{"fp8"};
    quantization.choice("quant_method", kMethods);
    const std::vector<double> block = quantization.numbers("weight_block_size", kCount);
    if (block.size() == 2) {
      model.fp8_block_n = static_cast<int>(block[0]);
      model.fp8_block_k = static_cast<int>(block[1]);
    } else {
      quantization.problem("weight_block_size", "has " + std::to_string(block.size()) + " entries",
                           "two block sides, e.g. [128, 128]");
    }
    if (quantization.has("moe_quant_algo")) {
      constexpr std::array<std::string_view, 1> kAlgorithms{"NVFP4"};
      quantization.choice("moe_quant_algo", kAlgorithms);
      model.expert_format = ExpertFormat::kNvfp4;
      // Only layers.*.ffn.experts are converted; an mtp.* entry in "ignore" keeps MXFP4 drafts.
      model.mtp_expert_format = ExpertFormat::kNvfp4;
      if (const auto* ignored = quantization.raw("ignore"); ignored && ignored->is_array()) {
        for (const auto& pattern : *ignored) {
          if (pattern.is_string() && pattern.get<std::string>().starts_with("mtp.")) {
            model.mtp_expert_format = ExpertFormat::kMxfp4;
          }
        }
      }
    }
    quantization.each_member([](const std::string&, const nlohmann::json&) {});
  });
}

void check_consistency(JsonObject& config, const ModelConfig& model) {
  const auto contradiction = [&](bool bad, const char* key, const std::string& why) {
    if (bad) config.problem(key, "contradicts another field", why);
  };
  contradiction(model.rope_dim >= model.head_dim, "qk_rope_head_dim", "less than head_dim");
  contradiction(model.top_k > model.num_experts, "num_experts_per_tok", "at most n_routed_experts");
  contradiction(model.draft_top_k > model.draft_experts, "dspark_num_experts_per_tok",
                "at most the draft's experts");
  contradiction(model.num_hash_layers > model.num_layers, "num_hash_layers",
                "at most num_hidden_layers");
  contradiction(model.num_heads % model.o_groups != 0, "o_groups",
                "a divisor of num_attention_heads");
  contradiction(model.window > model.max_position, "sliding_window",
                "at most max_position_embeddings");
}

}  // namespace

ModelConfig load_model(const std::string& path) {
  const nlohmann::json value = read_json_file(path);
  std::vector<InputProblem> problems;
  JsonObject config(value, path, "", problems);
  throw_if_any(problems);
  constexpr std::array<std::string_view, 1> kTypes{"deepseek_v4"};
  config.choice("model_type", kTypes);
  throw_if_any(problems);  // another architecture: the remaining fields mean nothing

  ModelConfig model;
  model.name = std::filesystem::path(path).stem().string();
  read_shapes(config, model);
  if (config.integer("num_key_value_heads", kCount) != 1) {
    config.problem("num_key_value_heads", "is not 1", "1: latent attention shares one KV head");
  }
  constexpr std::array<std::string_view, 1> kExpertTypes{"fp4"};
  config.choice("expert_dtype", kExpertTypes);
  throw_if_any(problems);
  model.csa_ratio = kCsaRatio;
  model.hca_ratio = kHcaRatio;
  read_dspark(config, model);
  read_layers(config, model);
  read_quantization(config, model);
  check_consistency(config, model);
  throw_if_any(problems);
  return model;
}

}  // namespace fulcrum::io
