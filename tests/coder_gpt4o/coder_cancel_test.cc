// coder_gpt4o/coder.h: from request to answer, with a scripted service: cancelling.
#include "coder_gpt4o/coder.h"

#include "bench.h"
#include "test.h"

namespace kgrpo::coder_gpt4o {
namespace {

TEST(CoderTest, CancellingAnswersEverything) {
  const auto folder = TestFolder("cancelled");
  Bench bench({{"mode", "cache"}, {"prices", kPrices}, {"max_cost", 0.06}, {"continuations", 3}},
              RecordedIn(folder, folder / "cache.sqlite"));
  std::deque<Asked> asked;
  std::deque<Answered> answered(4);
  for (const char* words : {"a", "a", "b", "b"}) asked.emplace_back(words, asked.size());
  for (size_t i = 0; i < 4; ++i) bench.Ask(asked[i], answered[i]);
  EXPECT_EQ(bench.service.sent, 1u);  // the others are held for their cost
  bench.coder.Cancel();
  EXPECT_EQ(bench.service.cancels, 1u);
  for (const Answered& one : answered) {
    EXPECT_EQ(one.calls, 1);
    EXPECT_EQ(one.outcome, KGRPO_CODER_FAILED);
    EXPECT_EQ(one.message, "cancelled");
  }
  // It goes on being of use.
  Answered later;
  bench.Ask(asked[2], later);
  bench.service.Answer(AnswerOf(Fenced(kKernelC)));
  EXPECT_EQ(later.source, kKernelC);
}

TEST(CoderTest, NoRequestSlipsPastTheWordToCancel) {
  const auto folder = TestFolder("slips");
  Bench bench({{"mode", "cache"}}, RecordedIn(folder, folder / "cache.sqlite"));
  // It comes while the request looks into the cache, before anything is sent.
  bench.on_metric = [&] { bench.coder.Cancel(); };
  Asked asked;
  Answered answered, later;
  bench.Ask(asked, answered);
  EXPECT_EQ(bench.service.sent, 0u);
  EXPECT_EQ(answered.calls, 1);
  EXPECT_EQ(answered.outcome, KGRPO_CODER_FAILED);
  EXPECT_EQ(answered.message, "cancelled");
  bench.Ask(asked, later);
  EXPECT_EQ(bench.service.sent, 1u);
  bench.service.Answer(AnswerOf(Fenced(kKernelC)));
  EXPECT_EQ(later.source, kKernelC);
}

TEST(CoderTest, WhatIsCancelledIsNotContinued) {
  Bench bench(json{{"continuations", 3}});
  bench.service.calls.clear();
  Asked asked;
  Answered answered;
  bench.Ask(asked, answered);
  // The answer had come when the word to stop did.
  const ScriptedService::Call call = bench.service.calls.front();
  bench.service.calls.clear();
  bench.coder.Cancel();
  call.done(AnswerOf("```cuda\nvoid", "length"));
  EXPECT_EQ(answered.calls, 1);
  EXPECT_EQ(answered.outcome, KGRPO_CODER_FAILED);
  EXPECT_EQ(bench.service.sent, 1u);
}

}  // namespace
}  // namespace kgrpo::coder_gpt4o
