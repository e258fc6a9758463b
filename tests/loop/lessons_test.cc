// Suggestions of similar problems in prompts.
#include "loop/lessons.h"

#include "fakes.h"
#include "loop/run_problems.h"
#include "prompt/template.h"
#include "test.h"

namespace kgrpo {
namespace {

constexpr const char* kTemplate =
    "{{problem.family}} {{problem.name}}{{#lessons}} <{{suggestion}} of {{problem}} {{gain}} {{uses}}>{{/lessons}}";

// A record with rounds of one step, each of a trajectory.
class LessonsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    fakes::Reset();
    config_.prompt.user = kTemplate;
    fs::create_directories(config_.output_dir);
    database_.emplace(fs::path(config_.output_dir) / "run.sqlite");
    database_->WriteProblems(Purpose::kTrain, problems_.train.Records());
    step_.step = 1;
    step_.has_rollouts = true;
  }

  // Plays `suggestion` on a problem, from its reference or from the kernel of the trajectory's round before.
  void Play(const std::string& problem, const std::vector<std::pair<std::string, double>>& rounds) {
    TrajectoryRecord& trajectory = step_.trajectories.emplace_back();
    trajectory.trajectory = step_.trajectories.size() - 1;
    for (size_t i = 0; i < problems_.train.size(); ++i) {
      if (problems_.train[i].name == problem) trajectory.problem = static_cast<uint32_t>(i);
    }
    trajectory.problem_name = problem;
    trajectory.family = problem.substr(0, problem.find('_'));
    std::string code = problems_.train[trajectory.problem].source;
    for (const auto& [suggestion, speedup] : rounds) {
      RoundRecord& round = trajectory.rounds_done.emplace_back();
      round.round = static_cast<uint32_t>(trajectory.rounds_done.size() - 1);
      round.suggestion = suggestion;
      round.code_b = code;
      round.answer.source = code += "// " + suggestion + std::to_string(trajectory.trajectory) + "\n";
      round.applied = true;
      round.speedup = speedup;
    }
  }

  std::string For(const std::string& problem, Lessons& lessons, uint64_t step = 2) {
    RolloutRequest request;
    request.step = step;
    for (uint32_t i = 0; i < problems_.train.size(); ++i) request.assignments.push_back({i, i});
    lessons.Fill(problems_.train, &request);
    if (request.lessons.empty()) return "";
    for (size_t i = 0; i < problems_.train.size(); ++i) {
      if (problems_.train[i].name != problem) continue;
      PromptState state;
      state.lessons = request.lessons.at(i);
      return PromptTemplate("{{#lessons}}<{{suggestion}} of {{problem}} {{gain}} {{uses}}>{{/lessons}}", "test")
          .Render(state);
    }
    return "no such problem";
  }

  PipelineConfig config_ = fakes::Config(fakes::Folder("lessons"), 0);
  PipelineParts parts_ = fakes::Parts(config_);
  RunProblems problems_{config_, parts_};
  std::optional<RunDatabase> database_;
  StepRecord step_;
};

// Traits are "streaming" and the family: the similarity is 1 within a family, 1/6 between two.
TEST_F(LessonsTest, RanksByGainAndSimilarityAndLeavesTheProblemOut) {
  Play("map_a", {{"Tile", 2}, {"unroll", 1}});            // the second halves the speed
  Play("map_a", {{"tile", 8}, {"pad", 0}, {"fuse", 9}});  // "fuse" starts from an incorrect kernel
  Play("reduce_a", {{"vectorise", 3}, {"pad", 3.3}});
  Play("map_b", {{"pad", 100}});
  database_->WriteStep(step_, {});
  Lessons lessons(config_);
  lessons.Begin(*database_, problems_.train, &*problems_.heldout);
  EXPECT_EQ(For("map_b", lessons, 1), "") << "lessons are of the steps before";
  // tile: log(2 * 8) / (1 + 2); vectorise: (log 3)/6 / (1 + 1/6); pad: map_a's gains nothing, reduce_a's log(1.1)/6.
  EXPECT_EQ(For("map_b", lessons), "<Tile of map_a 4.00 2><vectorise of reduce_a 3.00 1><pad of reduce_a 1.01 2>");
  EXPECT_THAT(For("map_a", lessons), ::testing::StartsWith("<pad of map_b 52.50 2>"));  // 100 and, by 1/6, 1.1
  EXPECT_THAT(For("reduce_b", lessons), ::testing::StartsWith("<vectorise of reduce_a 3.00 1><pad of map_b "));
  config_.prompt.lessons = 1;
  EXPECT_EQ(For("map_b", lessons), "<Tile of map_a 4.00 2>");
  config_.prompt.lessons = 0;
  EXPECT_EQ(For("map_b", lessons), "");
}

