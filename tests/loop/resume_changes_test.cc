// A run that is resumed with other settings: its record names each change with its step, recorded steps stay, and a
// changed reward scores the repeated ones anew.
#include "base/files.h"
#include "fakes.h"
#include "store/checkpoints.h"
#include "store/database.h"
#include "test.h"

namespace kgrpo {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kYaml = "name: fake\nreward: {plugin: r, options: {cap: 1}}\nloop: {workers: 2}\n";

class ResumeChangesTest : public ::testing::Test {
 protected:
  ResumeChangesTest() { fakes::Reset(); }
  ~ResumeChangesTest() override { fakes::Reset(); }

  PipelineConfig Config(const std::string& name, uint64_t steps = 6) {
    PipelineConfig config = fakes::Config(fakes::Folder(name), 0, steps);
    config.resolved_yaml = kYaml;
    config.checkpoint.every = 2;
    config.checkpoint.keep_last = 10;
    return config;
  }

  // Resumes with `now` in place of `before` in the settings.
  RunOutcome ResumeWith(PipelineConfig* config, const std::string& before, const std::string& now,
                        std::optional<uint64_t> from_step = {}) {
    std::string& yaml = config->resolved_yaml;
    if (!before.empty()) yaml.replace(yaml.find(before), before.size(), now);
    return Resume(*config, before.empty() ? std::vector<std::string>() : std::vector<std::string>{now}, from_step);
  }

  static RunOutcome Resume(const PipelineConfig& config, const std::vector<std::string>& overrides,
                           std::optional<uint64_t> from_step = {}, FaultPoints faults = {}) {
    PipelineParts parts = fakes::Parts(config);
    RunProblems problems(config, parts);
    RunOptions options;
    options.resume = true;
    options.from_step = from_step;
    options.overrides = overrides;
    options.faults = std::move(faults);
    return kgrpo::Run(config, parts, problems, RunFolder::Open(config.output_dir), options);
  }

  // "2 loop.workers 2->3; ..." by the database, after it was found to be the same as run.json's.
  static std::string Changes(const PipelineConfig& config) {
    const fs::path folder = config.output_dir;
    std::string text;
    Json shown = Json::array();
    for (const SettingChange& change : RunDatabase::ToRead(folder / "run.sqlite").ReadChanges()) {
      text += (text.empty() ? "" : "; ") + std::to_string(change.after_step) + " " + change.key + " " + change.before +
              "->" + change.after;
      shown.push_back({{"after_step", change.after_step},
                       {"key", change.key},
                       {"before", Json::parse(change.before)},
                       {"after", Json::parse(change.after)}});
    }
    EXPECT_EQ(Json::parse(ReadFile(folder / "run.json")).value("resumed", Json::array()), shown);
    return text;
  }

