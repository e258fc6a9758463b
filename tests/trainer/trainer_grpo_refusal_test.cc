// trainer_grpo as a whole: skipped steps and refusals.
#include "grpo_bench.h"

#include "test.h"

namespace kgrpo::grpo {
namespace {

using kgrpo::testing::BigramPolicy;
using kgrpo::testing::FakeHost;
using kgrpo::testing::OptionsJson;
using kgrpo::testing::RecordedSink;
using ::testing::Contains;

TEST(TrainerGrpo, ANonFiniteStepIsSkippedAndCounted) {
  for (bool in_gradient : {false, true}) {
    SCOPED_TRACE(in_gradient);
    Bench bench({{"learning_rate", 1e-2}, {"ppo_epochs", 1}, {"beta", 0.0}});  // three windows
    const Batch batch(bench.policy, 10, 6);
    if (in_gradient) {
      bench.policy.poison_gradient = 1;  // in the second window
    } else {
      bench.policy.poison_forwards = {1};
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
  bench.policy.fail_forward = 3;  // after the reference and two steps
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
  EXPECT_EQ(refused([](Batch& b) { b.logprobs[2][0] = 0.25f; }),
            "sample 2: the behaviour log-probability of token 0 of its completion is 0.250000; a log-probability is "
            "finite and at most 0");
  EXPECT_EQ(
      refused([](Batch& b) { b.samples[1].logprobs = nullptr; }),
      "sample 1: it has no behaviour log-probabilities, which old_logprobs: behaviour needs; old_logprobs: recomputed "
      "does without");
  EXPECT_EQ(bench.Values(), before);
  EXPECT_EQ(bench.policy.forwards, 0);
}

TEST(TrainerGrpo, WhatCannotBeTrainedIsRefusedWhenTheStageBegins) {
  FakeHost host;
  const GrpoOptions options = ReadGrpoOptions(OptionsJson(GrpoOptionsSchema()));
  auto begin = [&](BigramPolicy& policy, double temperature, kgrpo_error_code code) {
    GrpoTrainer trainer(host.get(), options, nullptr);
    return ErrorOf(
        [&] {
          trainer.Begin(&BigramPolicy::Api(), policy.get(),
                        {sizeof(kgrpo_trainer_plan), 10, temperature, 6, 0, 0, 0, 0, 0, 0});
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
}

}  // namespace
}  // namespace kgrpo::grpo
