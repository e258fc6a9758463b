// trainer_grpo as a whole: the inputs that change the gradient and those that do not, and the figures of an update.
#include "grpo_bench.h"

#include "test.h"

#include <fstream>

namespace kgrpo::grpo {
namespace {

using kgrpo::testing::OptionsJson;
using ::testing::Contains;
using ::testing::Each;
using ::testing::Key;
using ::testing::Le;

TEST(TrainerGrpo, CuttingAWindowInAnyWayGivesTheSameUpdate) {
  for (const char* loss : {"grpo", "bnpo", "dr_grpo", "dapo", "cispo"}) {
    SCOPED_TRACE(loss);
    auto run = [&](uint32_t mini_batch, uint32_t accumulation, uint32_t max_tokens) {
      Bench bench({{"loss_type", loss},
                   {"mini_batch_size", mini_batch},
                   {"gradient_accumulation_steps", accumulation},
                   {"max_tokens_per_forward", max_tokens},
                   {"mask_truncated_completions", true},
                   {"learning_rate", 1e-2}});
      const Batch batch(bench.policy, 1, 7);  // 28 samples: the second window of 16 is partial
      bench.Update(batch);
      const size_t window = size_t{mini_batch} * accumulation;
      EXPECT_EQ(bench.sink.rows.size(), 2 * ((28 + window - 1) / window));
      return bench.Values();
    };
    const auto whole = run(16, 1, 0);
    // AdamW's first steps magnify rounding (m / sqrt(v) of tiny gradients), so 1e-5 of a change of 1e-2.
    EXPECT_LE(LargestDifference(run(4, 4, 0), whole), 1e-5);
    EXPECT_LE(LargestDifference(run(1, 16, 0), whole), 1e-5);
    EXPECT_LE(LargestDifference(run(16, 1, 7), whole), 1e-5);
    EXPECT_LE(LargestDifference(run(8, 2, 12), whole), 1e-5);
    EXPECT_GE(LargestDifference(run(8, 4, 0), whole), 1e-3) << "a window of 32 is another update";
  }
}

TEST(TrainerGrpo, ForwardPassesTakeAWholeOptimiserStep) {
  Bench bench({{"beta", 0.0}, {"mini_batch_size", 4}, {"gradient_accumulation_steps", 2}});
  const Batch batch(bench.policy, 1, 7);  // 28 samples
  bench.Update(batch);
  EXPECT_THAT(bench.policy.forward_sizes, ElementsAre(8, 8, 8, 4, 8, 8, 8, 4));
}

TEST(TrainerGrpo, ForwardPassesKeepToTheTokenLimit) {
  Bench bench({{"max_tokens_per_forward", 10}, {"mini_batch_size", 16}});
  const Batch batch(bench.policy, 1, 4);
  bench.Update(batch);
  EXPECT_THAT(bench.policy.forward_sizes, Each(Le(size_t{5})));  // a sample has at least two tokens
  EXPECT_GT(bench.policy.forward_sizes.size(), 10u);
}

TEST(TrainerGrpo, OrderWithinAWindowDoesNotMatter) {
  const json options = {
      {"mini_batch_size", 28}, {"gradient_accumulation_steps", 1}, {"advantage_group", "problem_round"}};
  Bench straight(options), mixed(options);
  Batch batch(straight.policy, 2, 7);
  straight.Update(batch);
  std::shuffle(batch.samples.begin(), batch.samples.end(), std::mt19937_64(3));
  mixed.Update(batch);
  EXPECT_LE(LargestDifference(straight.Values(), mixed.Values()), 1e-8);
}

TEST(TrainerGrpo, ShufflesComeFromTheSeedAndDifferByEpochAndUpdate) {
  json options = {{"shuffle", true}, {"beta", 0.0}, {"mini_batch_size", 1}, {"gradient_accumulation_steps", 24}};
  Bench one(options), same(options);
  options["shuffle"] = false;
  Bench straight(options);
  const Batch batch(one.policy, 3, 6);
  std::vector<const int32_t*> prompts;
  for (const auto& prompt : batch.prompts) prompts.push_back(prompt.data());
  for (Bench* bench : {&one, &same, &straight}) {
    bench->Update(batch);
    bench->Update(batch);
  }
  EXPECT_EQ(one.policy.scored, same.policy.scored);
  EXPECT_EQ(one.Values(), same.Values());
  std::set<std::vector<const int32_t*>> orders;
  for (size_t epoch = 0; epoch < 4; ++epoch) {  // two updates of two
    auto order_of = [&](const Bench& bench) {
      const auto first = bench.policy.scored.begin() + static_cast<std::ptrdiff_t>(epoch * prompts.size());
      return std::vector<const int32_t*>(first, first + static_cast<std::ptrdiff_t>(prompts.size()));
    };
    EXPECT_EQ(order_of(straight), prompts);
    EXPECT_THAT(order_of(one), ::testing::UnorderedElementsAreArray(prompts));
    orders.insert(order_of(one));
  }
  EXPECT_EQ(orders.size(), 4u);
}

// The built-in advantage, written as a formula, and by a program.
TEST(TrainerGrpo, TheAdvantageMayBeAFormulaOrAProgram) {
  const std::string formula = "(value - group_mean) / (group_std + 1e-4)";
  Bench built_in(nlohmann::json{{"advantage_group", "problem"}}),
      written(nlohmann::json{{"advantage_group", "problem"}, {"advantage", formula}});
  const std::string script = ::testing::TempDir() + "my_advantage.py";
  std::ofstream(script) << "import sys, statistics\n"
                           "sys.path.insert(0, '" KGRPO_SOURCE_DIR
                           "/python')\n"
                           "from kgrpo_plugin import advantage, run\n"
                           "@advantage\n"
                           "def mine(samples):\n"
                           "    def of(g):\n"
                           "        return [v for v, h in zip(samples.returns, samples.groups) if h == g]\n"
                           "    return [(v - statistics.mean(of(g))) / (statistics.stdev(of(g)) + 1e-4)\n"
                           "            for v, g in zip(samples.returns, samples.groups)]\n"
                           "run()\n";
  Bench program(nlohmann::json{{"advantage_group", "problem"}, {"advantage_program", {"python3", script}}});
  const Batch batch(built_in.policy, 2, 7);
  for (Bench* bench : {&built_in, &written, &program}) bench->Update(batch);
  EXPECT_LE(LargestDifference(built_in.Values(), written.Values()), 1e-12);
  EXPECT_LE(LargestDifference(built_in.Values(), program.Values()), 1e-12);
  EXPECT_THAT(ErrorOf([] {
                Bench(nlohmann::json{{"advantage", "value - group_meen"}});
              }),
              HasSubstr("options.advantage: at character 9 of \"value - group_meen\": there is no variable"));
  EXPECT_THAT(ErrorOf([&] {
                Bench(nlohmann::json{{"advantage", "ln(value - 99)"}}).Update(batch);
              }),
              HasSubstr("options.advantage is no finite number where value = "));
  EXPECT_THAT(ErrorOf([&] {
                Bench(nlohmann::json{{"advantage", formula}, {"leave_one_out", true}});
              }),
              HasSubstr("replaces advantage_estimator, leave_one_out and scale_rewards"));
}

// The sampler was all but certain, the policy is not: completions that came out badly are masked, as if their advantage
// were 0.
TEST(TrainerGrpo, StaleCompletionsThatCameOutBadlyAreMasked) {
  const json recomputed = {{"old_logprobs", "recomputed"}, {"beta", 0.0}, {"ppo_epochs", 1}};
  json masks = recomputed, positive = recomputed;
  masks["off_policy_mask_threshold"] = 0.01;
  positive["advantage"] = "max((value - group_mean) / (group_std + 1e-4), 0)";
  Bench plain(recomputed), strict(masks), only_positive(positive);
  Batch batch(plain.policy, 2, 7);
  for (auto& logprobs : batch.logprobs) std::ranges::fill(logprobs, -0.001f);
  for (Bench* bench : {&plain, &strict, &only_positive}) bench->Update(batch);
  EXPECT_LE(LargestDifference(strict.Values(), only_positive.Values()), 1e-12);
  EXPECT_GT(LargestDifference(strict.Values(), plain.Values()), 1e-6);
  EXPECT_GT(strict.sink.step["sampling/off_policy_ratio"], 0);
}

TEST(TrainerGrpo, RatiosThatCannotCorrectForStaleSamplesAreRefused) {
  kgrpo_trainer_plan plan{};
  plan.struct_size = sizeof plan;
  plan.steps = 10;
  plan.temperature = 1;
  plan.max_completion_size = 6;
  plan.max_staleness = 1;
  EXPECT_THAT(ErrorOf([&] {
                Bench(nlohmann::json{{"old_logprobs", "recomputed"}}).trainer.CheckPlan(plan);
              }),
              HasSubstr("options.old_logprobs: recomputed takes the ratios against the policy of the update"));
  Bench corrected({{"old_logprobs", "recomputed"}, {"importance_sampling_correction", "token_truncate"}});
  EXPECT_NO_THROW(corrected.trainer.CheckPlan(plan));
  EXPECT_NO_THROW(Bench().trainer.CheckPlan(plan));
}

TEST(TrainerGrpo, RaisesTheProbabilityOfWhatWasRewarded) {
  Bench bench({{"learning_rate", 5e-2}, {"beta", 0.0}});
  Batch batch(bench.policy, 4, 6);
  // Reward by the first token: even ids are good.
  for (kgrpo_sample& sample : batch.samples) sample.reward = sample.completion_ids[0] % 2 == 0 ? 1.0 : 0.0;
  auto even = [&] {
    double sum = 0;
    for (int32_t first = 0; first < static_cast<int32_t>(kVocabulary); first += 2) {
      float logprob = 0;
      const int32_t prompt = batch.prompts[0].back();
      bench.policy.Score({&prompt, 1, &first, 1}, KGRPO_POLICY_CURRENT, 1.0, &logprob, nullptr);
      sum += std::exp(static_cast<double>(logprob));
    }
    return sum;
  };
  const double before = even();
  for (int i = 0; i < 5; ++i) bench.Update(batch);
  EXPECT_GT(even(), before);
}

TEST(TrainerGrpo, MetricsHaveTheNamesThatDashboardsKnow) {
  Bench bench;
  const Batch batch(bench.policy, 5, 5);
  bench.Update(batch);
  for (const char* name : {"loss",
                           "grad_norm",
                           "learning_rate",
                           "num_tokens",
                           "reward",
                           "reward_std",
                           "frac_reward_zero_std",
                           "completions/mean_length",
                           "completions/min_length",
                           "completions/max_length",
                           "completions/mean_terminated_length",
                           "completions/min_terminated_length",
                           "completions/max_terminated_length",
                           "completions/clipped_ratio",
                           "entropy",
                           "kl",
                           "clip_ratio/region_mean",
                           "clip_ratio/low_mean",
                           "clip_ratio/low_min",
                           "clip_ratio/high_mean",
                           "clip_ratio/high_max",
                           "sampling/sampling_logp_difference/mean",
                           "sampling/sampling_logp_difference/max"}) {
    EXPECT_THAT(bench.sink.step, Contains(Key(name)));
    EXPECT_TRUE(std::isfinite(bench.sink.step[name])) << name;
  }
  EXPECT_LE(bench.sink.step["sampling/sampling_logp_difference/max"], 1e-6);
  ASSERT_EQ(bench.sink.rows.size(), 6u);  // 20 samples, windows of 8, two epochs
  for (const char* name : {"loss", "kl", "grad_norm", "learning_rate"})
    EXPECT_THAT(bench.sink.rows[0], Contains(Key(name)));
  EXPECT_NEAR(bench.sink.rows[0]["kl"], 0, 1e-9);  // the policy is still its reference
  EXPECT_GT(bench.sink.rows[5]["kl"], 0);
}

TEST(TrainerGrpo, TheLossIsZeroOnPolicyWithoutKlAndTheGradientIsNot) {
  Bench bench({{"beta", 0.0}, {"ppo_epochs", 1}, {"mini_batch_size", 20}, {"gradient_accumulation_steps", 1}});
  const Batch batch(bench.policy, 5, 5);
  bench.Update(batch);
  EXPECT_NEAR(bench.sink.step["loss"], 0, 1e-6);
  EXPECT_GT(bench.sink.step["grad_norm"], 1e-2);
  EXPECT_THAT(bench.sink.step, Not(Contains(Key("kl"))));
}

TEST(TrainerGrpo, TheEntropyBonusRaisesTheEntropy) {
  Bench bench({{"beta", 0},
               {"entropy_coef", 0.1},
               {"loss_type", "bnpo"},
               {"ppo_epochs", 1},
               {"mini_batch_size", 64},
               {"learning_rate", 0.02}});
  Batch batch(bench.policy, 3, 8);
  for (kgrpo_sample& sample : batch.samples) sample.reward = sample.idle_reward = 1;
  for (kgrpo_sample& sample : batch.samples) sample.round = 0, sample.rounds = 1;
  for (size_t i = 0; i < batch.samples.size(); ++i) batch.samples[i].trajectory = i;
  bench.Update(batch);
  const double before = bench.sink.step["entropy"];
  EXPECT_NEAR(bench.sink.step["loss"], -0.1 * before, 1e-6) << "every advantage is 0";
  bench.Update(batch);
  EXPECT_GT(bench.sink.step["entropy"], before);
}

TEST(TrainerGrpo, WithoutKlTheReferenceIsNotAskedFor) {
  const GrpoOptions none = ReadGrpoOptions(OptionsJson(GrpoOptionsSchema(), {{"beta", 0.0}}));
  EXPECT_FALSE(none.needs_reference());
}

TEST(TrainerGrpo, TheReferenceFollowsWhenAskedTo) {
  Bench bench({{"sync_ref_model", true}, {"ref_model_sync_steps", 2}, {"learning_rate", 1e-2}});
  const Batch batch(bench.policy, 6, 4);
  bench.Update(batch);
  bench.Update(batch);
  bench.sink.rows.clear();
  bench.Update(batch);
  EXPECT_NEAR(bench.sink.rows[0]["kl"], 0, 1e-9);
}

TEST(TrainerGrpo, GroupsWithoutVarianceAreDroppedWhenAskedTo) {
  auto batch_for = [](const Bench& bench) {
    Batch batch(bench.policy, 7, 6);
    for (kgrpo_sample& sample : batch.samples) {
      if (sample.problem == 0) sample.reward = 1;  // with gamma 0: nothing to compare
    }
    return batch;
  };
  json options = {{"gamma", 0.0},
                  {"advantage_group", "problem"},
                  {"mini_batch_size", 8},
                  {"gradient_accumulation_steps", 1},
                  {"ppo_epochs", 1}};
  Bench keep(options);
  options["drop_zero_variance_groups"] = true;
  Bench drop(options);
  const Batch kept = batch_for(keep), dropped = batch_for(drop);
  keep.Update(kept);
  drop.Update(dropped);
  EXPECT_EQ(keep.sink.rows.size(), 3u);
  EXPECT_EQ(drop.sink.rows.size(), 2u);
  EXPECT_NEAR(drop.sink.step["frac_reward_zero_std"], 1.0 / 3, 1e-12);

  Batch flat(drop.policy, 8, 3);
  for (kgrpo_sample& sample : flat.samples) sample.reward = 1;
  const auto before = drop.Values();
  drop.Update(flat);
  EXPECT_EQ(drop.Values(), before) << "nothing to learn from, nothing changed";
  EXPECT_EQ(drop.sink.step["optimizer_steps"], 0);
}

TEST(TrainerGrpo, RoundsBeforeADroppedOneTakeNoPart) {
  for (const char* group : {"batch", "problem", "problem_round"}) {
    const json options = {{"advantage_group", group}, {"mini_batch_size", 2}};
    Bench dropped(options), without(options);
    Batch batch(dropped.policy, 19, 6);
    // The third round of trajectory 1 and the first of trajectory 4 were dropped.
    std::erase_if(batch.samples, [](const kgrpo_sample& sample) {
      return (sample.trajectory == 1 && sample.round >= 2) || sample.trajectory == 4;
    });
    ASSERT_EQ(batch.samples.size(), 18u);
    dropped.Update(batch);
    EXPECT_EQ(dropped.sink.step["cut_rounds"], 2);
    EXPECT_EQ(dropped.sink.samples.at(4).second, 0);
    EXPECT_EQ(dropped.sink.samples.at(5).second, 0);
    std::erase_if(batch.samples, [](const kgrpo_sample& sample) { return sample.trajectory == 1; });
    without.Update(batch);
    EXPECT_EQ(without.sink.step["cut_rounds"], 0);
    EXPECT_EQ(dropped.Values(), without.Values());
    EXPECT_EQ(dropped.sink.rows, without.sink.rows);
  }
  Bench all_cut;
  Batch batch(all_cut.policy, 20, 4);
  std::erase_if(batch.samples, [](const kgrpo_sample& sample) { return sample.round == 3; });
  const auto before = all_cut.Values();
  all_cut.Update(batch);
  EXPECT_EQ(all_cut.Values(), before);
  EXPECT_EQ(all_cut.sink.step["cut_rounds"], 12);
  EXPECT_EQ(all_cut.sink.step["optimizer_steps"], 0);
  EXPECT_EQ(all_cut.sink.step.count("loss"), 0u);
  Bench own_rewards(json{{"gamma", 0.0}});
  own_rewards.Update(batch);
  EXPECT_EQ(own_rewards.sink.step["cut_rounds"], 0);
  EXPECT_GT(own_rewards.sink.step["optimizer_steps"], 0);
}

TEST(TrainerGrpo, TruncatedCompletionsAreNotEvenScored) {
  Bench bench({{"mask_truncated_completions", true}, {"ppo_epochs", 1}, {"mini_batch_size", 1}});
  Batch batch(bench.policy, 9, 3);
  for (size_t i = 0; i < batch.samples.size(); ++i) batch.samples[i].truncated = i == 0 ? 0 : 1;
  bench.Update(batch);
  EXPECT_EQ(bench.policy.forwards, 2);  // the reference's and the policy's, of the one sample that is left
  EXPECT_TRUE(std::isfinite(bench.sink.step["loss"]));
  for (const auto& [sample, outcome] : bench.sink.samples)
    EXPECT_EQ(outcome.second == 0, sample != 0) << "the weight in the loss, which masked samples have none of";
}

TEST(TrainerGrpo, RecomputedOldLogprobsNeedNoneRecorded) {
  Bench bench(json{{"old_logprobs", "recomputed"}}), recorded;
  Batch batch(bench.policy, 15, 4);
  recorded.Update(batch);
  for (kgrpo_sample& sample : batch.samples) sample.logprobs = nullptr;
  bench.Update(batch);
  EXPECT_LE(LargestDifference(bench.Values(), recorded.Values()), 1e-9);
}

TEST(TrainerGrpo, ASamplerThatDisagreesIsReportedOnce) {
  Bench bench;
  Batch batch(bench.policy, 16, 4);
  for (auto& row : batch.logprobs) {
    for (float& value : row) value -= 0.2f;
  }
  bench.Update(batch);
  bench.Update(batch);
  EXPECT_NEAR(bench.sink.step["sampling/sampling_logp_difference/mean"], 0.2, 1e-3);
  const auto warned = std::count_if(bench.host.lines.begin(), bench.host.lines.end(), [](const std::string& line) {
    return line.find("the recorded log-probabilities differ from the policy's own by") != std::string::npos;
  });
  EXPECT_EQ(warned, 1);
}

TEST(TrainerGrpo, SamplesOfANewerHostAreRead) {
  // A host built with a longer kgrpo_sample hands over pointers to those.
  struct LongerSample {
    kgrpo_sample known;
    uint64_t added[3];
  };
  Bench bench, same;
  const Batch batch(bench.policy, 17, 3);
  std::vector<LongerSample> longer;
  for (const kgrpo_sample& sample : batch.samples) {
    longer.push_back({sample, {~0ull, ~0ull, ~0ull}});
    longer.back().known.struct_size = sizeof(LongerSample);
  }
  std::vector<const kgrpo_sample*> pointers;
  for (const LongerSample& sample : longer) pointers.push_back(&sample.known);
  bench.trainer.Update(pointers.data(), pointers.size(), bench.sink.get());
  same.Update(batch);
  EXPECT_EQ(bench.Values(), same.Values());
}

TEST(TrainerGrpo, ReturnAndAdvantageOfEverySampleArePushed) {
  Bench bench({{"gamma", 0.5}, {"drop_zero_variance_groups", true}, {"advantage_group", "problem"}});
  Batch batch(bench.policy, 18, 4);
  for (kgrpo_sample& sample : batch.samples) {
    if (sample.problem == 0) sample.reward = sample.round + 1 == sample.rounds ? 1.0 : 0.5;  // a return of 1 each
  }
  bench.Update(batch);
  ASSERT_EQ(bench.sink.samples.size(), batch.samples.size()) << "those that were dropped too";
  for (size_t i = 0; i < batch.samples.size(); ++i) {
    double expected = 0, discount = 1;
    for (size_t later = i; later < (i / 4 + 1) * 4; ++later, discount *= 0.5) {
      expected += discount * batch.samples[later].reward;
    }
    EXPECT_NEAR(bench.sink.samples.at(i).first, expected, 1e-12) << i;
    if (batch.samples[i].problem == 0) {
      EXPECT_EQ(bench.sink.samples.at(i).second, 0) << i;
    }
  }
  EXPECT_NE(bench.sink.samples.at(4).second, 0);
}

}  // namespace
}  // namespace kgrpo::grpo
