// coder_gpt4o/coder.h: from request to answer, with a scripted service: cancelling.
#include "coder_gpt4o/coder.h"

#include "bench.h"
#include "test.h"

namespace kgrpo::coder_gpt4o {
namespace {

TEST(CoderTest, CancellingAnswersEverything) {
  const auto folder = TestFolder("cancelled");
  Bench bench({{"mode", "cache"}, {"prices", kPrices}, {"max_cost", 0.06}},
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

}  // namespace
}  // namespace kgrpo::coder_gpt4o
