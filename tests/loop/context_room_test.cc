// loop/prompter.h: the prompts that are checked against the policy's context length. The command check is tested
// with it in tests/cli/check_test.cc.

#include "fakes.h"
#include "loop/prompter.h"
#include "loop/run.h"
#include "test.h"

#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

namespace kgrpo {
namespace {

class ContextRoomTest : public ::testing::Test {
 protected:
  ContextRoomTest() {
    fakes::Reset();
    config_.prompt.user = std::string(5000, 'x');  // the fake policy has a token a byte, and a context of 4096
    config_.evaluation.every = 0;
  }

  // The run's refusal before it has a folder; "" if it goes on.
  std::string Refusal() const {
    PipelineParts parts = fakes::Parts(config_);
    return test::MessageOf(
        [&] {
          const RunProblems problems(config_, parts);
          EXPECT_THAT(problems.notes, IsEmpty());
        },
        KGRPO_ERROR_INVALID, "");
  }

  PipelineConfig config_ = fakes::Config("", 0);
};

TEST_F(ContextRoomTest, ATrainerThatAsksForTrajectoriesIsPromptedFor) {
  EXPECT_THAT(Refusal(),
              HasSubstr("tokens, and the policy's context holds 4096, so there is no room for a completion"));
  config_.prompt.user = "short";
  EXPECT_THAT(Refusal(), IsEmpty());
}

TEST_F(ContextRoomTest, ATrainerWithDataOfItsOwnIsNot) {
  config_.stages.at(0).trainer.options["source"] = KGRPO_TRAINER_OWN_DATA;
  EXPECT_THAT(Refusal(), IsEmpty());
  config_.evaluation.every = 2;  // but what is measured on held-out problems is
  EXPECT_THAT(Refusal(), HasSubstr("the first prompt of problem map_c has at least"));
}

TEST_F(ContextRoomTest, NothingIsSaidOfNoPrompts) {
  PipelineParts parts = fakes::Parts(config_);
  config_.loop.sampling.max_new_tokens = 100000;
  const ContextRoom room = RoomInContext(config_, *parts.policy, {});
  EXPECT_THAT(room.mistake, IsEmpty());
  EXPECT_THAT(room.warning, IsEmpty());
}

TEST_F(ContextRoomTest, TheLimitsOfPromptsAndCompletionsMustFitTogether) {
  config_.prompt.user = "short";
  config_.prompt.max_tokens = 4000;
  config_.loop.sampling.max_new_tokens = 97;
  PipelineParts parts = fakes::Parts(config_);
  EXPECT_EQ(Prompter(config_, parts.policy.get()).room(), 4000u);
  const RunProblems problems(config_, parts);
  EXPECT_THAT(problems.notes, ElementsAre(HasSubstr("prompt.max_tokens (4000) and loop.sampling.max_new_tokens (97) "
                                                    "together exceed the policy's context (4096)")));
  config_.prompt.max_tokens = 0;
  EXPECT_EQ(Prompter(config_, parts.policy.get()).room(), 4096u - 97);
}

// The fake coder adds a line to the kernel in each round.
TEST_F(ContextRoomTest, OlderRoundsAreLeftOutUntilAPromptFits) {
  config_ = fakes::Config(fakes::Folder("history"), 0, 1);
  config_.evaluation.every = 0;
  config_.loop.rounds = 4;
  config_.prompt.system = "";
  config_.prompt.user =
      "{{problem.family}} {{#history}}[{{round}}{{kernel}}]{{/history}}({{#best}}{{round}}{{/best}}) left out "
      "{{history_left_out}}; {{applied_joined}}; last {{last.round}}";
  std::ostringstream log;
  const auto sink = std::make_shared<spdlog::sinks::ostream_sink_mt>(log);
  spdlog::default_logger()->sinks().push_back(sink);
  const auto prompts = [&](uint64_t most) {
    std::filesystem::remove_all(config_.output_dir);
    config_.prompt.max_tokens = most;
    fakes::RunIn(config_);
    return RunDatabase(std::filesystem::path(config_.output_dir) / "run.sqlite").ReadStep(Purpose::kTrain, 1);
  };
  size_t longest = 0;
  for (const TrajectoryRecord& trajectory : prompts(0)) {
    for (const RoundRecord& round : trajectory.rounds_done) longest = std::max(longest, round.prompt_ids.size());
    EXPECT_THAT(trajectory.rounds_done.back().messages.back().content,
                AllOf(HasSubstr("[1"), HasSubstr("[3"), HasSubstr("left out ;"), HasSubstr("last 3")));
  }
  EXPECT_THAT(log.str(), IsEmpty());
  size_t shorter = 0;
  for (const TrajectoryRecord& trajectory : prompts(longest - 1)) {
    for (const RoundRecord& round : trajectory.rounds_done) {
      EXPECT_LT(round.prompt_ids.size(), longest);
      const std::string& prompt = round.messages.back().content;
      if (prompt.find("left out 1;") == std::string::npos) continue;
      ++shorter;
      EXPECT_THAT(prompt,
                  AllOf(Not(HasSubstr("[1")), HasSubstr("[2"), HasSubstr("last " + std::to_string(round.round))));
    }
  }
  EXPECT_GT(shorter, 0u);
  EXPECT_THAT(log.str(), HasSubstr("step 1, train: " + std::to_string(shorter) +
                                   " of 32 prompts left out earlier rounds "
                                   "to have at most " +
                                   std::to_string(longest - 1) + " tokens\n"));
  prompts(10);
  EXPECT_THAT(log.str(), HasSubstr("24 of 32 prompts left out earlier rounds to have at most 10 tokens; 32 are longer "
                                   "all the same\n"));
  std::erase(spdlog::default_logger()->sinks(), sink);
}

TEST_F(ContextRoomTest, SuggestionsOfAListNeedAnEndToken) {
  config_ = fakes::Config("", 3);
  config_.evaluation.every = 0;
  fakes::knobs().policy_has_no_end = true;
  EXPECT_EQ(Refusal(),
            "the policy has no end token, so no suggestion of the coder's list (suggestions: uniform) can be a "
            "completion: give its model one, \"eos_token_id\" in generation_config.json");
  PipelineParts parts = fakes::Parts(config_);
  EXPECT_THROW(parts.policy->EncodeCompletion("tile"), Error);
}

TEST_F(ContextRoomTest, SampledCompletionsWithoutAnEndTokenAreNoted) {
  config_.prompt.user = "short";
  std::erase_if(config_.stages,
                [](const StageConfig& stage) { return stage.suggestions == SuggestionSource::kUniform; });
  fakes::knobs().policy_has_no_end = true;
  PipelineParts parts = fakes::Parts(config_);
  const RunProblems problems(config_, parts);
  EXPECT_THAT(
      problems.notes,
      ElementsAre("the policy has no end token, so all its completions have loop.sampling.max_new_tokens tokens: "
                  "give its model one, \"eos_token_id\" in generation_config.json"));
}

}  // namespace
}  // namespace kgrpo
