// config/changes.h: the changes found between two files, and those with which a run may be resumed.
#include "config/changes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "config/diagnostic.h"

namespace kgrpo {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

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

std::string Names(const std::string& after) {
  return NamesOf(ChangesBetween(kBefore, after).value());
}

std::string Settings(const std::string& after) {
  return ResumeSettingsFor(ChangesBetween(kBefore, after).value());
}

TEST(Changes, NamesTheKeysThatDiffer) {
  EXPECT_EQ(Names(kBefore), "");
  EXPECT_EQ(Names(With("runs/a", "/moved/a")), "") << "a run folder may be moved";
  EXPECT_EQ(Names(With("1.5", "1.50  # dollars")), "");
  EXPECT_EQ(Names(With("1.5", "null")), "coder.options.max_cost");
  EXPECT_EQ(Names(With("lr: 1.0", "lr: 2.0")), "trainer[0].options.lr");
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

TEST(Changes, OfARunThatGoesOnOnlyWhatNothingDependsOn) {
  for (const char* path :
       {"coder.options", "coder.options.max_cost", "coder.options.extra_body.x", "checkpoint.every", "checkpoint",
        "loop.workers", "loop.hang_seconds", "observers", "observers[0].options.rounds", "observers.0.plugin"})
    EXPECT_TRUE(MayChangeOnResume(path)) << path;
  for (const char* path : {"", "coder", "coder.plugin", "coder.optionsx", "loop", "loop.workersx", "loop.rounds",
                           "seed", "policy.options.model"})
    EXPECT_FALSE(MayChangeOnResume(path)) << path;
  CheckResumeSettings({"coder.options.max_cost=80", "checkpoint.every=2"});
  try {
    CheckResumeSettings({"seed=1", "loop.workers=2", "loop.rounds=3"});
    FAIL();
  } catch (const ConfigError& error) {
    ASSERT_EQ(error.diagnostics().size(), 2u);
    EXPECT_THAT(
        error.what(),
        HasSubstr("--set: seed: a resumed run keeps the value that it began with; what can be "
                  "changed is all of coder.options, evaluator.options.servers, loop.workers, loop.hang_seconds, all "
                  "of checkpoint and of observers"));
    EXPECT_THAT(error.what(), Not(HasSubstr("loop.workers:")));
  }
}

}  // namespace
}  // namespace kgrpo