TEST_F(LessonsTest, CopiesOfRecordedRoundsCountOnce) {
  Play("map_a", {{"tile", 2}});
  for (const bool copies : {false, true}) {
    database_->WriteDemonstrations(1, step_.trajectories, copies);
    Lessons lessons(config_);
    lessons.Begin(*database_, problems_.train, nullptr);
    EXPECT_EQ(For("map_b", lessons), copies ? "" : "<tile of map_a 2.00 1>");
  }
}

TEST_F(LessonsTest, TheControlDrawsFromOtherProblems) {
  Play("map_a", {{"tile", 2}, {"unroll", 3}, {"fuse", 1}});
  Play("map_b", {{"own", 2}});
  database_->WriteStep(step_, {});
  config_.controls.shuffle_lessons = true;
  Lessons lessons(config_);
  lessons.Begin(*database_, problems_.train, &*problems_.heldout);
  std::set<std::string> drawn;
  for (uint64_t step = 2; step < 30; ++step) {
    const std::string text = For("map_b", lessons, step);
    EXPECT_EQ(text, For("map_b", lessons, step));
    EXPECT_EQ(text.find("own"), std::string::npos);
    std::smatch match;
    ASSERT_TRUE(std::regex_match(text, match, std::regex("<(\\w+) of map_a 2.00 1><(\\w+) of map_a 1.50 1>"))) << text;
    drawn.insert({match[1], match[2]});
  }
  EXPECT_EQ(drawn, (std::set<std::string>{"fuse", "tile", "unroll"}));

  PipelineConfig run = fakes::Config(fakes::Folder("lessons_shuffled"), 0, 1);
  run.controls.shuffle_lessons = true;
  std::ostringstream out;
  Console console(out, false);
  fakes::RunIn(run, false, {}, &console);
  EXPECT_THAT(out.str(), ::testing::HasSubstr("suggestions in the prompts' lessons are shuffled"));
}

// In a run: prompts have only the gains of other training problems.
TEST_F(LessonsTest, NoPromptHasItsOwnOrAHeldoutProblem) {
  PipelineConfig config = fakes::Config(fakes::Folder("lessons_run"));
  config.prompt.user = kTemplate;
  config.evaluation.at_start = true;
  PipelineConfig earlier = config;
  earlier.output_dir = fakes::Folder("lessons_earlier");
  std::swap(earlier.train_problems, earlier.heldout_problems);
  fakes::RunIn(earlier);
  config.prompt.lessons_from = {earlier.output_dir};
  fakes::RunIn(config);
  RunDatabase database(fs::path(config.output_dir) / "run.sqlite");
  size_t with = 0;
  for (const Purpose purpose : {Purpose::kTrain, Purpose::kHeldout, Purpose::kDemonstration}) {
    for (const uint64_t step : database.StepsWithRounds(purpose)) {
      for (const TrajectoryRecord& trajectory : database.ReadStep(purpose, step)) {
        const std::string& prompt = trajectory.rounds_done.at(0).messages.back().content;
        with += prompt.find('<') != std::string::npos ? 1 : 0;
        EXPECT_EQ(prompt.find("of " + trajectory.problem_name), std::string::npos) << prompt;
        for (const std::string& heldout : config.heldout_problems)
          EXPECT_EQ(prompt.find("of " + heldout), std::string::npos) << prompt;
      }
    }
  }
  EXPECT_GT(with, 50U);
}

// A command that plays the run's policy has the lessons of its whole record.
TEST_F(LessonsTest, ACommandReadsTheRunBesideThePipeline) {
  Play("map_a", {{"tile", 2}});
  database_->WriteStep(step_, {});
  Lessons lessons(config_);
  lessons.AddSourcesOf(fs::path(config_.output_dir) / "resolved.yaml", nullptr);
  EXPECT_EQ(For("map_b", lessons, 0), "<tile of map_a 2.00 1>");
  const ProblemSet heldout(*parts_.evaluator, {"map_a"}, problems_.pool, false);
  Lessons evaluated(config_);
  evaluated.AddSourcesOf(fs::path(config_.output_dir) / "resolved.yaml", &heldout);
  EXPECT_EQ(For("map_b", evaluated, 0), "") << "held-out problems give no lessons";
  config_.prompt.lessons_from = {config_.output_dir + "/none"};
  Lessons named(config_);
  EXPECT_THAT(test::MessageOf([&] { named.AddSourcesOf("elsewhere/resolved.yaml", nullptr); }, KGRPO_ERROR_INVALID),
              ::testing::HasSubstr("/none: name a run's folder"));
}

}  // namespace
}  // namespace kgrpo
