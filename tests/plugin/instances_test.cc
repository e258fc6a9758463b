// The C++ wrappers of plugin instances: the results that they collect, and violations of the contract that they refuse.
#include "plugin/instances.h"

#include <kgrpo/sdk/text.h>

#include "base/directories.h"
#include "in_process.h"
#include "test.h"

// Instances of the tables below.
struct kgrpo_reward {};
struct kgrpo_coder {
  std::vector<std::pair<kgrpo_coder_done, std::thread>> pending;
};

namespace kgrpo {
namespace {

using test::Fakes;
using test::InstancesTest;
using test::MessageOf;

TEST_F(InstancesTest, PolicyCollectsWhatIsPushed) {
  Policy policy(Fakes().Table<kgrpo_policy_interface>(Role::kPolicy), host_, {{"model", "random"}});
  EXPECT_EQ(View(policy.info().architecture), "Bytes");
  EXPECT_THAT(policy.Encode("ab"), ElementsAre('a', 'b'));
  const ChatMessage messages[] = {{"user", "hi"}};
  EXPECT_EQ(policy.RenderChat(messages), "<user>hi\n<assistant>");
  EXPECT_EQ(policy.Decode(policy.EncodeChat(messages, {false, std::nullopt, {}})), "<user>hi\n");

  const std::vector<int32_t> prompt = {1};
  std::vector<Policy::GenerateRequest> requests;
  for (uint64_t seed = 0; seed < 5; ++seed) requests.push_back({prompt, seed});
  kgrpo_sampling sampling{sizeof(kgrpo_sampling), 7, 1.0, 0, 1.0, 0.0};
  const std::vector<Completion> completions = policy.Generate(requests, sampling);
  ASSERT_EQ(completions.size(), 5U);
  for (size_t i = 0; i < completions.size(); ++i) {
    EXPECT_EQ(completions[i].request, i) << "in the order of the requests";
    const std::vector<kgrpo_sequence> one = {{prompt.data(), 1, completions[i].ids.data(), completions[i].ids.size()}};
    EXPECT_EQ(policy.LogProbabilities(one), completions[i].logprobs);
  }
}

TEST_F(InstancesTest, CreateErrorsKeepTheirCode) {
  EXPECT_EQ(MessageOf(
                [&] {
                  Policy policy(Fakes().Table<kgrpo_policy_interface>(Role::kPolicy), host_, {{"model", "/nowhere"}});
                },
                KGRPO_ERROR_NOT_FOUND),
            "no model in /nowhere/logits.bin");
}

TEST_F(InstancesTest, TrainerTrainsAndItsStateGoesThroughStreams) {
  Policy policy(Fakes().Table<kgrpo_policy_interface>(Role::kPolicy), host_, {{"model", "random"}});
  Trainer trainer(Fakes().Table<kgrpo_trainer_interface>(Role::kTrainer), host_, {{"learning_rate", 10.0}});
  EXPECT_EQ(trainer.source(), KGRPO_TRAINER_ROLLOUTS);
  EXPECT_TRUE(trainer.needs_reference());
  kgrpo_trainer_plan plan{sizeof(kgrpo_trainer_plan), 1, 1.0, 4, 0, 0, 0, 0, 0, 0};
  trainer.Begin(policy, plan);
  const int32_t good = 'g', bad = 'b';
  std::vector<kgrpo_sample> samples(2);
  for (kgrpo_sample& sample : samples)
    sample = {.struct_size = sizeof(kgrpo_sample),
              .prompt_ids = &good,
              .prompt_size = 1,
              .completion_ids = &good,
              .logprobs = nullptr,
              .completion_size = 1,
              .reward = 1.0,
              .idle_reward = 0,
              .trajectory = 0,
              .round = 0,
              .rounds = 1,
              .problem = 0,
              .truncated = 0};
  samples[1].completion_ids = &bad;
  samples[1].reward = -1.0;
  const Trainer::Update update = trainer.Train(samples);
  ASSERT_EQ(update.optimizer_steps.size(), 1U);
  EXPECT_EQ(update.optimizer_steps[0][2].name, "grad_norm");
  ASSERT_TRUE(update.samples[1].has_value());
  EXPECT_EQ(update.samples[1]->advantage, -1.0);
  const std::vector<kgrpo_sequence> sequences = {{&good, 1, &good, 1}, {&good, 1, &bad, 1}};
  const std::vector<float> logprobs = policy.LogProbabilities(sequences);
  EXPECT_GT(logprobs[0], logprobs[1]);

  std::stringstream state;
  trainer.SaveState(state);
  EXPECT_EQ(state.str().size(), 8U);
  trainer.LoadState(state);
  std::stringstream cut("abc");
  EXPECT_EQ(MessageOf([&] { trainer.LoadState(cut); }), "the trainer's state is cut short");
}

// A trainer may replace the reference: the host sees that by the table it lends.
TEST_F(InstancesTest, APolicyCountsEveryChangeOfItsReference) {
  const auto* table = Fakes().Table<kgrpo_policy_interface>(Role::kPolicy);
  Policy policy(table, host_, {{"model", "random"}});
  const TemporaryDirectory directory;
  EXPECT_EQ(policy.reference_version(), 0U);
  policy.FreezeReference();
  EXPECT_EQ(policy.reference_version(), 1U);
  Check(policy.trainer_api()->freeze_reference(policy.raw()));
  EXPECT_EQ(policy.reference_version(), 2U);
  policy.Save(KGRPO_POLICY_REFERENCE, directory.path());
  policy.Load(KGRPO_POLICY_CURRENT, directory.path());
  EXPECT_EQ(policy.reference_version(), 2U);
  policy.Load(KGRPO_POLICY_REFERENCE, directory.path());
  EXPECT_EQ(policy.reference_version(), 3U);
  EXPECT_NE(MessageOf([&] { policy.Load(KGRPO_POLICY_REFERENCE, directory.path() / "nothing"); }), "nothing thrown");
  EXPECT_EQ(policy.reference_version(), 3U);

  // Another policy of the same plugin, moved, of version 1.0.
  const test::AtPageEnd<kgrpo_policy_interface> first_revision(*table, KGRPO_POLICY_INTERFACE_SIZE_1);
  Policy made(first_revision.get(), host_, {{"model", "random"}});
  Policy other(std::move(made));
  Check(other.trainer_api()->freeze_reference(other.raw()));
  EXPECT_EQ(other.reference_version(), 1U);
  EXPECT_EQ(policy.reference_version(), 3U);
  EXPECT_EQ(other.trainer_api()->struct_size, KGRPO_POLICY_INTERFACE_SIZE_1);
}

// ---- a reward that breaks the contract ----------------------------------------------------------

kgrpo_reward_interface RewardScoring(kgrpo_error* (*score)(const kgrpo_reward*, const kgrpo_reward_request*,
                                                           kgrpo_metric_sink, double*)) {
  return {sizeof(kgrpo_reward_interface),
          nullptr,
          [](const kgrpo_host*, kgrpo_str, kgrpo_reward** out) -> kgrpo_error* {
            *out = new kgrpo_reward;
            return nullptr;
          },
          [](kgrpo_reward* self) { delete self; },
          score,
          nullptr};
}

TEST_F(InstancesTest, ScoresMustBeFiniteAndSet) {
  const kgrpo_reward_request request{};
  const auto infinite = RewardScoring(
      [](const kgrpo_reward*, const kgrpo_reward_request*, kgrpo_metric_sink, double* score) -> kgrpo_error* {
        *score = std::numeric_limits<double>::infinity();
        return nullptr;
      });
  EXPECT_EQ(MessageOf([&] { Reward(&infinite, host_, {}).Score(request); }),
            "reward: the score is inf: it must be set and finite");
  const auto unset = RewardScoring([](const kgrpo_reward*, const kgrpo_reward_request*, kgrpo_metric_sink,
                                      double*) -> kgrpo_error* { return nullptr; });
  EXPECT_EQ(MessageOf([&] { Reward(&unset, host_, {}).Score(request); }),
            "reward: the score is nan: it must be set and finite");
  const auto fine = RewardScoring(
      [](const kgrpo_reward*, const kgrpo_reward_request*, kgrpo_metric_sink parts, double* score) -> kgrpo_error* {
        *score = 1.5;
        parts.add(parts.context, Measured("base", 1.5));
        return nullptr;
      });
  const Reward reward(&fine, host_, {});
  EXPECT_EQ(reward.Score(request).score, 1.5);
  EXPECT_THAT(reward.Score(request).parts, ElementsAre(Metric{"base", 1.5}));
  EXPECT_EQ(reward.Idle(request), 0.0) << "the table has no idle";
}

TEST_F(InstancesTest, AnObserverIsToldWhatItAsksFor) {
  const TemporaryDirectory directory;
  const std::string file = (directory.path() / "events").string();
  {
    Observer observer(Fakes().Table<kgrpo_observer_interface>(Role::kObserver), host_,
                      {{"file", file}, {"stop_at", 0}, {"fail_at", 2}});
    kgrpo_run_info run{};
    run.struct_size = sizeof(run);
    run.name = Str("quickstart");
    run.steps = 2;
    observer.Begin(run);
    kgrpo_step_event step{};
    step.struct_size = sizeof(step);
    step.step = 1;
    observer.Step(step);
    step.step = 2;
    EXPECT_EQ(MessageOf([&] { observer.Step(step); }), "nobody listens");
    observer.End("failed");
  }
  std::ifstream stream(file);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(stream), {}),
            "begin quickstart after 0 of 2\nstep 1\nstep 2\nend failed\n");

