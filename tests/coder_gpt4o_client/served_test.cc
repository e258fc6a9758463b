// The client against an independent server. Skipped unless KGRPO_CHAT_SERVICE names one, as
// http://localhost:8011/v1 once scripts/serve_smollm2 runs, and KGRPO_CHAT_MODEL its model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <future>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "coder_gpt4o/completion_client.h"

namespace kgrpo::coder_gpt4o {
namespace {

using nlohmann::json;
using Outcome = Completion::Outcome;

std::future<Completion> Send(CompletionClient& client, CompletionRequest request) {
  auto promise = std::make_shared<std::promise<Completion>>();
  client.Send(std::move(request), [promise](Completion completion) { promise->set_value(std::move(completion)); });
  return promise->get_future();
}

class Served : public testing::Test {
 protected:
  void SetUp() override {
    const char* service = std::getenv("KGRPO_CHAT_SERVICE");
    const char* model = std::getenv("KGRPO_CHAT_MODEL");
    if (service == nullptr || model == nullptr)
      GTEST_SKIP() << "no service: run scripts/serve_smollm2, then set KGRPO_CHAT_SERVICE and KGRPO_CHAT_MODEL";
    options_.base_url = service;
    model_ = model;
  }
  CompletionRequest Request(const std::string& question, int max_tokens) const {
    const json body = {{"model", model_},
                       {"messages", {{{"role", "user"}, {"content", question}}}},
                       {"temperature", 0},
                       {"max_tokens", max_tokens}};
    return {body.dump(), 0};
  }
  Completion AskStreaming(bool stream, const CompletionRequest& request) {
    ClientOptions options = options_;
    options.stream = stream;
    CompletionClient client(options);
    return Send(client, request).get();
  }

  ClientOptions options_;
  std::string model_;
};

TEST_F(Served, AStreamSaysWhatAWholeAnswerSays) {
  const CompletionRequest request = Request("Name three colours.", 24);
  const Completion whole = AskStreaming(false, request), streamed = AskStreaming(true, request);
  ASSERT_EQ(whole.outcome, Outcome::kAnswered) << whole.message;
  ASSERT_EQ(streamed.outcome, Outcome::kAnswered) << streamed.message;
  EXPECT_NE(whole.text, "");
  EXPECT_EQ(streamed.text, whole.text);
  EXPECT_EQ(streamed.finish_reason, whole.finish_reason);
  for (const Completion& completion : {whole, streamed}) {
    EXPECT_EQ(completion.attempts, 1U);
    ASSERT_TRUE(completion.usage_known);
    EXPECT_GT(completion.prompt_tokens, 0U);
    EXPECT_LE(completion.completion_tokens, 25U);
  }
}

TEST_F(Served, AnAnswerThatIsCutOffSaysSo) {
  const Completion completion = AskStreaming(true, Request("Count from one to a hundred.", 8));
  ASSERT_EQ(completion.outcome, Outcome::kAnswered) << completion.message;
  EXPECT_EQ(completion.finish_reason, "length");
}

TEST_F(Served, SeveralAtOnceAreAllAnswered) {
  CompletionClient client(options_);
  std::vector<std::future<Completion>> answers;
  answers.reserve(4);
  for (int i = 0; i < 4; ++i) answers.push_back(Send(client, Request("Say the number " + std::to_string(i) + ".", 8)));
  for (std::future<Completion>& answer : answers) {
    const Completion completion = answer.get();
    EXPECT_EQ(completion.outcome, Outcome::kAnswered) << completion.message;
    EXPECT_NE(completion.text, "");
  }
}

}  // namespace
}  // namespace kgrpo::coder_gpt4o
