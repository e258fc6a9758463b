// loop/context_room.h: the prompts that are checked against the policy's context length. The command check is tested
// with it in tests/cli/check_test.cc.
#include "loop/context_room.h"

#include "fakes.h"
#include "loop/run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <kgrpo/sdk/error.h>

#include <string>

namespace kgrpo {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

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
    try {
      const RunProblems problems(config_, parts);
      EXPECT_THAT(problems.notes, IsEmpty());
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), KGRPO_ERROR_INVALID);
      return error.what();
    }
    return "";
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

TEST_F(ContextRoomTest, SuggestionsOfAListNeedAnEndToken) {
  config_ = fakes::Config("", 3);
  config_.evaluation.every = 0;
  fakes::knobs().policy_has_no_end = true;
  EXPECT_EQ(Refusal(),
            "the policy has no end token, so no suggestion of the coder's list (suggestions: uniform) can be a "
            "completion: give its model one, \"eos_token_id\" in generation_config.json");
  PipelineParts parts = fakes::Parts(config_);
  EXPECT_THROW(parts.policy->EndId(), Error);
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