  kgrpo_observer_interface deaf = *Fakes().Table<kgrpo_observer_interface>(Role::kObserver);
  deaf.round = nullptr;
  Observer observer(&deaf, host_, {{"file", file}, {"stop_at", 0}, {"fail_at", 0}});
  observer.Round({});  // nothing is called
}

TEST_F(InstancesTest, TablesOfAnOlderMakeAreRefused) {
  kgrpo_reward_interface table = RewardScoring(nullptr);
  table.struct_size = 8;
  EXPECT_THAT(MessageOf([&] { Reward reward(&table, host_, {}); }), HasSubstr("struct_size 8, below 48"));
}

// ---- a coder that answers from its own threads --------------------------------------------------

const kgrpo_coder_interface kSlowCoder = {
    sizeof(kgrpo_coder_interface),
    nullptr,
    [](const kgrpo_host*, kgrpo_str, kgrpo_coder** out) -> kgrpo_error* {
      *out = new kgrpo_coder;
      return nullptr;
    },
    [](kgrpo_coder* self) {
      for (auto& [done, thread] : self->pending) thread.join();
      delete self;
    },
    [](kgrpo_coder* self, const kgrpo_coder_request* request, kgrpo_coder_done done) -> kgrpo_error* {
      if (View(request->suggestion) == "refuse") return MakeError(KGRPO_ERROR_UNAVAILABLE, "no room");
      self->pending.emplace_back(done, std::thread([done, outcome = request->seed] {
                                   std::this_thread::sleep_for(std::chrono::milliseconds(20));
                                   kgrpo_coder_answer answer{};
                                   answer.struct_size = sizeof(answer);
                                   answer.outcome = static_cast<uint32_t>(outcome);
                                   done.done(done.context, &answer, nullptr);
                                 }));
      return nullptr;
    },
    [](kgrpo_coder*) {},
    nullptr,
    nullptr,
    nullptr,
    nullptr,
    /*get_extension=*/nullptr};

