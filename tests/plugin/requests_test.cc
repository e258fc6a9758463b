// Requests in flight: detects a policy or coder that ends a request twice, late, or after refusing it.
#include <kgrpo/sdk/text.h>

#include "in_process.h"
#include "plugin/instances.h"
#include "test.h"

namespace kgrpo {
namespace {

using test::Fakes;
using test::InstancesTest;
using test::MessageOf;

const int32_t kPrompt[] = {1};
const kgrpo_sampling kFour = {sizeof(kgrpo_sampling), 4, 1.0, 0, 1.0, 0.0};

// ---- the policy of the fixtures -----------------------------------------------------------------

class QueueTest : public InstancesTest {
 protected:
  Policy policy_{Fakes().Table<kgrpo_policy_interface>(Role::kPolicy), host_, {{"model", "random"}}};
};

TEST_F(QueueTest, EachRequestEndsOnceWhateverTheThreads) {
  constexpr size_t kThreads = 4, kEach = 50;
  std::vector<std::atomic<int>> ended(kThreads * kEach);
  std::atomic<size_t> told = 0;
  std::vector<std::thread> threads;
  for (size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::vector<Policy::GenerateRequest> requests;
      for (size_t i = 0; i < kEach; ++i) requests.push_back({kPrompt, t * kEach + i});
      policy_.Submit(requests, kFour, [&, t](size_t request, std::optional<Completion> completion, std::exception_ptr) {
        if (completion) ++ended[t * kEach + request];
        ++told;
      });
      if (t == 0) policy_.Generate(std::vector<Policy::GenerateRequest>(3, {kPrompt, 1}), kFour);
    });
  }
  for (std::thread& thread : threads) thread.join();
  while (told < kThreads * kEach) std::this_thread::yield();  // a batch may end in any order
  for (const auto& count : ended) EXPECT_EQ(count, 1);
}

TEST_F(QueueTest, ACompletionDependsOnItsSeedAlone) {
  std::vector<Policy::GenerateRequest> together;
  for (uint64_t seed = 0; seed < 8; ++seed) together.push_back({kPrompt, seed});
  const std::vector<Completion> all = policy_.Generate(together, kFour);
  for (uint64_t seed = 0; seed < 8; ++seed) {
    const Policy::GenerateRequest alone = {kPrompt, seed};
    EXPECT_EQ(policy_.Generate({&alone, 1}, kFour)[0].ids, all[seed].ids);
  }
}

TEST_F(QueueTest, ARefusalAcceptsNone) {
  const std::vector<int32_t> long_prompt(5000, 1);
  const Policy::GenerateRequest requests[] = {{kPrompt, 1}, {long_prompt, 2}};
  EXPECT_EQ(MessageOf([&] { policy_.Submit(requests, kFour, [](size_t, auto, auto) { FAIL(); }); }),
            "request 1: a prompt of 5000 tokens leaves no room");
}

// ---- policies that break the contract -----------------------------------------------------------

std::vector<kgrpo_completion_done> kept;  // what the policies below were asked for

kgrpo_completion Ended() {
  static const int32_t id = 7;
  static const float logprob = -1;
  return {sizeof(kgrpo_completion), KGRPO_FINISH_LENGTH, &id, &logprob, 1, {}};
}

class BrokenQueueTest : public QueueTest {
 protected:
  BrokenQueueTest() { kept.clear(); }

  // The fixture's policy with another generate.
  Policy With(kgrpo_error* (*generate)(kgrpo_policy*, const kgrpo_generate_request* const*, size_t)) {
    table_ = *Fakes().Table<kgrpo_policy_interface>(Role::kPolicy);
    table_.generate = generate;
    return Policy(&table_, host_, {{"model", "random"}});
  }

  kgrpo_policy_interface table_{};
};

kgrpo_error* KeepAll(kgrpo_policy*, const kgrpo_generate_request* const* requests, size_t count) {
  for (size_t i = 0; i < count; ++i) kept.push_back(requests[i]->done);
  return nullptr;
}

TEST_F(BrokenQueueTest, ASecondEndIsIgnoredAndTheNextRequestRefused) {
  Policy policy = With(KeepAll);
  int ended = 0;
  const Policy::GenerateRequest requests[] = {{kPrompt, 1}, {kPrompt, 2}};
  policy.Submit(requests, kFour, [&](size_t, std::optional<Completion>, std::exception_ptr) { ++ended; });
  const kgrpo_completion completion = Ended();
  kept[0].done(kept[0].context, &completion, nullptr);
  kept[0].done(kept[0].context, &completion, nullptr);
  kept[0].done(kept[0].context, nullptr, MakeError(KGRPO_ERROR_INTERNAL, "released by the host"));
  EXPECT_EQ(ended, 1);
  kept[1].done(kept[1].context, &completion, nullptr);
  EXPECT_EQ(ended, 2) << "the other request is as it was";
  EXPECT_EQ(MessageOf([&] { policy.Generate(requests, kFour); }),
            "policy ended a request twice: a fault of that plugin");
}

