// coder_gpt4o/coder.h: from request to answer, with a scripted service: outcomes.
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

TEST(CoderTest, AnAnswerThatWasCutOff) {
  Bench bench;
  Asked asked;
  Answered whole, cut;
  bench.Ask(asked, whole);
  bench.service.Answer(AnswerOf(Fenced(kKernelC) + "This kernel uses", "length"));
  EXPECT_EQ(whole.source, kKernelC);
  bench.Ask(asked, cut);
  bench.service.Answer(AnswerOf("```cuda\nvoid", "length"));
  EXPECT_EQ(cut.outcome, KGRPO_CODER_TRUNCATED);
}

}  // namespace
}  // namespace kgrpo::coder_gpt4o