  static std::vector<double> Rewards(const PipelineConfig& config, uint64_t step) {
    std::vector<double> rewards;
    RunDatabase database = RunDatabase::ToRead(fs::path(config.output_dir) / "run.sqlite");
    for (const TrajectoryRecord& trajectory : database.ReadStep(Purpose::kTrain, step)) {
      for (const RoundRecord& round : trajectory.rounds_done) rewards.push_back(round.reward);
    }
    return rewards;
  }
};

TEST_F(ResumeChangesTest, EachIsRecordedWithItsStep) {
  PipelineConfig config = Config("changes");
  fakes::knobs().cancel_after_updates = 2;
  ASSERT_EQ(fakes::RunIn(config).status, RunOutcome::Status::kInterrupted);
  fakes::knobs().cancelled = false;
  fakes::knobs().cancel_after_updates = 4;
  ResumeWith(&config, "workers: 2", "workers: 3");
  EXPECT_EQ(Changes(config), "2 loop.workers 2->3");
  fakes::Reset();
  ASSERT_EQ(ResumeWith(&config, "cap: 1", "cap: 2").status, RunOutcome::Status::kFinished);
  EXPECT_EQ(Changes(config), "2 loop.workers 2->3; 4 reward.options.cap 1->2");
  EXPECT_THAT(ReadFile(fs::path(config.output_dir) / "resolved.yaml"), HasSubstr("cap: 2"));
  // Repeated steps have all changes from where they begin; what is changed back is no change.
  ResumeWith(&config, "", "", 2);
  EXPECT_EQ(Changes(config), "2 loop.workers 2->3; 2 reward.options.cap 1->2");
  ResumeWith(&config, "workers: 3", "workers: 2", 2);
  EXPECT_EQ(Changes(config), "2 reward.options.cap 1->2");
  config.stages.back().steps = 8;
  config.resolved_yaml = std::string(config.resolved_yaml) + "trainer: {steps: 8}\n";
  ASSERT_EQ(Resume(config, {"trainer.steps=8"}).status, RunOutcome::Status::kFinished);
  EXPECT_EQ(Changes(config), R"(2 reward.options.cap 1->2; 6 trainer null->{"steps":8})");
  EXPECT_EQ(ReadProgress(fs::path(config.output_dir) / "run.sqlite").steps, 8U);
}

TEST_F(ResumeChangesTest, TheDefaultOfANewKeyIsRecordedToo) {
  PipelineConfig config = Config("new_key");
  fakes::knobs().cancel_after_updates = 2;
  fakes::RunIn(config);
  fakes::Reset();
  config.resolved_yaml = kYaml + std::string("trainer: {options: {kl_clamp: 3}}\n");
  ASSERT_EQ(Resume(config, {}).status, RunOutcome::Status::kFinished);
  EXPECT_EQ(Changes(config), R"(2 trainer null->{"options":{"kl_clamp":3}})");
  EXPECT_EQ(ReadFile(fs::path(config.output_dir) / "resolved.yaml"), config.resolved_yaml);
}

TEST_F(ResumeChangesTest, AKilledRecordingOfThemIsRepeatedByTheNext) {
  PipelineConfig config = Config("killed_record");
  fakes::knobs().cancel_after_updates = 2;
  fakes::RunIn(config);
  fakes::Reset();
  // As if killed between the database and resolved.yaml.
  RunDatabase(fs::path(config.output_dir) / "run.sqlite")
      .WriteChanges({{2, "loop.workers", "2", "9"}},
                    "name: fake\nreward: {plugin: r, options: {cap: 1}}\n"
                    "loop: {workers: 9}\n");
  ResumeWith(&config, "", "");
  EXPECT_EQ(Changes(config), "") << "it goes on with resolved.yaml's, as it began";
}

TEST_F(ResumeChangesTest, ARewardThatCannotBeComputedMayBeReplaced) {
  PipelineConfig config = Config("nan");
  config.checkpoint.every = 1;
  fakes::knobs().reward_fails_after = 2;
  try {
    EXPECT_NE(fakes::RunIn(config).status, RunOutcome::Status::kFinished);
  } catch (const Error&) {
    // However it ends: it cannot have been the end.
  }
  const std::vector<double> first = Rewards(config, 1), second = Rewards(config, 2);
  ASSERT_FALSE(second.empty());
  fakes::Reset();
  ASSERT_EQ(ResumeWith(&config, "cap: 1", "cap: 2").status, RunOutcome::Status::kFinished);
  EXPECT_EQ(Rewards(config, 1), first);
  EXPECT_EQ(Rewards(config, 2), second);
  for (const double reward : Rewards(config, 6)) EXPECT_TRUE(std::isfinite(reward));
  EXPECT_FALSE(Rewards(config, 6).empty());
}

TEST_F(ResumeChangesTest, AChangedRewardScoresRepeatedStepsAnewAndAsksNobody) {
  PipelineConfig config = Config("rescored");
  ASSERT_EQ(fakes::RunIn(config).status, RunOutcome::Status::kFinished);
  const std::vector<double> before = Rewards(config, 5), kept = Rewards(config, 4);
  fakes::Reset();
  fakes::knobs().reward_scale = 0.125;
  ASSERT_EQ(ResumeWith(&config, "cap: 1", "cap: 2", 4).status, RunOutcome::Status::kFinished);
  EXPECT_EQ(Rewards(config, 4), kept);
  const std::vector<double> now = Rewards(config, 5);
  ASSERT_EQ(now.size(), before.size());
  for (size_t i = 0; i < now.size(); ++i) EXPECT_EQ(now[i], 0.125 * before[i]);
  // The policy of step 6 has learned from other rewards, so its suggestions may differ; step 5 repeats all.
  EXPECT_LE(fakes::knobs().coder_calls, static_cast<int>(Rewards(config, 6).size()));
  // Rewards on two scales are not ranked together: the best checkpoint is one of the new reward, by which step 5 scores
  // the weights of step 4.
  PipelineConfig few = config;
  few.checkpoint.keep_last = 1;
  few.stages.back().steps = 10;
  ASSERT_EQ(Resume(few, {}).status, RunOutcome::Status::kFinished);
  for (const uint64_t step : Checkpoints(fs::path(config.output_dir) / "checkpoints").Steps()) EXPECT_GE(step, 4U);
}

// The summary's mean rewards are on one scale, and a reward plugin that the user changed is not told as a surprise.
TEST_F(ResumeChangesTest, TheSummaryBeginsAfterTheReward) {
  PipelineConfig config = Config("summary");
  fakes::knobs().cancel_after_updates = 4;
  ASSERT_EQ(fakes::RunIn(config).status, RunOutcome::Status::kInterrupted);
  fakes::Reset();
  std::ostringstream out;
  Console console(out, false);
  config.resolved_yaml.replace(config.resolved_yaml.find("plugin: r,"), 10, "plugin: other,");
  PipelineParts parts = fakes::Parts(config);
  parts.identities.push_back({"reward", "other", "2", "other.so", "ff"});
  RunProblems problems(config, parts);
  RunOptions options;
  options.resume = true;
  options.console = &console;
  kgrpo::Run(config, parts, problems, RunFolder::Open(config.output_dir), options);
  EXPECT_THAT(out.str(), HasSubstr("mean reward since the reward changed, after step 4: "));
  EXPECT_THAT(out.str(), testing::Not(HasSubstr("the plugins differ")));
}

TEST_F(ResumeChangesTest, AReferenceThatTheStageBeganWithoutCannotBeAdded) {
  PipelineConfig config = Config("no_reference");
  config.stages.back().trainer.options["compares"] = false;
  fakes::knobs().cancel_after_updates = 2;
  fakes::RunIn(config);
  fakes::Reset();
  EXPECT_FALSE(fs::exists(fs::path(config.output_dir) / "checkpoints/step-2/reference"));
  PipelineConfig compares = config;
  compares.stages.back().trainer.options["compares"] = true;
  EXPECT_THAT(test::MessageOf([&] { ResumeWith(&compares, "workers: 2", "workers: 3"); }, KGRPO_ERROR_INVALID),
              HasSubstr("fake_climber now compares with a reference policy, and the steps before "
                        "the checkpoint did not, so it has none"));
  EXPECT_EQ(Changes(config), "") << "what was refused is not recorded";
  EXPECT_EQ(Resume(config, {}).status, RunOutcome::Status::kFinished);
}

// A later stage without a reference must not find that of an earlier one.
TEST_F(ResumeChangesTest, AReferenceEndsWithItsStage) {
  PipelineConfig config = Config("two_stages", 3);
  config.stages.push_back(config.stages.front());
  config.stages.back().trainer.options["compares"] = false;
  config.checkpoint.every = 1;
  ASSERT_EQ(fakes::RunIn(config).status, RunOutcome::Status::kFinished);
  const fs::path checkpoints = fs::path(config.output_dir) / "checkpoints";
  EXPECT_TRUE(fs::exists(checkpoints / "step-2/reference"));
  EXPECT_TRUE(fs::exists(checkpoints / "step-2/trainer.state"));
  EXPECT_FALSE(fs::exists(checkpoints / "step-3/trainer.state")) << "a later stage follows";
  EXPECT_FALSE(fs::exists(checkpoints / "step-5/reference"));
  EXPECT_TRUE(fs::exists(checkpoints / "step-6/trainer.state")) << "the last stage can be extended";
}

}  // namespace
}  // namespace kgrpo
