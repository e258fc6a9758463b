// coder_gpt4o/coder.h: from request to answer, with a scripted service: outcomes and continuations.
#include "coder_gpt4o/coder.h"

#include "bench.h"
#include "test.h"

namespace kgrpo::coder_gpt4o {
namespace {

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
  EXPECT_THAT(described, HasSubstr("POST to https://service/v1/chat/completions\n" + body.dump() + "\n"));
  EXPECT_EQ(described.find("secret-key"), std::string::npos);
  bench.service.Answer(AnswerOf(""));
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

// The rest of such an answer is prose, and would cost as much as another answer.
TEST(CoderTest, ACompleteKernelIsNotContinued) {
  Bench bench(json{{"continuations", 2}});
  Asked asked;
  Answered answered;
  bench.Ask(asked, answered);
  bench.service.Answer(AnswerOf(Fenced(kKernelC) + "This kernel uses", "length"));
  EXPECT_EQ(answered.source, kKernelC);
  EXPECT_EQ(bench.service.sent, 1u);
}

TEST(CoderTest, ContinuationsEnd) {
  Bench bench(json{{"continuations", 1}});
  Asked asked;
  Answered answered;
  bench.Ask(asked, answered);
  bench.service.Answer(AnswerOf("```cuda\nvoid", "length"));
  bench.service.Answer(AnswerOf(" more", "length"));
  EXPECT_EQ(answered.outcome, KGRPO_CODER_TRUNCATED);
  // An answer of hidden thoughts alone leaves nothing to continue.
  Answered empty;
  bench.Ask(asked, empty);
  bench.service.Answer(AnswerOf("", "length"));
  EXPECT_EQ(empty.outcome, KGRPO_CODER_TRUNCATED);
  EXPECT_EQ(bench.service.sent, 3u);
}

}  // namespace
}  // namespace kgrpo::coder_gpt4o
