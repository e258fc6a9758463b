// The record knows what a run read, by the real binary: a change of what the configuration only names is told,
// recorded or refused, and nothing that a run reads is deleted by it.
#include <kgrpo/support/sqlite.h>
#include "commands.h"

#include "test.h"

namespace kgrpo {
namespace {

using test::Result;

class RecordTest : public CliTest {
 protected:
  RecordTest() { Score("1.0"); }

  fs::path In(const std::string& file) const { return directory_.path() / file; }

  // Writes the reward; its number is in a module that the script imports.
  void Score(const std::string& number) {
    Write("helper.py", "SCORE = " + number + "\n");
    Write("my_reward.py",
          "import sys\n"
          "sys.path.insert(0, '" KGRPO_SOURCE_DIR
          "/python')\n"
          "from kgrpo_plugin import reward, run\n"
          "from helper import SCORE\n"
          "@reward\n"
          "def score(round):\n"
          "    return SCORE\n"
          "if __name__ == '__main__':\n"
          "    run()\n");
  }

  std::string Ask(const std::string& run, const std::string& question) const {
    Database database(In(run) / "run.sqlite", Database::ToRead(In(run) / "run.sqlite"));
    Statement select(database, question.c_str());
    std::string all;
    while (select.Step()) all += select.Text(0) + "\n";
    return all;
  }

  const std::string kOwn = " --set 'reward={plugin: reward_program, options: {command: [python3, my_reward.py]}}' ";
  const std::string kChanged = "SELECT key FROM changes WHERE key LIKE '%(content)'";
};

TEST_F(RecordTest, AnEditedRewardIsAnotherConfigurationAndARecordedChange) {
  ASSERT_EQ(Run("-q p.yaml --set output_dir=a" + kOwn).code, 0);
  ASSERT_EQ(Run("-q p.yaml --set output_dir=same" + kOwn).code, 0);
  EXPECT_THAT(Run("compare a same").out, HasSubstr("have one configuration"));
  Score("2.0");
  ASSERT_EQ(Run("-q p.yaml --set output_dir=b" + kOwn).code, 0);
  const std::string compared = Run("compare a b").out;
  EXPECT_THAT(compared, AllOf(HasSubstr("reward.options.command (content)"), HasSubstr("on different scales")));
  EXPECT_THAT(compared, testing::Not(HasSubstr("one configuration")));

  const Result resumed = Run("resume a --set loop.max_steps=5");
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_THAT(resumed.out, HasSubstr("not as the run read it before, so results from here on may differ: "
                                     "reward.options.command (content) (recorded as a change after step 3)"));
  EXPECT_EQ(Ask("a", kChanged), "reward.options.command (content)\n");
  EXPECT_EQ(Ask("a", "SELECT min(reward) || ' ' || max(reward) FROM rounds WHERE purpose = 'train' GROUP BY step > 3"),
            "1.0 1.0\n2.0 2.0\n");
  EXPECT_THAT(Run("compare a b").out, HasSubstr("a changed on the way: after step 3 "));
}

TEST_F(RecordTest, AnotherProblemIsNotTheRuns) {
  ASSERT_EQ(Run("-q p.yaml --set output_dir=run").code, 0);
  Write("problems/one/notes.txt", "another\n");
  const Result resumed = Run("resume run --set loop.max_steps=5");
  EXPECT_EQ(resumed.code, 3);
  EXPECT_THAT(resumed.err, AllOf(HasSubstr("what problems.one reads has another content"),
                                 HasSubstr("Put the content back, or start a new run")));
  EXPECT_EQ(Ask("run", kChanged), "");
  const Result replayed = Run("p.yaml --set output_dir=replayed --set loop.replay.from=[run]");
  EXPECT_THAT(replayed.out + replayed.err, HasSubstr("left out: 24 of another problem (one)"));
  fs::remove(In("problems/one/notes.txt"));
  EXPECT_EQ(Run("-q resume run --set loop.max_steps=5").code, 0);
}

TEST_F(RecordTest, AnExperimentsRunsReadTheSameFiles) {
  Write("ab.yaml",
        "extends: p.yaml\noutput_dir: ab\nvariants: {short: {loop: {rounds: 1}}}\n"
        "reward: {plugin: reward_program, options: {command: [python3, my_reward.py]}}\n");
  ASSERT_EQ(Run("-q ab.yaml --variant base").code, 0);
  Score("2.0");
  const Result again = Run("ab.yaml");
  EXPECT_EQ(again.code, 3);
  EXPECT_THAT(again.err, HasSubstr("read other files than it would now: reward.options.command (content) differs"));
  EXPECT_EQ(Run("-q ab.yaml --overwrite").code, 0);
}

TEST_F(RecordTest, WhatAFileReadsIsNotDeletedByIt) {
  ASSERT_EQ(Run("-q p.yaml --set output_dir=source").code, 0);
  fs::create_directory_symlink(In("source"), In("link"));
  const std::string rounds = Ask("source", "SELECT count(*) FROM rounds");
  for (const std::string reads : {"loop.replay.from=[source]", "loop.replay.from=[link]"}) {
    const std::string run = "p.yaml --set output_dir=source --set " + reads;
    EXPECT_THAT(Run("check " + run).out,
                AllOf(HasSubstr("name another folder"), testing::Not(HasSubstr("--overwrite"))));
    const Result refused = Run("run --overwrite " + run);
    EXPECT_EQ(refused.code, 3);
    EXPECT_THAT(refused.err,
                HasSubstr("output_dir source holds what the new run would learn from (loop.replay.from[0]"));
    EXPECT_EQ(Ask("source", "SELECT count(*) FROM rounds"), rounds);
  }
}

}  // namespace
}  // namespace kgrpo
