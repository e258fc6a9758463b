// config/changes.h: the changes found between two files, and those with which a run may be resumed.
#include "config/changes.h"

#include "test.h"

namespace kgrpo {
namespace {

const char* const kBefore =
    "name: a\ncoder:\n  plugin: c\n  options:\n    max_cost: 1.5\n    model: gpt-4o\n    prices: {gpt-4o: {prompt: "
    "1}}\n"
    "trainer:\n  - {plugin: t, options: {lr: 1.0}}\nloop: {workers: 2, rounds: 4}\noutput_dir: runs/a\n";

// kBefore with one text in place of another.
std::string With(const std::string& from, const std::string& to) {
  std::string text = kBefore;
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string Names(const std::string& after) { return NamesOf(ChangesBetween(kBefore, after).value()); }

std::string Settings(const std::string& after) {
  return ResumeSettingsFor(ChangesBetween(kBefore, after).value(), KeysThatMayChange());
}

TEST(Changes, NamesTheKeysThatDiffer) {
  EXPECT_EQ(Names(kBefore), "");
  EXPECT_EQ(Names(With("runs/a", "/moved/a")), "") << "a run folder may be moved";
  EXPECT_EQ(Names(With("1.5", "1.50  # dollars")), "");
  EXPECT_EQ(Names(With("1.5", "null")), "coder.options.max_cost");
  EXPECT_EQ(Names(With("lr: 1.0", "lr: 2.0")), "trainer[0].options.lr");
  EXPECT_EQ(Names(With("plugin: c\n  options:\n    max_cost: 1.5", "plugin: d\n  options:\n    max_cost: 2")),
            "coder.plugin and coder.options");
  EXPECT_EQ(Names(With("rounds: 4", "rounds: 5, more: 1")), "loop.rounds and loop.more");
  EXPECT_EQ(Names("name: b\ncoder: 1\ntrainer: 2\nloop: 3\nseed: 4\n"), "name, coder, trainer and 2 other keys");
  EXPECT_EQ(Names("name: a\n"), "coder, trainer and loop");
  EXPECT_FALSE(ChangesBetween("name: [", kBefore));
  EXPECT_FALSE(ChangesBetween("", kBefore));
}

TEST(Changes, SaysHowARunIsResumedWithThem) {
  EXPECT_EQ(Settings(With("1.5", "80")), "--set coder.options.max_cost=80");
  EXPECT_EQ(Settings(With("max_cost: 1.5", "max_cost: null\n    system: \"it's\\nso\"")),
            "--set coder.options.max_cost=null --set 'coder.options.system=\"it'\\''s\\nso\"'");
  EXPECT_EQ(Settings(With("workers: 2", "workers: 8")), "--set loop.workers=8");
  // A key that a path cannot name, or that is gone, is set through the mapping that holds it.
  EXPECT_EQ(Settings(With("{gpt-4o: {prompt: 1}}", "{gpt-4o: {prompt: 1}, gpt-4.1: {prompt: 2}}")),
            R"(--set 'coder.options.prices={"gpt-4o":{"prompt":1},"gpt-4.1":{"prompt":2}}')");
  EXPECT_EQ(Settings(With("{gpt-4o: {prompt: 1}}", "{}")), "--set 'coder.options.prices={}'");
  EXPECT_EQ(Settings(With("rounds: 4", "rounds: 5")), "");
  EXPECT_EQ(Settings(With("plugin: c", "plugin: d")), "");
  EXPECT_EQ(Settings(With("gpt-4o", std::string(600, 'm'))), "--set KEY=VALUE, once for each of them");
}

TEST(Changes, NamesTheKeyOfTheLastStagesSteps) {
  EXPECT_EQ(StepsKey("trainer: {plugin: t}"), "loop.max_steps");
  EXPECT_EQ(StepsKey("trainer: {plugin: t, steps: 5}"), "trainer.steps");
  EXPECT_EQ(StepsKey("trainer: [{plugin: t}]"), "loop.max_steps");
  EXPECT_EQ(StepsKey("trainer: [{plugin: t, steps: 5}, {plugin: t}]"), "loop.max_steps");
  EXPECT_EQ(StepsKey("trainer: [{plugin: t, steps: 5}, {plugin: t, steps: 6}]"), "trainer[1].steps");
  EXPECT_EQ(StepsKey("trainer: [{plugin: t}, {plugin: t}]"), "trainer[1].steps") << "max_steps is the first's too";
}

TEST(Changes, AKeyMayChangeWithAllBelowIt) {
  std::vector<std::string> keys = KeysThatMayChange();
  keys.emplace_back("trainer[0].options.lr");
  for (const char* path :
       {"coder.options", "coder.options.max_cost", "coder.options.extra_body.x", "checkpoint.every", "checkpoint",
        "reward.plugin", "reward.options.cap", "evaluation.every", "loop.generation_batch", "loop.workers",
        "loop.hang_seconds", "observers", "observers[0].options.rounds", "trainer[0].options.lr"})
    EXPECT_TRUE(MayChangeOnResume(path, keys)) << path;
  for (const char* path : {"", "coder", "coder.plugin", "coder.optionsx", "loop", "loop.workersx", "loop.rounds",
                           "rewards", "seed", "policy.options.model", "trainer[1].options.lr"})
    EXPECT_FALSE(MayChangeOnResume(path, keys)) << path;
}

}  // namespace
}  // namespace kgrpo
