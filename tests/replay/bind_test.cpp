#include "replay/bind.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "model/io/load_model.h"
#include "replay/registry.h"

namespace fulcrum::replay {
namespace {

StepGraph graph_of(const std::string& name, int tensor_parallel, int drafts) {
  GraphSettings settings;
  settings.tensor_parallel = tensor_parallel;
  settings.max_context = 1 << 17;
  settings.num_draft_tokens = drafts;
  return build_step_graph(
      io::load_model(std::string(FULCRUM_SOURCE_DIR) + "/data/models/" + name + ".json"), settings);
}

// A shape that the kernel accepts, or a reason.
void expect_bound(const StepGraph& graph, const StepOp& op, const StepState& state,
                  const BindOptions& options) {
  const Binding binding = bind_op(graph, op, state, options);
  const std::string what =
      std::string(name_of(op.id)) + " -> " + binding.kernel + " " + binding.shape;
  EXPECT_NE(binding.kernel.empty(), binding.absence.empty()) << what;
  if (binding.kernel.empty()) return;
  const KernelEntry* kernel = find_kernel(binding.kernel);
  ASSERT_NE(kernel, nullptr) << what;
  EXPECT_NO_THROW(parse_shape(binding.shape, kernel->dimensions)) << what;
  EXPECT_GE(binding.launches, 1) << what;
}

TEST(Bind, EveryOpOfFlashRunsAsAKernelOrSaysWhyNot) {
  for (const char* model : {"deepseek-v4-flash", "deepseek-v4-flash-nvfp4"}) {
    for (const int tensor_parallel : {1, 2, 4, 8}) {
      const StepGraph graph = graph_of(model, tensor_parallel, 1);
      for (const double requests : {1.0, 16.0, 64.0}) {
        const StepState state{.requests = requests,
                              .tokens_per_request = 2,
                              .context = 8000,
                              .logits_rows = 2 * requests};
        for (const StepOp& op : graph.ops) {
          expect_bound(graph, op, state, {});
          expect_bound(graph, op, state,
                       {.fp8_gemm = BindOptions::Gemm::kCublasLt,
                        .moe = BindOptions::Moe::kPerSlot,
                        .attention = BindOptions::Attention::kRowLoop});
        }
      }
    }
  }
}

TEST(Bind, TheCampaignsFiveShapesComeOutAtTp4) {
  const StepGraph graph = graph_of("deepseek-v4-flash", 4, 0);
  const StepState state{.requests = 16, .context = 8000, .logits_rows = 16};
  std::set<std::string> shapes;
  for (const StepOp& op : graph.ops) {
    const Binding binding = bind_op(graph, op, state);
    if (binding.kernel == "gemm_fp8_block" && op.id != OpId::kWoA) shapes.insert(binding.shape);
  }
  // model_facts section 2.2.
  EXPECT_EQ(shapes,
            std::set<std::string>({"m=16,n=1024,k=4096", "m=16,n=1536,k=4096", "m=16,n=4096,k=2048",
                                   "m=16,n=4096,k=512", "m=16,n=8192,k=1024"}));
}

}  // namespace
}  // namespace fulcrum::replay
