#include <gtest/gtest.h>

#include <map>
#include <string>

#include "model/io/load_model.h"
#include "replay/step/schedule.h"
#include "replay/step/step_options.h"

namespace fulcrum::replay {
namespace {

ModelConfig flash() {
  return io::load_model(std::string(FULCRUM_SOURCE_DIR) + "/data/models/deepseek-v4-flash.json");
}

TEST(StepSchedule, LaunchesEveryOpAsOftenAsTheGraphCounts) {
  for (const int degree : {1, 2, 4}) {
    for (const int drafts : {0, 1, 3}) {
      const StepGraph graph = reference_graph(flash(), degree, drafts);
      std::vector<double> executions(graph.ops.size(), 0.0);
      for (const ScheduledOp& op : schedule_step(graph)) {
        if (op.part == 0) executions[op.op] += 1.0;
      }
      for (std::size_t i = 0; i < graph.ops.size(); ++i) {
        EXPECT_DOUBLE_EQ(executions[i], graph.ops[i].count) << name_of(graph.ops[i].id);
      }
    }
  }
}

TEST(StepSchedule, RefusesAGraphWhoseCountsItDoesNotMeet) {
  StepGraph graph = reference_graph(flash(), 4, 0);
  graph.ops.front().count += 1.0;
  EXPECT_THROW(schedule_step(graph), std::logic_error);
}

// 2 SWA, 21 CSA, 20 HCA layers: 43 x 5 quantisations and one more in CSA layers; 87 all-reduces.
TEST(StepSchedule, HoldsTheCountsOfThePublishedProfile) {
  std::map<OpId, int> counts;
  for (const ScheduledOp& op : schedule_step(reference_graph(flash(), 4, 0))) {
    if (op.part == 0) ++counts[op.id];
  }
  EXPECT_EQ(counts[OpId::kActQuant], 43 * 5 + 21);
  EXPECT_EQ(counts[OpId::kAllReduce], 87);
  EXPECT_EQ(counts[OpId::kAttentionCsa], 21);
  EXPECT_EQ(counts[OpId::kAttentionHca], 20);
}

TEST(StepSchedule, QuantisesRightBeforeTheGemmThatReadsIt) {
  const auto schedule = schedule_step(reference_graph(flash(), 2, 1));
  for (std::size_t i = 0; i + 1 < schedule.size(); ++i) {
    if (schedule[i].id != OpId::kActQuant) continue;
    EXPECT_EQ(schedule[i + 1].id, schedule[i].feeds);
    EXPECT_EQ(schedule[i + 1].branch, schedule[i].branch);
  }
}

TEST(StepSchedule, GivesEveryExecutionOfTheTargetPassWeightsOfItsOwn) {
  std::map<OpId, std::vector<int>> ordinals;
  for (const ScheduledOp& op : schedule_step(reference_graph(flash(), 4, 1))) {
    if (op.pass == 0 && op.part == 0) ordinals[op.id].push_back(op.ordinal);
  }
  for (const auto& [id, seen] : ordinals) {
    for (std::size_t i = 0; i < seen.size(); ++i) {
      EXPECT_EQ(seen[i], static_cast<int>(i)) << name_of(id);
    }
  }
}

TEST(StepSchedule, LaterDraftPassesRunOneTokenPerRequest) {
  const StepCell cell{.requests = 16, .drafts = 3, .context = 1024};
  for (const ScheduledOp& op : schedule_step(reference_graph(flash(), 4, 3))) {
    EXPECT_EQ(tokens_of(op, cell), op.pass > 1 ? 16 : 64);
  }
}

TEST(StepOptions, RefuseWhatCannotRun) {
  const auto parse = [](std::vector<const char*> words) {
    words.insert(words.begin(), "fulcrum replay step");
    return parse_step_options(static_cast<int>(words.size()), words.data());
  };
  EXPECT_THROW(parse({"--batch", "0"}), std::exception);
  EXPECT_THROW(parse({"--batch", "1,x"}), std::exception);
  EXPECT_THROW(parse({"--tp", "4", "--gpus", "2"}), std::exception);
  EXPECT_THROW(parse({"--nonsense"}), std::exception);
  EXPECT_THROW(reference_graph(flash(), 3, 0), std::exception);
  const StepOptions good = parse({"--tp", "2,4", "--batch", "1,16", "--drafts", "0,3"});
  EXPECT_EQ(good.cells().size(), 4U);
}

}  // namespace
}  // namespace fulcrum::replay
