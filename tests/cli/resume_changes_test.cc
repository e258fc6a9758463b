// `resume` with other settings, by the real binary: more steps, what is allowed and refused, and where it is shown.
#include "commands.h"

#include "test.h"

namespace kgrpo {
namespace {

using test::Read;
using test::Result;

class ResumeCommandTest : public CliTest {
 protected:
  fs::path In(const std::string& file) const { return directory_.path() / file; }
};

TEST_F(ResumeCommandTest, AFinishedRunGetsMoreSteps) {
  ASSERT_EQ(Run("-q p.yaml --set output_dir=long --set loop.max_steps=5").code, 0);
  ASSERT_EQ(Run("-q p.yaml --set output_dir=run").code, 0);
  EXPECT_THAT(Run("resume run").out, HasSubstr("to train longer: kgrpo-host resume run --set 'loop.max_steps=N'\n"));
  const std::string model = Read(In("run/final/logits.bin"));

  const Result adds_none = Run("resume run --set trainer.options.learning_rate=0.2");
  EXPECT_EQ(adds_none.code, 3);
  EXPECT_THAT(adds_none.err, HasSubstr("the run in run is finished, and these settings add no step; to train longer: "
                                       "kgrpo-host resume run --set 'loop.max_steps=N'"));
  const Result fewer = Run("resume run --set loop.max_steps=2");
  EXPECT_EQ(fewer.code, 3);
  EXPECT_THAT(fewer.err, HasSubstr("the run in run has 3 recorded steps, so it cannot end after 2"));
  EXPECT_THAT(fewer.err, HasSubstr("evaluate a checkpoint, run/checkpoints/step-N/policy, or start a new run"));
  const Result refused = Run("resume run --set loop.max_steps=5 --set seed=6 --set evaluator.options.unit=1");
  EXPECT_EQ(refused.code, 3);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("--set: seed: a resumed run keeps it: "),
                                 HasSubstr("--set: evaluator.options.unit: a resumed run keeps it: ")));
  EXPECT_THAT(Read(In("run/resolved.yaml")), HasSubstr("max_steps: 3\n"));
  EXPECT_EQ(Read(In("run/final/logits.bin")), model);

  // The pipeline file with more steps is told how the run gets them.
  EXPECT_THAT(Run("run p.yaml --set output_dir=run --set loop.max_steps=5").err,
              HasSubstr("output_dir run holds a finished run of another configuration (loop.max_steps differs): to "
                        "resume it with them: kgrpo-host resume run --set loop.max_steps=5; otherwise "));
  const Result extended = Run("resume run --set loop.max_steps=5");
  ASSERT_EQ(extended.code, 0) << extended.err;
  EXPECT_THAT(extended.out, HasSubstr("continuing after step 3 of 5, now with loop.max_steps=5\n"));
  EXPECT_EQ(Read(In("run/final/logits.bin")), Read(In("long/final/logits.bin")));
  EXPECT_THAT(Run("resume run").out, testing::StartsWith("run is finished: all 5 steps are done"));
}

TEST_F(ResumeCommandTest, OnlyTheLastStageGetsMoreSteps) {
  Write("stages.yaml", "extends: p.yaml\ntrainer: [{plugin: fakes, steps: 2}, {plugin: fakes, steps: 1}]\n");
  ASSERT_EQ(Run("-q stages.yaml --set output_dir=run").code, 0);
  EXPECT_THAT(Run("resume run").out, HasSubstr("--set 'trainer[1].steps=N'"));
  const Result earlier = Run("resume run --set trainer[0].steps=3");
  EXPECT_EQ(earlier.code, 3);
  EXPECT_THAT(earlier.err, HasSubstr("--set: trainer[0].steps: a resumed run keeps it: only the last stage can"));
  EXPECT_THAT(Run("resume run --set loop.max_steps=3").err,
              HasSubstr("each stage has its own `steps`; for fewer or more write --set trainer[1].steps=N\n"));
  // Options of a stage that is over would be recorded as changed and have no effect, however they are written.
  for (const std::string stage : {"trainer[0]", "trainer.0"}) {
    const Result over = Run("resume run --from-step 2 --set " + stage + ".options.learning_rate=0.2");
    EXPECT_EQ(over.code, 3);
    EXPECT_THAT(over.err, HasSubstr("--set: trainer[0].options.learning_rate: a resumed run keeps it: this stage ended "
                                    "with step 2, and the run continues after step 2\n"));
  }
  EXPECT_TRUE(fs::exists(In("run/checkpoints/step-3"))) << "what was refused sets no checkpoint aside";
  EXPECT_THAT(Run("run stages.yaml --set output_dir=run --set trainer[0].options.learning_rate=0.2").err,
              testing::Not(HasSubstr("to resume it with them")));
  const Result last = Run("resume run --set trainer[1].steps=3");
  ASSERT_EQ(last.code, 0) << last.err;
  EXPECT_THAT(Run("resume run").out, testing::StartsWith("run is finished: all 5 steps are done"));
}

