// trainer_grpo as a whole: what does not change the gradient, what is skipped, what is refused, what is saved.
#include "trainer_grpo/grpo_trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <set>
#include <vector>

#include "bigram_policy.h"
#include "fake_host.h"
#include "options_json.h"
#include "recorded_sink.h"
#include "trainer_grpo/grpo_options.h"

namespace kgrpo::grpo {
namespace {

using kgrpo::testing::BigramPolicy;
using kgrpo::testing::FakeHost;
using kgrpo::testing::MemoryStream;
using kgrpo::testing::OptionsJson;
using kgrpo::testing::RecordedSink;
using nlohmann::json;
using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Key;
using ::testing::Le;
using ::testing::Not;

constexpr size_t kVocabulary = 11;

// Random samples: trajectories of four rounds over three problems, with true behaviour log-probabilities.
struct Batch {
  Batch(const BigramPolicy& policy, uint64_t seed, size_t trajectories, double temperature = 1.0) {
    std::mt19937_64 engine(seed);
    auto draw = [&](size_t size) {
      std::vector<int32_t> ids(size);
      for (int32_t& id : ids) id = static_cast<int32_t>(engine() % kVocabulary);
      return ids;
    };
    const size_t count = trajectories * 4;
    for (size_t i = 0; i < count; ++i) {
      prompts.push_back(draw(1 + engine() % 3));
      completions.push_back(draw(1 + engine() % 6));
      logprobs.emplace_back(completions[i].size());
      policy.Score({prompts[i].data(), prompts[i].size(), completions[i].data(), completions[i].size()},
                   KGRPO_POLICY_CURRENT, temperature, logprobs[i].data(), nullptr);
    }
    for (size_t i = 0; i < count; ++i) {
      samples.push_back({sizeof(kgrpo_sample), prompts[i].data(), prompts[i].size(), completions[i].data(),
                         logprobs[i].data(), completions[i].size(), static_cast<double>(engine() % 100) / 50, 0.5,
                         i / 4, static_cast<uint32_t>(i % 4), 4, static_cast<uint32_t>(i / 4 % 3),
                         completions[i].size() == 6 ? 1 : 0});
    }
  }
  std::vector<std::vector<int32_t>> prompts, completions;
  std::vector<std::vector<float>> logprobs;
  std::vector<kgrpo_sample> samples;
};

// A policy, a trainer over it, and what they need.
struct Bench {
  explicit Bench(const json& options = json::object(), bool bfloat16 = false, uint64_t steps = 10)
      : policy(kVocabulary, bfloat16),
        trainer(host.get(), ReadGrpoOptions(OptionsJson(GrpoOptionsSchema(), options)), nullptr) {
    policy.FillRandomly(1);
    policy.FreezeReference();
    trainer.Begin(&BigramPolicy::Api(), policy.get(), {sizeof(kgrpo_trainer_plan), steps, 1.0, 6});
  }
  void Update(const Batch& batch) { trainer.Update(batch.samples.data(), batch.samples.size(), sink.get()); }
  std::vector<double> Values() const {
    std::vector<double> all = policy.Values(0);
    for (double value : policy.Values(1)) all.push_back(value);
    return all;
  }
  FakeHost host;
  BigramPolicy policy;
  GrpoTrainer trainer;
  RecordedSink sink;
};

// The code and text of the kgrpo::Error that `body` throws.
std::string ErrorOf(const std::function<void()>& body, kgrpo_error_code code = KGRPO_ERROR_INVALID) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code);
    return error.what();
  }
  return "nothing was thrown";
}

