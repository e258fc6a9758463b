// coder_gpt4o/coder.h: from request to answer, with a scripted service: outcomes, continuations, money, cancelling.
#include "coder_gpt4o/coder.h"

#include "bench.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kgrpo::coder_gpt4o {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(CoderTest, AsksOnceAndAnswersOnce) {
  Bench bench({{"prices", kPrices}, {"seed", 7}, {"extra_body", {{"top_p", 0.5}}}});
  Asked asked;
  Answered answered;
  bench.Ask(asked, answered);
  ASSERT_EQ(bench.service.calls.size(), 1u);
  const json body = bench.service.calls[0].body;
  EXPECT_EQ(body["model"], "gpt-4o");
  EXPECT_EQ(body["temperature"], 0.0);
  EXPECT_EQ(body["max_tokens"], 4096);
  EXPECT_EQ(body["seed"], 7);
  EXPECT_EQ(body["top_p"], 0.5);
  EXPECT_THAT(body["messages"][1]["content"].get<std::string>(), HasSubstr("use one warp"));
  EXPECT_FALSE(body.contains("stream"));
  EXPECT_EQ(body.dump().find("secret-key"), std::string::npos);
  EXPECT_GT(bench.service.calls[0].tokens_at_most, 4096u + 300u);
  EXPECT_EQ(answered.calls, 0);
  bench.service.Answer(AnswerOf(Fenced(kKernelC)));
  EXPECT_EQ(answered.calls, 1);
  EXPECT_EQ(answered.outcome, KGRPO_CODER_OK);
  EXPECT_EQ(answered.source, kKernelC);
  EXPECT_EQ(answered.message, "");
  EXPECT_EQ(answered.text, Fenced(kKernelC));
  EXPECT_EQ(answered.prompt_tokens, 1000u);
  EXPECT_EQ(answered.completion_tokens, 200u);
  EXPECT_DOUBLE_EQ(answered.cost, 0.0045);
  EXPECT_EQ(answered.attempts, 1u);
  EXPECT_THAT(bench.metrics, testing::Contains(std::pair<std::string, double>("coder/attempts", 1)));
}

TEST(CoderTest, WhatIsNotWantedIsNotSent) {
  Bench bench({{"temperature", nullptr}, {"model", "o3"}});
  Asked asked;
  Answered answered;
  bench.Ask(asked, answered);
  const json body = bench.service.calls[0].body;
  EXPECT_FALSE(body.contains("temperature") || body.contains("seed") || body.contains("max_tokens"));
  EXPECT_EQ(body["max_completion_tokens"], 4096);
  bench.service.Answer(AnswerOf(""));
}

TEST(CoderTest, ASeedOfEachSample) {
  Bench bench(json{{"seed", "sample"}});
  Asked asked("a", 0x123456789abcdef0);
  Answered answered;
  bench.Ask(asked, answered);
  EXPECT_EQ(bench.service.calls[0].body["seed"], 0x1abcdef0);
  bench.service.Answer(AnswerOf(""));
}

TEST(CoderTest, DescribesTheRequestAsItIsSent) {
  Bench bench;
  Asked asked;
  asked.suggestion = "not \xff utf-8";
  Answered answered;
  bench.Ask(asked, answered);
  const std::string described = bench.coder.Describe(asked.request());
  json body = bench.service.calls[0].body;
  for (const json& message : body["messages"])
    EXPECT_THAT(described,
                HasSubstr("[" + message["role"].get<std::string>() + "]\n" + message["content"].get<std::string>()));
  body.erase("messages");
  EXPECT_THAT(described, HasSubstr("POST to https://api.openai.com/v1\n" + body.dump() + "\n"));
  EXPECT_EQ(described.find("secret-key"), std::string::npos);
  bench.service.Answer(AnswerOf(""));
}