TEST_F(BrokenQueueTest, AnEndAfterTheInstanceReachesNobody) {
  {
    Policy policy = With(KeepAll);
    const Policy::GenerateRequest request = {kPrompt, 1};
    policy.Submit({&request, 1}, kFour, [](size_t, auto, auto) {});
    const kgrpo_completion completion = Ended();
    kept[0].done(kept[0].context, &completion, nullptr);
  }
  const kgrpo_completion completion = Ended();
  kept[0].done(kept[0].context, &completion, nullptr);
  kept[0].done(nullptr, &completion, nullptr);
}

TEST_F(BrokenQueueTest, ARequestThatWasEndedAndRefusedHasEnded) {
  Policy policy = With([](kgrpo_policy*, const kgrpo_generate_request* const* requests, size_t) {
    const kgrpo_completion completion = Ended();
    requests[0]->done.done(requests[0]->done.context, &completion, nullptr);
    return MakeError(KGRPO_ERROR_UNAVAILABLE, "no room");
  });
  int ended = 0;
  const Policy::GenerateRequest request = {kPrompt, 1};
  EXPECT_EQ(MessageOf([&] {
              policy.Submit({&request, 1}, kFour, [&](size_t, auto, auto) { ++ended; });
            }),
            "policy ended a request that it had refused: a fault of that plugin");
  EXPECT_EQ(ended, 1);
}

// Runs one request that is ended by `end`, and returns its error.
std::string EndedBy(Policy policy, const std::function<void(kgrpo_completion_done)>& end) {
  std::promise<std::string> said;
  const Policy::GenerateRequest request = {kPrompt, 1};
  policy.Submit({&request, 1}, kFour, [&](size_t, std::optional<Completion> completion, std::exception_ptr error) {
    said.set_value(completion ? "a completion" : MessageOf([&] { std::rethrow_exception(error); }));
  });
  end(kept.back());
  return said.get_future().get();
}

TEST_F(BrokenQueueTest, WhatIsNoCompletionIsAnError) {
  const auto put = [](kgrpo_completion completion) {
    return [completion](kgrpo_completion_done done) { done.done(done.context, &completion, nullptr); };
  };
  kgrpo_completion completion = Ended();
  EXPECT_EQ(EndedBy(With(KeepAll), put(completion)), "a completion");
  completion.finish_reason = 9;
  EXPECT_THAT(EndedBy(With(KeepAll), put(completion)), HasSubstr("the unknown finish_reason 9"));
  completion = Ended();
  completion.ids = nullptr;
  EXPECT_EQ(EndedBy(With(KeepAll), put(completion)), "the plugin delivered a count of 1 token ids with a NULL array");
  completion = Ended();
  const float nan = std::nanf("");
  completion.logprobs = &nan;
  EXPECT_EQ(EndedBy(With(KeepAll), put(completion)), "the policy reported the log-probability nan for a sampled token");
  completion = Ended();
  completion.struct_size = 8;
  EXPECT_THAT(EndedBy(With(KeepAll), put(completion)), HasSubstr("kgrpo_completion with struct_size 8, below 48"));
  EXPECT_EQ(EndedBy(With(KeepAll), [](kgrpo_completion_done done) { done.done(done.context, nullptr, nullptr); }),
            "the policy delivered neither a completion nor an error");
  EXPECT_EQ(EndedBy(With(KeepAll),
                    [](kgrpo_completion_done done) {
                      const kgrpo_completion both = Ended();
                      done.done(done.context, &both, MakeError(KGRPO_ERROR_INTERNAL, "and an error"));
                    }),
            "the policy delivered both a completion and an error");
  EXPECT_EQ(EndedBy(With(KeepAll),
                    [](kgrpo_completion_done done) {
                      done.done(done.context, nullptr, MakeError(KGRPO_ERROR_CANCELLED, "cancelled"));
                    }),
            "cancelled");
}

TEST_F(BrokenQueueTest, CancelEndsWhatIsInFlightBeforeThePolicyGoes) {
  table_ = *Fakes().Table<kgrpo_policy_interface>(Role::kPolicy);
  table_.generate = KeepAll;
  table_.cancel = [](kgrpo_policy*) {
    for (const kgrpo_completion_done& done : kept)
      done.done(done.context, nullptr, MakeError(KGRPO_ERROR_CANCELLED, "cancelled"));
  };
  int cancelled = 0;
  {
    Policy policy(&table_, host_, {{"model", "random"}});
    const std::vector<Policy::GenerateRequest> requests(3, {kPrompt, 1});
    policy.Submit(requests, kFour, [&](size_t, std::optional<Completion> completion, std::exception_ptr) {
      if (!completion) ++cancelled;
    });
  }
  EXPECT_EQ(cancelled, 3);
}

}  // namespace
}  // namespace kgrpo
