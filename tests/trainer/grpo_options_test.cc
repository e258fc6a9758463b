// The options of trainer_grpo: defaults, descriptions, contradictions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "grpo_bench.h"

namespace kgrpo::grpo {
namespace {

using kgrpo::testing::OptionsJson;
using nlohmann::json;
using ::testing::HasSubstr;

TEST(GrpoOptions, DefaultsAreTheDocumentedOnes) {
  const GrpoOptions options = ReadGrpoOptions(OptionsJson(GrpoOptionsSchema()));
  EXPECT_EQ(options.ppo_epochs, 2u);
  EXPECT_EQ(options.mini_batch_size, 4u);
  EXPECT_EQ(options.gradient_accumulation_steps, 2u);
  EXPECT_EQ(options.optimizer.schedule.learning_rate, 1e-5);
  EXPECT_EQ(options.advantage.gamma, 0.4);
  EXPECT_EQ(options.loss.epsilon_high, 0.2);
  EXPECT_EQ(ReadGrpoOptions(OptionsJson(GrpoOptionsSchema(), {{"loss_type", "cispo"}})).loss.epsilon_high, 5.0);
}

TEST(GrpoOptions, EveryOptionSaysWhatItIs) {
  const json schema = json::parse(GrpoOptionsSchema());
  EXPECT_FALSE(schema.at("additionalProperties").get<bool>());
  for (const auto& [name, property] : schema.at("properties").items()) {
    for (const char* key : {"title", "default", "description"})
      EXPECT_TRUE(property.contains(key)) << name << ": " << key;
  }
}

TEST(GrpoOptions, ContradictionsAreRefusedAllAtOnce) {
  const std::string text = ErrorOf([] {
    ReadGrpoOptions(OptionsJson(GrpoOptionsSchema(), {{"importance_sampling_correction", "token_truncate"},
                                                      {"importance_sampling_min", 4},
                                                      {"loss_type", "cispo"},
                                                      {"epsilon_high", 0.28}}));
  });
  EXPECT_THAT(text, HasSubstr("set old_logprobs: recomputed"));
  EXPECT_THAT(text, HasSubstr("importance_sampling_min is above importance_sampling_max"));
  EXPECT_THAT(text, HasSubstr("epsilon_high of cispo is the largest ratio itself"));
}

}  // namespace
}  // namespace kgrpo::grpo