TEST_F(ResumeCommandTest, ARunThatPatienceEndedSaysSo) {
  ASSERT_EQ(Run("-q p.yaml --set output_dir=run --set loop.max_steps=40 --set evaluation.every=1 --set "
                "evaluation.patience=1")
                .code,
            0);
  const std::string out = Run("resume run").out;
  EXPECT_THAT(out, testing::ContainsRegex("^run is finished: it stopped early after step [0-9]+ of 40: the reward on "
                                          "held-out problems has not risen in 1 more measurements"));
  EXPECT_THAT(out, HasSubstr("to train on: kgrpo-host resume run --set evaluation.patience=0\n"));
  const Result longer = Run("resume run --set evaluation.patience=0 --set loop.max_steps=41");
  EXPECT_EQ(longer.code, 0) << longer.err;
  EXPECT_THAT(Run("resume run").out, testing::StartsWith("run is finished: all 41 steps are done"));
}

TEST_F(ResumeCommandTest, AStageWithFewerStepsThanRecordedIsRefused) {
  Write("stages.yaml", "extends: p.yaml\ntrainer: [{plugin: fakes, steps: 2}, {plugin: fakes, steps: 4}]\n");
  ASSERT_EQ(Run("-q stages.yaml --set output_dir=run").code, 0);
  const Result fewer = Run("resume run --set trainer[1].steps=2");
  EXPECT_EQ(fewer.code, 3);
  EXPECT_THAT(fewer.err, HasSubstr("the run in run has 6 recorded steps, so it cannot end after 4"));
}

// As `kgrpo-host run FILE | head`: its reader ends first.
TEST_F(ResumeCommandTest, ARunWhoseOutputNobodyReadsGoesOn) {
  Run("p.yaml --set output_dir=run | true");
  EXPECT_THAT(Run("resume run").out, testing::StartsWith("run is finished: all 3 steps are done"));
  EXPECT_THAT(Read(In("run/run.log")), HasSubstr("next: kgrpo-host eval "));
}

TEST_F(ResumeCommandTest, ChangesAreShownByRunJsonReportAndCompare) {
  ASSERT_EQ(Run("-q p.yaml --set output_dir=a").code, 0);
  ASSERT_EQ(Run("-q p.yaml --set output_dir=b --set loop.max_steps=4").code, 0);
  const Result changed =
      Run("resume a --set loop.max_steps=4 --set trainer.options.learning_rate=0.25 --set reward.plugin=reward_speedup "
          "--set evaluation.every=2");
  ASSERT_EQ(changed.code, 0) << changed.err;
  const json resumed = json::parse(Read(In("a/run.json")))["resumed"];
  const auto find = [&](const std::string& key) {
    for (const json& change : resumed) {
      if (change["key"] == key) return change;
    }
    return json();
  };
  EXPECT_EQ(find("loop.max_steps"),
            json::parse(R"({"after_step": 3, "key": "loop.max_steps", "before": 3, "after": 4})"));
  EXPECT_EQ(find("reward.plugin")["after"], "reward_speedup");
  EXPECT_EQ(find("reward.options")["before"], json::parse(R"({"correct": 0.3})"));
  EXPECT_EQ(find("trainer.options.learning_rate")["before"], 0.1);
  EXPECT_EQ(find("evaluation.every")["after"], 2);

  const json compared = json::parse(Run("compare a b --json").out);
  EXPECT_EQ(compared["groups"][0]["runs"][0]["changes"], resumed);
  EXPECT_EQ(compared["same_reward"], false);
  EXPECT_THAT(compared["notes"].dump(), AllOf(HasSubstr("a changed on the way: after step 3 evaluation.every 0 -> 2, "
                                                        "loop.max_steps 3 -> 4, "),
                                              HasSubstr("trainer.options.learning_rate 0.1 -> 0.25")));
  EXPECT_THAT(Run("compare a b").out, HasSubstr("note: a changed on the way: after step 3 "));
  EXPECT_THAT(Run("compare a ./a b --json").out, HasSubstr("./a is named twice, and counts once"));

  ASSERT_EQ(Run("report a").code, 0);
  const std::string page = Read(In("a/report.html"));
  const std::string open = "<script type=\"application/json\" id=\"data\">";
  const size_t at = page.find(open) + open.size();
  const json data = json::parse(page.substr(at, page.find("</script>", at) - at));
  EXPECT_EQ(data["runs"][0]["resumed"], resumed);
  EXPECT_THAT(data["comparison"]["notes"].dump(), HasSubstr("a changed on the way"));
}

TEST_F(ResumeCommandTest, PluginsDescribeMarksWhatMayChange) {
  const std::string described = Run("plugins describe fakes").out;
  EXPECT_THAT(described, HasSubstr("Of the gradient ascent. `resume` may change it.\n"));
  EXPECT_THAT(described, HasSubstr("Of kept evaluations.\n"));
}

}  // namespace
}  // namespace kgrpo
