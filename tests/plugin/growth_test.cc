// Host and plugin may be compiled with different sizes of a struct: neither reads beyond the bytes that the other
// wrote, and of a longer struct each reads the members that it knows.
#include <kgrpo/sdk/generation_queue.h>
#include <kgrpo/sdk/text.h>
#include <kgrpo/support/evaluation_json.h>
#include <kgrpo/support/metric_registry.h>

#include "in_process.h"
#include "plugin/instances.h"
#include "test.h"

namespace kgrpo {
namespace {

using test::AtPageEnd;
using test::Fakes;
using test::InstancesTest;
using test::MessageOf;

// T of a later revision.
template <typename T>
struct Longer {
  T known{};
  double appended[5] = {1, 2, 3, 4, 5};

  Longer() { known.struct_size = sizeof(*this); }
};

kgrpo_evaluation CorrectKernel(double seconds, double speedup = 1) {
  kgrpo_evaluation c{};
  c.struct_size = sizeof(c);
  c.compiled = c.correct = 1;
  c.verdict = Str("correct");
  c.seconds = c.seconds_low = c.seconds_high = seconds;
  c.speedup = speedup;
  return c;
}

// ---- a host of a later revision -----------------------------------------------------------------

// Samples cross as pointers, so a plugin that knows shorter ones finds each of them.
TEST_F(InstancesTest, ATrainerTakesSamplesThatAreLongerThanItKnows) {
  Policy policy(Fakes().Table<kgrpo_policy_interface>(Role::kPolicy), host_, {{"model", "random"}});
  const auto* table = Fakes().Table<kgrpo_trainer_interface>(Role::kTrainer);
  Trainer trainer(table, host_, {{"learning_rate", 10.0}});
  Longer<kgrpo_trainer_plan> plan;
  trainer.Begin(policy, plan.known);
  const int32_t ids[] = {'a', 'b', 'c'};
  Longer<kgrpo_sample> samples[3];
  const kgrpo_sample* pointers[3];
  for (size_t i = 0; i < 3; ++i) {
    kgrpo_sample& sample = samples[i].known;
    sample.prompt_ids = ids;
    sample.prompt_size = 1;
    sample.completion_ids = &ids[i];
    sample.completion_size = 1;
    sample.reward = static_cast<double>(i);
    pointers[i] = &sample;
  }
  struct Told {
    std::vector<double> advantages;
  } told;
  const kgrpo_update_sink sink = {&told, [](void*, kgrpo_metric) {}, nullptr,
                                  [](void* context, const kgrpo_sample_outcome* outcome) {
                                    static_cast<Told*>(context)->advantages.push_back(outcome->advantage);
                                  }};
  Check(table->update(trainer.raw(), pointers, 3, sink));
  EXPECT_EQ(told.advantages, (std::vector<double>{0, 1, 2}));
  const std::vector<kgrpo_sequence> sequences = {{ids, 1, &ids[0], 1}, {ids, 1, &ids[2], 1}};
  const std::vector<float> logprobs = policy.LogProbabilities(sequences);
  EXPECT_LT(logprobs[0], logprobs[1]);
}

TEST_F(InstancesTest, ARewardTakesAHistoryThatIsLongerThanItKnows) {
  // Pays for the sum of the run times in the history: what an array that is indexed in place would get wrong.
  const kgrpo_reward_interface table = {
      sizeof(kgrpo_reward_interface),
      nullptr,
      [](const kgrpo_host*, kgrpo_str, kgrpo_reward** out) -> kgrpo_error* {
        *out = reinterpret_cast<kgrpo_reward*>(1);
        return nullptr;
      },
      [](kgrpo_reward*) {},
      [](const kgrpo_reward*, const kgrpo_reward_request* request, kgrpo_metric_sink, double* score) -> kgrpo_error* {
        *score = 0;
        for (uint32_t i = 0; i < request->round; ++i) {
          if (request->history[i] != nullptr) *score += request->history[i]->seconds;
        }
        return nullptr;
      },
      nullptr,
      /*get_extension=*/nullptr};
  Longer<kgrpo_evaluation> first, third;
  first.known.seconds = 1.5;
  third.known.seconds = 4;
  const kgrpo_evaluation* history[] = {&first.known, nullptr, &third.known};
  Longer<kgrpo_reward_request> request;
  request.known.round = 3;
  request.known.history = history;
  EXPECT_EQ(Reward(&table, host_, {}).Score(request.known).score, 5.5);
}

TEST_F(InstancesTest, APolicyTakesRequestsThatAreLongerThanItKnows) {
  const auto* table = Fakes().Table<kgrpo_policy_interface>(Role::kPolicy);
  Policy policy(table, host_, {{"model", "random"}});
  const int32_t prompt = 1;
  Longer<kgrpo_sampling> sampling;
  sampling.known.max_new_tokens = 4;
  sampling.known.temperature = 1;
  sampling.known.top_p = 1;
  struct Collected {
    std::mutex mutex;
    std::condition_variable changed;
    size_t ended = 0;
  } collected;
  Longer<kgrpo_generate_request> requests[2];
  const kgrpo_generate_request* pointers[2];
  for (size_t i = 0; i < 2; ++i) {
    kgrpo_generate_request& request = requests[i].known;
    request.prompt_ids = &prompt;
    request.prompt_size = 1;
    request.seed = i;
    request.sampling = &sampling.known;
    request.done = {&collected, [](void* context, const kgrpo_completion* completion, kgrpo_error* error) {
                      auto* self = static_cast<Collected*>(context);
                      const std::lock_guard lock(self->mutex);
                      EXPECT_EQ(error, nullptr);
                      EXPECT_GE(completion->size, 1U);
                      ++self->ended;
                      self->changed.notify_one();
                    }};
    pointers[i] = &request;
  }
  Check(table->generate(policy.raw(), pointers, 2));
  std::unique_lock lock(collected.mutex);
  EXPECT_TRUE(collected.changed.wait_for(lock, std::chrono::seconds(30), [&] { return collected.ended == 2; }));
}

// ---- a plugin of a later revision, and one of the first -----------------------------------------

TEST(Growth, WhatIsLongerIsReadAsFarAsItIsKnown) {
  Longer<kgrpo_evaluation> evaluation;
  evaluation.known = CorrectKernel(2);
  evaluation.known.struct_size = sizeof evaluation;
  EXPECT_EQ(Evaluation::FromC(evaluation.known).seconds, 2);
  Longer<kgrpo_coder_answer> answer;
  answer.known.outcome = KGRPO_CODER_UNCLEAR;
  answer.known.message = Str("which loop?");
  EXPECT_EQ(CoderAnswer::FromC(answer.known).message, "which loop?");
}

TEST(Growth, RemarksOfAnySizeAreReadOneByOne) {
  Longer<kgrpo_remark> longer;
  longer.known = {sizeof longer, 3, Str("Memory"), Str("bound by"), Str("DRAM"), 0.5};
  const AtPageEnd first_release(kgrpo_remark{0, 7, Str("Memory"), Str(""), Str("L2"), 0}, KGRPO_REMARK_SIZE_1);
  const kgrpo_remark* const remarks[] = {&longer.known, first_release.get()};
  kgrpo_evaluation evaluation = CorrectKernel(2);
  evaluation.remarks = remarks;
  evaluation.remark_count = 2;
  EXPECT_EQ(Evaluation::FromC(evaluation).remarks,
            (std::vector<Remark>{{"Memory", "bound by", "DRAM", 3, 0.5}, {"Memory", "", "L2", 7, 0}}));
  longer.known.struct_size = KGRPO_REMARK_SIZE_1 - 1;
  EXPECT_THAT(MessageOf([&] { Evaluation::FromC(evaluation); }), HasSubstr("kgrpo_remark with struct_size"));
}

TEST(Metrics, AnIntervalOfZeroIsKnown) {
  const std::vector<Metric> metrics = {{"known", 0, 0, 0}, {"unknown", 0}};
  EXPECT_EQ(MetricsJson(metrics).dump(), R"({"known":[0.0,0.0,0.0],"unknown":0.0})");
  EXPECT_EQ(MetricsFrom(MetricsJson(metrics)), metrics);
  EXPECT_EQ(Metric::FromC(Measured("unknown", 0)), metrics[1]);
  EXPECT_FALSE(metrics[0] == Metric({"known", 0}));
}

// To read beyond what 1.0 had is to crash.
TEST(Growth, WhatTheFirstReleaseWroteIsReadUpToItsEnd) {
  const AtPageEnd evaluation(CorrectKernel(2), KGRPO_EVALUATION_SIZE_1);
  EXPECT_EQ(Evaluation::FromC(*evaluation).seconds, 2);

  kgrpo_coder_answer made{};
  made.outcome = KGRPO_CODER_NO_CODE;
  made.estimated = 1;
  const AtPageEnd answer(made, KGRPO_CODER_ANSWER_SIZE_1);
  EXPECT_TRUE(CoderAnswer::FromC(*answer).estimated);

  const AtPageEnd completion(kgrpo_completion{0, KGRPO_FINISH_STOP, nullptr, nullptr, 0, Str("text")},
                             KGRPO_COMPLETION_SIZE_1);
  EXPECT_EQ(Completion::FromC(*completion).text, "text");

  kgrpo_metric_declaration declared{};
  declared.name = Str("registers");
  declared.combination = KGRPO_METRIC_SUM;
  MetricRegistry registry;
  registry.Declare(*AtPageEnd(declared, KGRPO_METRIC_DECLARATION_SIZE_1));
  EXPECT_EQ(registry.Find("registers")->combination, KGRPO_METRIC_SUM);
}

TEST(Growth, AShorterSamplingIsCopiedUpToItsEnd) {
  const AtPageEnd sampling(kgrpo_sampling{0, 4, 0.5, 3, 0.9, 0.1}, KGRPO_SAMPLING_SIZE_1);
  kgrpo_generate_request request{};
  const int32_t prompt = 1;
  request.prompt_ids = &prompt;
  request.prompt_size = 1;
  request.sampling = sampling.get();
  request.done.done = [](void*, const kgrpo_completion*, kgrpo_error* error) { error->release(error); };
  const AtPageEnd at_end(request, KGRPO_GENERATE_REQUEST_SIZE_1);
  PendingCompletion pending(*at_end);
  EXPECT_EQ(pending.sampling().min_p, 0.1);
  EXPECT_EQ(pending.sampling().max_new_tokens, 4U);
}

TEST_F(InstancesTest, APluginOfTheFirstReleaseIsAskedForNothingLater) {
  const AtPageEnd table(*Fakes().Table<kgrpo_reward_interface>(Role::kReward), KGRPO_REWARD_INTERFACE_SIZE_1);
  const kgrpo_evaluation baseline = CorrectKernel(2), candidate = CorrectKernel(1, 2);
  kgrpo_reward_request request{};
  request.struct_size = sizeof(request);
  request.baseline = &baseline;
  request.candidate = &candidate;
  Reward reward(table.get(), host_, {{"correct", 0.5}});
  EXPECT_EQ(reward.Score(request).score, 2.5);
  EXPECT_EQ(reward.Idle(request), 0);
}

TEST(Growth, WhatIsShorterThanTheFirstReleaseIsRefused) {
  kgrpo_evaluation evaluation = CorrectKernel(2);
  evaluation.struct_size = KGRPO_EVALUATION_SIZE_1 - 1;
  EXPECT_EQ(MessageOf([&] { Evaluation::FromC(evaluation); }),
            "the plugin delivered a kgrpo_evaluation with struct_size 151, below 152: it must set struct_size to "
            "sizeof(kgrpo_evaluation)");
  kgrpo_coder_answer answer{};
  answer.struct_size = KGRPO_CODER_ANSWER_SIZE_1 - 1;
  EXPECT_THAT(MessageOf([&] { CoderAnswer::FromC(answer); }), HasSubstr("struct_size 115, below 116"));
  kgrpo_metric_declaration declaration{};
  MetricRegistry registry;
  EXPECT_THAT(MessageOf([&] { registry.Declare(declaration); }), HasSubstr("struct_size is too small"));
}

}  // namespace
}  // namespace kgrpo