TEST(CoderTest, EveryEndHasItsOutcome) {
  Bench bench;
  Asked asked;
  const auto outcome = [&](Completion completion) {
    Answered answered;
    bench.Ask(asked, answered);
    bench.service.Answer(std::move(completion));
    EXPECT_EQ(answered.calls, 1);
    EXPECT_EQ(answered.source, "");
    EXPECT_NE(answered.message, "");
    return answered.outcome;
  };
  EXPECT_EQ(outcome(Failed()), KGRPO_CODER_FAILED);
  EXPECT_EQ(outcome(AnswerOf("", "content_filter")), KGRPO_CODER_REFUSED);
  EXPECT_EQ(outcome(AnswerOf("```cuda\nvoid la", "length")), KGRPO_CODER_TRUNCATED);
  EXPECT_EQ(outcome(AnswerOf("no idea")), KGRPO_CODER_NO_CODE);
  EXPECT_EQ(outcome(AnswerOf(Fenced(kKernelB))), KGRPO_CODER_NOT_APPLICABLE);
  EXPECT_EQ(outcome(AnswerOf("UNCLEAR: what?")), KGRPO_CODER_UNCLEAR);
}

TEST(CoderTest, WhatNoRetryMendsEndsTheRun) {
  Bench bench;
  Asked asked;
  Answered answered;
  bench.Ask(asked, answered);
  Completion completion;
  completion.outcome = Completion::Outcome::kFatal;
  completion.message = "401: the key is wrong";
  bench.service.Answer(completion);
  ASSERT_TRUE(answered.error);
  EXPECT_EQ(answered.error->code(), KGRPO_ERROR_UNAVAILABLE);
  EXPECT_STREQ(answered.error->what(), "401: the key is wrong");
}

TEST(CoderTest, ContinuesWhatWasCutOff) {
  Bench bench({{"continuations", 2}, {"prices", kPrices}});
  const std::string whole = Fenced(kKernelC);
  Asked asked;
  Answered answered;
  bench.Ask(asked, answered);
  bench.service.Answer(AnswerOf(whole.substr(0, 50), "length"));
  ASSERT_EQ(bench.service.calls.size(), 1u);
  json messages = bench.service.calls[0].body["messages"];
  ASSERT_EQ(messages.size(), 4u);
  EXPECT_EQ(messages[2]["role"], "assistant");
  EXPECT_EQ(messages[2]["content"], whole.substr(0, 50));
  bench.service.Answer(AnswerOf(whole.substr(50, 30), "length"));
  messages = bench.service.calls[0].body["messages"];
  ASSERT_EQ(messages.size(), 4u);
  EXPECT_EQ(messages[2]["content"], whole.substr(0, 80));
  EXPECT_EQ(answered.calls, 0);
  bench.service.Answer(AnswerOf(whole.substr(80)));
  EXPECT_EQ(answered.source, kKernelC);
  EXPECT_EQ(answered.completion_tokens, 600u);
  EXPECT_EQ(answered.attempts, 3u);
  EXPECT_DOUBLE_EQ(answered.cost, 3 * 0.0045);
}

TEST(CoderTest, ContinuationsEnd) {
  Bench bench(json{{"continuations", 1}});
  Asked asked;
  Answered answered;
  bench.Ask(asked, answered);
  bench.service.Answer(AnswerOf("```cuda\nvoid", "length"));
  bench.service.Answer(AnswerOf(" more", "length"));
  EXPECT_EQ(answered.outcome, KGRPO_CODER_TRUNCATED);
  // Where nothing but hidden thoughts came, there is nothing to continue.
  Answered empty;
  bench.Ask(asked, empty);
  bench.service.Answer(AnswerOf("", "length"));
  EXPECT_EQ(empty.outcome, KGRPO_CODER_TRUNCATED);
  EXPECT_EQ(bench.service.sent, 3u);
}