TEST_F(InstancesTest, ACoderMayDescribeItself) {
  EXPECT_EQ(Coder(&kSlowCoder, host_, {}).Describe(), "");
  kgrpo_coder_interface table = kSlowCoder;
  table.describe = [](const kgrpo_coder*, kgrpo_text_sink sink) -> kgrpo_error* {
    sink.put(sink.context, Str("slow, at no cost"));
    return nullptr;
  };
  EXPECT_EQ(Coder(&table, host_, {}).Describe(), "slow, at no cost");
}

TEST_F(InstancesTest, ACoderIsNotDestroyedBeforeItsAnswersCame) {
  std::atomic<int> answered{0};
  kgrpo_coder_request request{};
  request.struct_size = sizeof(request);
  request.seed = KGRPO_CODER_UNCLEAR;
  {
    Coder coder(&kSlowCoder, host_, {});
    for (int i = 0; i < 4; ++i) {
      coder.Implement(request, [&](std::optional<CoderAnswer> answer, std::exception_ptr error) {
        EXPECT_EQ(error, nullptr);
        EXPECT_EQ(answer->outcome, KGRPO_CODER_UNCLEAR);
        ++answered;
      });
    }
  }
  EXPECT_EQ(answered, 4);
}

TEST_F(InstancesTest, ACodersContradictionsAreErrors) {
  Coder coder(&kSlowCoder, host_, {});
  kgrpo_coder_request request{};
  request.struct_size = sizeof(request);
  request.seed = KGRPO_CODER_OK;  // and no source
  std::promise<std::string> said;
  coder.Implement(request, [&](std::optional<CoderAnswer> answer, std::exception_ptr error) {
    EXPECT_FALSE(answer.has_value());
    said.set_value(MessageOf([&] { std::rethrow_exception(error); }));
  });
  EXPECT_EQ(said.get_future().get(), "the coder delivered outcome \"ok\" without a kernel");
  request.suggestion = Str("refuse");
  EXPECT_EQ(MessageOf([&] { coder.Implement(request, [](auto, auto) { FAIL() << "nothing was accepted"; }); }),
            "no room");
  EXPECT_FALSE(coder.has_suggestions());
}

TEST(Evaluation, RefusesContradictions) {
  kgrpo_evaluation c{};
  c.struct_size = sizeof(c);
  c.compiled = c.correct = 1;
  c.verdict = Str("wrong");
  c.seconds = 1;
  EXPECT_THAT(MessageOf([&] { Evaluation::FromC(c); }), HasSubstr("verdict \"wrong\" of a kernel it calls correct"));
  c.verdict = Str("correct");
  c.seconds = 0;
  EXPECT_THAT(MessageOf([&] { Evaluation::FromC(c); }), HasSubstr("run time"));
  c.seconds = 1;
  EXPECT_EQ(Evaluation::FromC(c).verdict, "correct");
  c.struct_size = 20;
  EXPECT_THAT(MessageOf([&] { Evaluation::FromC(c); }), HasSubstr("struct_size 20"));
}

}  // namespace
}  // namespace kgrpo