double LargestDifference(const std::vector<double>& a, const std::vector<double>& b) {
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

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

TEST(TrainerGrpo, WithoutKlTheReferenceIsNotAskedFor) {
  const GrpoOptions none = ReadGrpoOptions(OptionsJson(GrpoOptionsSchema(), {{"beta", 0.0}}));
  const GrpoOptions report = ReadGrpoOptions(OptionsJson(GrpoOptionsSchema(), {{"beta", 0.0}, {"report_kl", true}}));
  EXPECT_FALSE(none.needs_reference());
  EXPECT_TRUE(report.needs_reference());
  Bench plain(json{{"beta", 0.0}}), reporting({{"beta", 0.0}, {"report_kl", true}});
  const Batch batch(plain.policy, 5, 5);
  plain.Update(batch);
  reporting.Update(batch);
  EXPECT_EQ(plain.Values(), reporting.Values());
  EXPECT_GT(reporting.sink.step["kl"], 0);
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

TEST(TrainerGrpo, TruncatedCompletionsAreNotEvenScored) {
  Bench bench({{"mask_truncated_completions", true}, {"ppo_epochs", 1}, {"mini_batch_size", 1}});
  Batch batch(bench.policy, 9, 3);
  for (size_t i = 0; i < batch.samples.size(); ++i) batch.samples[i].truncated = i == 0 ? 0 : 1;
  bench.Update(batch);
  EXPECT_EQ(bench.policy.forwards, 2);  // the reference's and the policy's, of the one sample that is left
  EXPECT_TRUE(std::isfinite(bench.sink.step["loss"]));
}

TEST(TrainerGrpo, ANonFiniteStepIsSkippedAndCounted) {
  for (bool in_gradient : {false, true}) {
    SCOPED_TRACE(in_gradient);
    Bench bench({{"learning_rate", 1e-2}, {"ppo_epochs", 1}, {"beta", 0.0}});  // three windows of two mini-batches
    const Batch batch(bench.policy, 10, 6);
    if (in_gradient) {
      bench.policy.poison_gradient = 2;  // in the second window
    } else {
      bench.policy.poison_forwards = {2};
    }
    bench.Update(batch);
    ASSERT_EQ(bench.sink.rows.size(), 3u);
    EXPECT_EQ(bench.sink.rows[0]["skipped"], 0);
    EXPECT_EQ(bench.sink.rows[1]["skipped"], 1);
    EXPECT_EQ(bench.sink.rows[2]["skipped"], 0);
    EXPECT_EQ(bench.sink.step["skipped_steps"], 1);
    EXPECT_TRUE(std::isfinite(bench.sink.step["loss"]));
    EXPECT_TRUE(std::isfinite(bench.sink.step["grad_norm"]));
    for (double value : bench.Values()) EXPECT_TRUE(std::isfinite(value));
    EXPECT_THAT(bench.host.lines, Contains(HasSubstr("optimiser step skipped")));
    EXPECT_EQ(bench.policy.live_contexts, 0);
  }
}

TEST(TrainerGrpo, TooManyNonFiniteStepsInARowStopTheRun) {
  Bench bench({{"max_non_finite_steps", 4}, {"beta", 0.0}});
  const Batch batch(bench.policy, 11, 4);  // two windows, two epochs
  const auto before = bench.Values();
  bench.policy.always_poison = true;
  EXPECT_THAT(ErrorOf([&] { bench.Update(batch); }, KGRPO_ERROR_NOT_FINITE),
              HasSubstr("4 optimiser steps in a row had a loss that is not finite"));
  EXPECT_EQ(bench.Values(), before);
  EXPECT_EQ(bench.policy.live_contexts, 0);
}

TEST(TrainerGrpo, SkippedStepsThatDoNotFollowEachOtherDoNotStopTheRun) {
  Bench bench({{"max_non_finite_steps", 2}, {"beta", 0.0}, {"mini_batch_size", 8}, {"gradient_accumulation_steps", 1}});
  const Batch batch(bench.policy, 11, 4);  // two windows, two epochs
  bench.policy.poison_forwards = {0, 2};
  bench.Update(batch);
  EXPECT_EQ(bench.sink.step["skipped_steps"], 2);
}

TEST(TrainerGrpo, AFailureOfThePolicyIsHandedOnAndLeaksNothing) {
  Bench bench;
  const Batch batch(bench.policy, 12, 4);
  bench.policy.fail_forward = 6;
  EXPECT_EQ(ErrorOf([&] { bench.Update(batch); }, KGRPO_ERROR_UNAVAILABLE), "the device fell off the bus");
  EXPECT_EQ(bench.policy.live_contexts, 0);
  bench.policy.fail_forward = -1;
  bench.Update(batch);
}

TEST(TrainerGrpo, CancellingBeforeTheFirstStepChangesNothing) {
  Bench bench;
  const Batch batch(bench.policy, 13, 4);
  const auto before = bench.Values();
  bench.host.cancel = true;
  ErrorOf([&] { bench.Update(batch); }, KGRPO_ERROR_CANCELLED);
  EXPECT_EQ(bench.Values(), before);
}

TEST(TrainerGrpo, BadSamplesAreRefusedByName) {
  Bench bench;
  const Batch good(bench.policy, 14, 2);
  const auto before = bench.Values();
  auto refused = [&](const std::function<void(Batch&)>& spoil) {
    Batch batch(bench.policy, 14, 2);
    spoil(batch);
    return ErrorOf([&] { bench.Update(batch); });
  };
  EXPECT_EQ(refused([](Batch& b) { b.samples.clear(); }), "trainer_grpo: an update needs at least one sample");
  EXPECT_EQ(refused([](Batch& b) { b.samples[3].prompt_size = 0; }), "sample 3: its prompt has no tokens");
  EXPECT_EQ(refused([](Batch& b) { b.samples[3].completion_size = 0; }),
            "sample 3: its completion has no tokens (the end token counts as one)");
  EXPECT_EQ(refused([](Batch& b) { b.samples[5].reward = std::nan(""); }), "sample 5: its reward is not finite");
  EXPECT_EQ(
      refused([](Batch& b) { b.logprobs[2][0] = 0.25f; }),
      "sample 2: the behaviour log-probability of token 0 of its completion is 0.250000, which no log-probability is");
  EXPECT_EQ(
      refused([](Batch& b) { b.samples[1].logprobs = nullptr; }),
      "sample 1: it has no behaviour log-probabilities, which old_logprobs: behaviour needs; old_logprobs: recomputed "
      "does without");
  EXPECT_EQ(bench.Values(), before);
  EXPECT_EQ(bench.policy.forwards, 0);
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
  // A host built with a longer kgrpo_sample puts the elements farther apart.
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
  bench.trainer.Update(&longer[0].known, longer.size(), bench.sink.get());
  same.Update(batch);
  EXPECT_EQ(bench.Values(), same.Values());
}

TEST(TrainerGrpo, ResumedRunsGoOnBitForBit) {
  for (bool bfloat16 : {false, true}) {
    SCOPED_TRACE(bfloat16);
    const json options = {
        {"learning_rate", 1e-2}, {"lr_scheduler_type", "cosine"}, {"warmup_steps", 3}, {"shuffle", true}};
    Bench unbroken(options, bfloat16), first(options, bfloat16), second(options, bfloat16);
    std::vector<std::unique_ptr<Batch>> batches;
    for (uint64_t i = 0; i < 6; ++i) batches.push_back(std::make_unique<Batch>(unbroken.policy, 20 + i, 5));
    for (const auto& batch : batches) unbroken.Update(*batch);
    for (size_t i = 0; i < 3; ++i) first.Update(*batches[i]);
    MemoryStream stream;
    first.trainer.SaveState(stream.writer());
    for (size_t p = 0; p < 2; ++p) second.policy.SetValues(p, first.policy.Values(p));
    second.trainer.LoadState(stream.reader());
    for (size_t i = 3; i < 6; ++i) second.Update(*batches[i]);
    EXPECT_EQ(second.Values(), unbroken.Values());
    EXPECT_EQ(second.sink.step, unbroken.sink.step);
    MemoryStream a, b;
    unbroken.trainer.SaveState(a.writer());
    second.trainer.SaveState(b.writer());
    EXPECT_EQ(a.bytes, b.bytes);
  }
}

TEST(TrainerGrpo, AStateBeforeTheFirstUpdateCanBeSaved) {
  Bench bench, other;
  MemoryStream stream;
  bench.trainer.SaveState(stream.writer());
  other.trainer.LoadState(stream.reader());
  const Batch batch(bench.policy, 21, 3);
  bench.Update(batch);
  other.Update(batch);
  EXPECT_EQ(bench.Values(), other.Values());
}

TEST(TrainerGrpo, DamagedStatesAreRefusedAndChangeNothing) {
  Bench bench, loader, reference;
  const Batch batch(bench.policy, 22, 4);
  bench.Update(batch);
  MemoryStream good;
  bench.trainer.SaveState(good.writer());
  for (size_t p = 0; p < 2; ++p) loader.policy.SetValues(p, bench.policy.Values(p));

  auto load = [&](const std::string& bytes) {
    MemoryStream stream;
    stream.bytes = bytes;
    return ErrorOf([&] { loader.trainer.LoadState(stream.reader()); });
  };
  const std::string head = "the saved trainer state cannot be used: ";
  for (size_t size = 0; size < good.bytes.size(); size += 97)
    EXPECT_EQ(load(good.bytes.substr(0, size)), head + "it is cut short");
  EXPECT_EQ(load("PK" + good.bytes), head + "it does not begin as one");
  EXPECT_EQ(load(good.bytes + "x"), head + "it is damaged (more follows its end)");
  std::string version = good.bytes, moment = good.bytes, trainer = good.bytes;
  version[8] = 9;
  EXPECT_EQ(load(version), head + "it has version 9 of the format, this program reads version 1");
  moment[good.bytes.size() - 20] ^= 4;
  EXPECT_EQ(load(moment), head + "it is damaged (its checksum does not match)");
  trainer.replace(trainer.find("trainer_grpo"), 12, "trainer_xxxx");
  EXPECT_EQ(load(trainer), head + "it was written by trainer_xxxx, not by trainer_grpo");
  for (size_t i = 0; i < good.bytes.size(); i += 13) {  // no byte can change unnoticed
    std::string changed = good.bytes;
    changed[i] ^= 1;
    EXPECT_THAT(load(changed), HasSubstr(head)) << i;
  }

  // After all these failures the trainer is as new.
  for (size_t p = 0; p < 2; ++p) loader.policy.SetValues(p, reference.policy.Values(p));
  loader.Update(batch);
  reference.Update(batch);
  EXPECT_EQ(loader.Values(), reference.Values());
}

TEST(TrainerGrpo, StatesOfAnotherModelAreRefused) {
  Bench bench, other_values, narrow({}, true);
  const Batch batch(bench.policy, 23, 4);
  bench.Update(batch);
  MemoryStream stream;
  bench.trainer.SaveState(stream.writer());
  const std::string head = "the saved trainer state cannot be used: ";
  EXPECT_EQ(ErrorOf([&] { other_values.trainer.LoadState(stream.reader()); }),
            head + "parameter table has other values than when it was saved; load the policy of the same checkpoint");
  EXPECT_EQ(ErrorOf([&] { narrow.trainer.LoadState(stream.reader()); }),
            head + "it is of another model: it has table float32[11, 11] where this one has table bfloat16[11, 11]");
  BigramPolicy larger(kVocabulary + 1);
  GrpoTrainer trainer(bench.host.get(), bench.trainer.options(), nullptr);
  trainer.Begin(&BigramPolicy::Api(), larger.get(), {sizeof(kgrpo_trainer_plan), 10, 1.0, 6});
  EXPECT_EQ(ErrorOf([&] { trainer.LoadState(stream.reader()); }),
            head + "it is of another model: it has table float32[11, 11] where this one has table float32[12, 12]");
}

TEST(TrainerGrpo, AFullDiskIsAnErrorOfSaving) {
  Bench bench;
  MemoryStream stream;
  stream.fails_after = 100;
  EXPECT_EQ(ErrorOf([&] { bench.trainer.SaveState(stream.writer()); }, KGRPO_ERROR_UNAVAILABLE), "disk full");
}

TEST(TrainerGrpo, WhatCannotBeTrainedIsRefusedWhenTheStageBegins) {
  FakeHost host;
  const GrpoOptions options = ReadGrpoOptions(OptionsJson(GrpoOptionsSchema()));
  auto begin = [&](BigramPolicy& policy, double temperature, kgrpo_error_code code) {
    GrpoTrainer trainer(host.get(), options, nullptr);
    return ErrorOf(
        [&] {
          trainer.Begin(&BigramPolicy::Api(), policy.get(), {sizeof(kgrpo_trainer_plan), 10, temperature, 6});
        },
        code);
  };
  BigramPolicy policy(kVocabulary);
  EXPECT_THAT(begin(policy, 0, KGRPO_ERROR_INVALID), HasSubstr("temperature is 0.000000, and must be above 0"));
  policy.gradient_tensor(1).dtype.bits = 16;
  EXPECT_EQ(begin(policy, 1, KGRPO_ERROR_UNSUPPORTED),
            "parameter \"bias\" of the policy cannot be trained: its gradient is not float32");
  policy.gradient_tensor(1).dtype.bits = 32;
  int64_t strides[] = {1, 11};
  policy.gradient_tensor(0).strides = strides;
  EXPECT_THAT(begin(policy, 1, KGRPO_ERROR_UNSUPPORTED), HasSubstr("not compact and row-major"));
  policy.gradient_tensor(0).strides = nullptr;
  policy.gradient_tensor(0).device.type = KGRPO_DEVICE_CUDA;
  EXPECT_THAT(begin(policy, 1, KGRPO_ERROR_UNSUPPORTED), HasSubstr("its gradient lies on another device"));

  GrpoTrainer unbegun(host.get(), options, nullptr);
  RecordedSink sink;
  EXPECT_THAT(ErrorOf([&] { unbegun.Update(nullptr, 0, sink.get()); }), HasSubstr("begin comes before"));
  host.get()->world_size = 2;
  EXPECT_THAT(ErrorOf([&] { GrpoTrainer many(host.get(), options, nullptr); }, KGRPO_ERROR_UNSUPPORTED),
              HasSubstr("2 were started"));
}

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