TEST(CoderTest, EstimatesWhatTheServiceDoesNotSay) {
  Bench bench(json{{"prices", kPrices}});
  Asked asked;
  for (int i = 0; i < 2; ++i) {
    Answered answered;
    bench.Ask(asked, answered);
    Completion completion = AnswerOf(std::string(3000, 'x'));
    completion.usage_known = false;
    completion.prompt_tokens = completion.completion_tokens = 0;
    bench.service.Answer(completion);
    EXPECT_EQ(answered.completion_tokens, 1001u);
    EXPECT_GT(answered.prompt_tokens, 300u);
    EXPECT_GT(answered.cost, 0.01);
  }
  EXPECT_THAT(bench.warnings, ElementsAre(HasSubstr("estimated")));
}

// ---- money ---------------------------------------------------------------------------------------

TEST(CoderTest, HoldsCallsBackUntilTheirCostFitsAndThenStops) {
  // A call can cost about $0.044 and costs $0.0045: the limit has room for two at once, and for seven in all.
  Bench bench({{"prices", kPrices}, {"max_cost", 0.09 + 0.0001}});
  std::deque<Asked> asked(40);
  std::deque<Answered> answered(40);
  for (size_t i = 0; i < 40; ++i) bench.Ask(asked[i], answered[i]);
  EXPECT_EQ(bench.service.calls.size(), 2u);
  size_t most = 0;
  while (!bench.service.calls.empty()) {
    most = std::max(most, bench.service.calls.size());
    bench.service.Answer(AnswerOf(Fenced(kKernelC)));
  }
  EXPECT_EQ(most, 2u);
  size_t fine = 0, refused = 0;
  for (const Answered& one : answered) {
    EXPECT_EQ(one.calls, 1);
    if (one.error) {
      ++refused;
      EXPECT_EQ(one.error->code(), KGRPO_ERROR_BUDGET);
      EXPECT_THAT(one.error->what(),
                  AllOf(HasSubstr("of max_cost $0.0901"), HasSubstr("raise coder.options.max_cost")));
    } else {
      ++fine;
    }
  }
  EXPECT_EQ(fine, bench.service.sent);
  EXPECT_EQ(fine + refused, 40u);
  EXPECT_GT(refused, 0u);
  EXPECT_GT(fine, 5u);
  EXPECT_LE(bench.coder.spent(), 0.0901);
  EXPECT_DOUBLE_EQ(bench.coder.spent(), static_cast<double>(fine) * 0.0045);
}

TEST(CoderTest, KnowsWhatTheRunSpentBefore) {
  const auto folder = TestFolder("budget");
  const json options = {{"prices", kPrices}, {"max_cost", 0.05}, {"record", false}};
  Asked asked;
  {
    Bench bench(options, RecordedIn(folder));
    for (int i = 0; i < 2; ++i) {
      Answered answered;
      bench.Ask(asked, answered);
      bench.service.Answer(AnswerOf(Fenced(kKernelC)));
      EXPECT_FALSE(answered.error);
    }
  }
  Bench resumed(options, RecordedIn(folder));
  Answered answered;
  resumed.Ask(asked, answered);
  ASSERT_TRUE(answered.error);
  EXPECT_EQ(answered.error->code(), KGRPO_ERROR_BUDGET);
  EXPECT_THAT(answered.error->what(), HasSubstr("has cost $0.009"));
}

// ---- cancelling ----------------------------------------------------------------------------------

TEST(CoderTest, CancellingAnswersEverything) {
  const auto folder = TestFolder("cancelled");
  Bench bench({{"mode", "cache"}, {"prices", kPrices}, {"max_cost", 0.06}, {"continuations", 3}},
              RecordedIn(folder, folder / "cache.sqlite"));
  std::deque<Asked> asked;
  std::deque<Answered> answered(4);
  for (const char* words : {"a", "a", "b", "b"}) asked.emplace_back(words, asked.size());
  for (size_t i = 0; i < 4; ++i) bench.Ask(asked[i], answered[i]);
  EXPECT_EQ(bench.service.sent, 1u);  // one waits for it, one is held for its cost, one waits for that
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
