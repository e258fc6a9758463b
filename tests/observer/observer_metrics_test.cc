// observer_metrics, loaded as by the host: the content of its files, also after a resume.
#include "base/files.h"
#include "observed.h"
#include "test.h"
#include "validate/validate.h"

namespace kgrpo {
namespace {

using test::Observed;

const nlohmann::json kStepsAlone = {{"rounds", false}};
const nlohmann::json kRoundsToo = {{"rounds", true}};

class ObserverMetricsTest : public ::testing::Test {
 protected:
  fs::path File(const char* name) const { return observed_.folder() / name; }
  std::string Metrics() const { return ReadFile(File("metrics.jsonl")); }
  std::string Rounds() const { return ReadFile(File("rounds.jsonl")); }
  std::string StepLine(uint64_t step) const {
    return R"({"step":)" + std::to_string(step) +
           R"(,"stage":1,"trainer":"trainer_grpo","time":1700000000.5,"reward":0.5})" + "\n";
  }

  Observed observed_{"observer_metrics"};
};

TEST_F(ObserverMetricsTest, WritesALineAStep) {
  observed_.Begin(kStepsAlone);
  EXPECT_EQ(Metrics(), "");
  observed_.Step(1, {{"kernel/correct_rate", 1.0}, {"reward", -0.125}, {"step_time", 2.0}});
  EXPECT_EQ(Metrics(), R"({"step":1,"stage":1,"trainer":"trainer_grpo","time":1700000000.5,"kernel/correct_rate":1.0,)"
                       R"("reward":-0.125,"step_time":2.0})"
                       "\n");
  observed_.Step(2, {{"reward", 0.5}});
  EXPECT_THAT(Metrics(), ::testing::EndsWith("\n" + StepLine(2))) << "each step is there once it was told";
  EXPECT_FALSE(fs::exists(File("rounds.jsonl")));
}

TEST_F(ObserverMetricsTest, WritesWhatJsonHasNoWordsFor) {
  observed_.Begin(kRoundsToo);
  observed_.Round(1, nullptr, "a \xff byte");
  observed_.Step(1, {{"a \"quote\"", std::numeric_limits<double>::quiet_NaN()}, {"step", 7.0}});
  EXPECT_EQ(Metrics(), R"({"step":1,"stage":1,"trainer":"trainer_grpo","time":1700000000.5,"a \"quote\"":null})"
                       "\n");
  EXPECT_THAT(Rounds(), HasSubstr("\"suggestion\":\"a \xef\xbf\xbd byte\""));
}

TEST_F(ObserverMetricsTest, WritesALineARoundWhereAsked) {
  observed_.Begin(kRoundsToo);
  kgrpo_evaluation evaluation{};
  evaluation.struct_size = sizeof(evaluation);
  evaluation.verdict = Str("correct");
  evaluation.seconds = 0.25;
  evaluation.speedup = 2;
  observed_.Round(1, &evaluation);
  observed_.Round(1, nullptr);
  observed_.Step(1, {});
  EXPECT_EQ(
      Rounds(),
      R"({"step":1,"heldout":false,"trajectory":1,"round":2,"rounds":3,"problem":"matmul","suggestion":"tile it",)"
      R"("coder_outcome":"ok","coder_cost":0.25,"verdict":"correct","seconds":0.25,"speedup":2.0,"reward":1.5})"
      "\n"
      R"({"step":1,"heldout":false,"trajectory":1,"round":2,"rounds":3,"problem":"matmul","suggestion":"tile it",)"
      R"("coder_outcome":"not_applicable","coder_cost":0.25,"verdict":"","seconds":0.0,"speedup":0.0,"reward":1.5})"
      "\n");
}

TEST_F(ObserverMetricsTest, CutsAwayWhatAResumedRunTellsAgain) {
  observed_.Begin(kRoundsToo);
  for (uint64_t step = 1; step <= 5; ++step) {
    observed_.Round(step, nullptr);
    observed_.Step(step, {{"reward", 0.5}});
  }
  const std::string rounds = Rounds();
  const std::string three_rounds = rounds.substr(0, rounds.find("{\"step\":4"));
  // Killed within the sixth step: its rounds are there, and half of its line.
  std::ofstream(File("rounds.jsonl"), std::ios::app) << "{\"step\":6}\n{\"st";
  std::ofstream(File("metrics.jsonl"), std::ios::app) << StepLine(6).substr(0, 30);
  observed_.Begin(kRoundsToo, 3, true);
  EXPECT_EQ(Metrics(), StepLine(1) + StepLine(2) + StepLine(3));
  EXPECT_EQ(Rounds(), three_rounds);
  observed_.Step(4, {{"reward", 0.5}});
  EXPECT_EQ(Metrics(), StepLine(1) + StepLine(2) + StepLine(3) + StepLine(4));
  observed_.Begin(kRoundsToo, 0, true);  // no checkpoint was written yet
  EXPECT_EQ(Metrics(), "");
  EXPECT_EQ(Rounds(), "");
}

TEST_F(ObserverMetricsTest, CutsAwayALastLineWithoutItsEnd) {
  observed_.Begin(kStepsAlone);
  observed_.Step(1, {{"reward", 0.5}});
  observed_.Step(2, {{"reward", 0.5}});
  fs::resize_file(File("metrics.jsonl"), Metrics().size() - 1);  // all of it but its line break
  observed_.Begin(kStepsAlone, 2, true);
  EXPECT_EQ(Metrics(), StepLine(1));
}

TEST_F(ObserverMetricsTest, RefusesAFileThatIsNotItsOwn) {
  const std::string text = "{\"step\":1}\nmy notes\n{\"step\":2}\n";
  std::ofstream(File("metrics.jsonl")) << text;
  try {
    observed_.Begin(kStepsAlone, 2, true);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), KGRPO_ERROR_INVALID);
    EXPECT_EQ(std::string(error.what()),
              File("metrics.jsonl").string() +
                  ":2: has no whole number \"step\", so the run cannot append to this file: move it away");
  }
  EXPECT_EQ(Metrics(), text);
}

TEST_F(ObserverMetricsTest, SaysWhereItCannotWrite) {
  fs::create_directory(File("metrics.jsonl"));
  EXPECT_THAT(test::MessageOf([&] { observed_.Begin(kStepsAlone); }, KGRPO_ERROR_UNAVAILABLE),
              HasSubstr("cannot read " + File("metrics.jsonl").string() + ": "));
}

TEST(ObserverMetrics, IsAPluginThatValidates) {
  for (const ContractCheck& check : ValidatePlugin(KGRPO_BINARY_DIR "/lib/kgrpo/observer_metrics.so"))
    EXPECT_EQ(check.outcome, CheckOutcome::kPassed) << check.name << ": " << check.detail;
}

}  // namespace
}  // namespace kgrpo
