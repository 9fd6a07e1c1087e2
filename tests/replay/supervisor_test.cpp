// The supervisor against children that behave badly. No GPU: the items' kernels are never launched.
#include "replay/supervisor.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <map>
#include <stdexcept>

namespace fulcrum::replay {
namespace {

struct Outcome {
  std::map<std::size_t, std::string> lines;
  std::map<std::size_t, std::string> deaths;
  bool complete = false;
};

Outcome run(
    std::size_t num_items, const RunItem& run_item, double timeout_seconds = 20,
    const std::function<bool()>& interrupted = [] { return false; }) {
  std::vector<PlanItem> items;
  for (std::size_t i = 0; i < num_items; ++i) {
    items.push_back({.kernel = nullptr,
                     .shape = Shape(std::vector<std::pair<std::string, std::int64_t>>{
                         {"i", static_cast<std::int64_t>(i)}})});
  }
  Outcome outcome;
  outcome.complete = supervise(
      items, [&] { return run_item; }, {.item_timeout_seconds = timeout_seconds},
      {.finished = [&](std::size_t i, const std::string& line) { outcome.lines[i] = line; },
       .died = [&](std::size_t i, const std::string& why) { outcome.deaths[i] = why; },
       .interrupted = interrupted});
  return outcome;
}

std::string name(const PlanItem& item) { return "item " + item.shape.to_string(); }

TEST(Supervisor, ItemsComeBackInOrder) {
  const Outcome o = run(3, [](const PlanItem& item, bool&) { return name(item); });
  EXPECT_TRUE(o.complete);
  EXPECT_EQ(o.lines.size(), 3u);
  EXPECT_EQ(o.lines.at(2), "item i=2");
}

TEST(Supervisor, ACrashCostsOneItem) {
  const Outcome o = run(4, [](const PlanItem& item, bool&) {
    if (item.shape["i"] == 1) raise(SIGKILL);
    return name(item);
  });
  EXPECT_TRUE(o.complete);
  EXPECT_EQ(o.lines.size(), 3u);
  EXPECT_EQ(o.deaths.size(), 1u);
  EXPECT_NE(o.deaths.at(1).find("Killed"), std::string::npos);
}

TEST(Supervisor, ALostContextRestartsTheWorkerAndKeepsTheItemsResult) {
  // The second item reports that its process can do no more; the third must run in another process.
  const Outcome o = run(3, [](const PlanItem& item, bool& stop) {
    stop = item.shape["i"] == 1;
    return std::to_string(getpid());
  });
  EXPECT_TRUE(o.deaths.empty());
  EXPECT_EQ(o.lines.at(0), o.lines.at(1));
  EXPECT_NE(o.lines.at(1), o.lines.at(2));
}

TEST(Supervisor, AHangIsKilledByTheWatchdog) {
  const Outcome o = run(
      2,
      [](const PlanItem& item, bool&) {
        while (item.shape["i"] == 0) pause();
        return name(item);
      },
      0.5);
  EXPECT_TRUE(o.complete);
  EXPECT_NE(o.deaths.at(0).find("hung"), std::string::npos);
  EXPECT_EQ(o.lines.at(1), "item i=1");
}

TEST(Supervisor, AnInterruptStopsCleanlyAndKeepsWhatIsDone) {
  Outcome o;
  int polls = 0;
  o = run(
      100,
      [](const PlanItem& item, bool&) {
        usleep(20'000);
        return name(item);
      },
      20, [&] { return ++polls > 4; });
  EXPECT_FALSE(o.complete);
  EXPECT_GE(o.lines.size(), 1u);
  EXPECT_LT(o.lines.size(), 100u);
}

TEST(Supervisor, AWorkerThatCannotStartEndsTheRun) {
  const std::vector<PlanItem> items(2);
  const SupervisorCallbacks ignore{.finished = [](std::size_t, const std::string&) {},
                                   .died = [](std::size_t, const std::string&) {},
                                   .interrupted = [] { return false; }};
  const auto broken = []() -> RunItem { throw std::runtime_error("no device"); };
  EXPECT_THROW(supervise(items, broken, {}, ignore), std::runtime_error);
}

TEST(Supervisor, AFailingSinkEndsTheRun) {
  const std::vector<PlanItem> items(2);
  const SupervisorCallbacks full{
      .finished = [](std::size_t, const std::string&) { throw std::runtime_error("disk full"); },
      .died = [](std::size_t, const std::string&) {},
      .interrupted = [] { return false; }};
  const auto runner = []() -> RunItem { return [](const PlanItem&, bool&) { return "x"; }; };
  EXPECT_THROW(supervise(items, runner, {}, full), std::runtime_error);
}

TEST(RunInChild, TextAndErrorsComeBack) {
  EXPECT_EQ(run_in_child([] { return "hello"; }, 10), "hello");
  EXPECT_THROW(run_in_child([]() -> std::string { throw std::runtime_error("no driver"); }, 10),
               std::runtime_error);
  EXPECT_THROW(run_in_child([]() -> std::string { _exit(7); }, 10), std::runtime_error);
}

}  // namespace
}  // namespace fulcrum::replay
