// The options of trainer_grpo: defaults, descriptions, contradictions.
#include "grpo_bench.h"

#include "test.h"

namespace kgrpo::grpo {
namespace {

using kgrpo::testing::FakeHost;
using kgrpo::testing::OptionsJson;

TEST(GrpoOptions, DefaultsAreTheDocumentedOnes) {
  const GrpoOptions options = ReadGrpoOptions(OptionsJson(GrpoOptionsSchema()));
  EXPECT_EQ(options.ppo_epochs, 2u);
  EXPECT_EQ(options.mini_batch_size, 4u);
  EXPECT_EQ(options.gradient_accumulation_steps, 2u);
  EXPECT_EQ(options.max_tokens_per_forward, 16384u);
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
  EXPECT_EQ(
      ErrorOf([] {
        ReadGrpoOptions(OptionsJson(GrpoOptionsSchema(), {{"delta", 1.25}, {"epsilon_high", 0.28}}));
      }),
      "options.delta: 1.25 is below 1 + epsilon_high (1.28): it would clip positive advantages and bound no negative "
      "one; 4 is usual");
  ReadGrpoOptions(OptionsJson(GrpoOptionsSchema(), {{"delta", 1.28}, {"epsilon_high", 0.28}}));
}

kgrpo_trainer_plan PlanOf(uint64_t trajectories, uint64_t per_problem, uint64_t problems, uint64_t rounds) {
  return {sizeof(kgrpo_trainer_plan), 10, 1.0, 6, trajectories, per_problem, problems, rounds, 0, 0};
}

std::string RefusalOf(const json& options, const kgrpo_trainer_plan& plan) {
  return test::MessageOf([&] { RefusePlan(ReadGrpoOptions(OptionsJson(GrpoOptionsSchema(), options)), plan); },
                         KGRPO_ERROR_INVALID, "");
}

std::vector<std::string> WarningsOf(const json& options, const kgrpo_trainer_plan& plan) {
  return PlanWarnings(ReadGrpoOptions(OptionsJson(GrpoOptionsSchema(), options)), plan);
}

// The plan is refused exactly where every group of an update that draws as the loop does has one sample.
TEST(GrpoPlan, GroupsOfOneSampleAreRefused) {
  for (const std::string group : {"batch", "problem", "problem_round"}) {
    for (const uint64_t per_problem : {1, 2}) {
      for (const uint64_t drawn : {1, 2, 3, 4, 5, 8}) {
        for (const uint64_t problems : {1, 3, 4, 8}) {
          for (const uint64_t rounds : {1, 2}) {
            std::vector<RoundOutcome> outcomes;
            for (uint64_t trajectory = 0; trajectory < drawn * per_problem; ++trajectory) {
              const auto problem = static_cast<uint32_t>(trajectory / per_problem % problems);
              for (uint32_t round = 0; round < rounds; ++round) {
                const double reward = static_cast<double>(outcomes.size() * outcomes.size());
                outcomes.push_back({reward, 0, trajectory, round, static_cast<uint32_t>(rounds), problem});
              }
            }
            const json options = {{"advantage_group", group}, {"gamma", 0}};
            const std::vector<double> advantages =
                ComputeAdvantages(ReadGrpoOptions(OptionsJson(GrpoOptionsSchema(), options)).advantage, outcomes)
                    .advantages;
            const bool nothing = std::ranges::all_of(advantages, [](double a) { return a == 0; });
            const kgrpo_trainer_plan plan = PlanOf(drawn * per_problem, per_problem, problems, rounds);
            EXPECT_EQ(RefusalOf(options, plan) != "", nothing)
                << group << ", " << drawn << " x " << per_problem << " of " << problems << ", rounds " << rounds;
          }
        }
      }
    }
  }
  EXPECT_EQ(RefusalOf({{"advantage_group", "problem_round"}}, PlanOf(0, 0, 0, 0)), "") << "nothing is known";
  EXPECT_EQ(RefusalOf({{"advantage_group", "problem_round"}}, PlanOf(4, 1, 0, 2)), "") << "the problems are not known";
  EXPECT_THAT(RefusalOf({{"advantage_group", "problem_round"}}, PlanOf(16, 1, 22, 4)),
              HasSubstr("options.advantage_group: in each update every sample would be alone in its group, with "
                        "advantage 0, and nothing would be learned. Give each problem several trajectories "
                        "(loop.trajectories_per_problem is 1, the update's trajectories 16, their rounds 4)"));
  EXPECT_THAT(WarningsOf({{"advantage_group", "problem_round"}}, PlanOf(5, 1, 4, 2)),
              ElementsAre(HasSubstr("in each update 3 of 4 problems have one trajectory")));
  EXPECT_THAT(WarningsOf({{"advantage_group", "problem_round"}}, PlanOf(8, 1, 4, 2)), ElementsAre());
}

TEST(GrpoPlan, ABestOfMoreThanAGroupIsRefused) {
  const auto refused = [](const std::string& group, uint32_t best_of, const kgrpo_trainer_plan& plan) {
    return RefusalOf({{"advantage_estimator", "max_at_k"}, {"advantage_group", group}, {"best_of", best_of}}, plan);
  };
  const kgrpo_trainer_plan plan = PlanOf(16, 4, 22, 3);
  EXPECT_EQ(refused("problem_round", 4, plan), "");
  EXPECT_EQ(refused("problem_round", 5, plan),
            "options.best_of: 5 is above the number of samples in a group, which is 4: lower it, or raise "
            "loop.trajectories_per_problem (4)");
  EXPECT_EQ(refused("problem", 12, plan), "");
  EXPECT_NE(refused("problem", 13, plan), "");
  EXPECT_EQ(refused("batch", 48, plan), "");
  EXPECT_NE(refused("batch", 49, plan), "");
  EXPECT_EQ(refused("problem_round", 8, PlanOf(16, 4, 3, 3)), "") << "one problem is drawn twice";
  EXPECT_EQ(refused("problem_round", 99, PlanOf(16, 4, 0, 3)), "") << "the problems are not known";
  EXPECT_EQ(refused("problem", 99, PlanOf(2, 4, 22, 3)), "") << "fewer trajectories than one problem takes";
  EXPECT_EQ(RefusalOf({{"best_of", 5}, {"advantage_group", "problem_round"}}, plan), "") << "only a warning";
}

TEST(GrpoPlan, OptionsWithoutEffectAreWarnedOf) {
  const kgrpo_trainer_plan plan = PlanOf(16, 4, 22, 4);
  EXPECT_THAT(WarningsOf(json::object(), plan), ElementsAre());
  const auto one = [&](const json& options, const std::string& warning) {
    EXPECT_THAT(WarningsOf(options, plan), ElementsAre(::testing::StartsWith(warning))) << options;
  };
  one({{"sync_ref_model", true}, {"beta", 0}}, "sync_ref_model has no effect: beta is 0, so");
  one({{"sync_ref_model", true}},
      "sync_ref_model has no effect: the stage has 10 updates, and the reference would be "
      "replaced after 512 (ref_model_sync_steps)");
  one({{"sync_ref_model", true}, {"ref_model_sync_steps", 10}}, "sync_ref_model has no effect: ");
  one({{"ref_model_sync_steps", 4}}, "ref_model_sync_steps has no effect: ");
  one({{"kl_ratio_correction", true}, {"beta", 0}}, "kl_ratio_correction has no effect: beta is 0");
  one({{"kl_clamp", nullptr}, {"beta", 0}}, "kl_clamp has no effect: ");
  one({{"best_of", 4}}, "best_of has no effect: advantage_estimator is mean");
  one({{"loss_type", "cispo"}, {"delta", 4}}, "delta has no effect: ");
  one({{"advantage_estimator", "max_at_k"}, {"leave_one_out", true}},
      "leave_one_out has no effect: advantage_estimator is max_at_k");
  one({{"min_lr_ratio", 0.1}}, "min_lr_ratio has no effect: ");
  one({{"num_cycles", 2}, {"lr_scheduler_type", "cosine"}}, "num_cycles has no effect: ");
  one({{"decay_steps", 2}, {"lr_scheduler_type", "linear"}}, "decay_steps has no effect: ");
  one({{"epsilon_high", 0.028}}, "epsilon_high (0.028) is below epsilon (0.2): ");
  one({{"max_completion_length", 100}}, "max_completion_length has no effect: ");
  one({{"importance_sampling_max", 2}}, "importance_sampling_min and _max have no effect: ");
  one({{"warmup_steps", 40}, {"learning_rate", 1e-5}},
      "warmup_steps (40) is more than the stage's 10 updates: the learning rate ends at 2.5e-06 and never reaches "
      "1e-05");
  for (const json& fine :
       {json{{"sync_ref_model", true}, {"ref_model_sync_steps", 4}},
        json{{"epsilon_high", 0.28}, {"delta", 4}, {"warmup_steps", 10}},
        json{{"loss_type", "dr_grpo"}, {"max_completion_length", 100}},
        json{{"lr_scheduler_type", "cosine_with_restarts"}, {"num_cycles", 2}, {"min_lr_ratio", 0.1}},
        json{{"lr_scheduler_type", "warmup_stable_decay"}, {"decay_steps", 2}, {"min_lr_ratio", 0.1}},
        json{{"advantage_estimator", "max_at_k"}, {"best_of", 4}}}) {
    EXPECT_THAT(WarningsOf(fine, plan), ElementsAre()) << fine;
  }
}

TEST(GrpoPlan, CheckPlanRefusesAndWarns) {
  FakeHost host;
  const GrpoTrainer trainer(host.get(), ReadGrpoOptions(OptionsJson(GrpoOptionsSchema(), {{"sync_ref_model", true}})),
                            nullptr);
  trainer.CheckPlan(PlanOf(16, 4, 22, 4));
  EXPECT_THAT(host.lines, ElementsAre(HasSubstr("sync_ref_model has no effect")));
  EXPECT_THAT(ErrorOf([&] { trainer.CheckPlan(PlanOf(1, 1, 1, 1)); }), HasSubstr("options.advantage_group: "));
  kgrpo_trainer_plan greedy = PlanOf(16, 4, 22, 4);
  greedy.temperature = 0;
  EXPECT_THAT(ErrorOf([&] { trainer.CheckPlan(greedy); }), HasSubstr("temperature is 0.000000"));
}

}  // namespace
}  // namespace kgrpo::grpo
