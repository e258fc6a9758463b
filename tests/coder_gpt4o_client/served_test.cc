// The client against an independent server: skipped unless KGRPO_CHAT_SERVICE names one, as http://localhost:8011/v1
// once scripts/serve_smollm2 runs, and KGRPO_CHAT_MODEL its model.
#include "server.h"
#include "test.h"

namespace kgrpo::coder_gpt4o {
namespace {

using Outcome = Completion::Outcome;

Completion Send(CompletionClient& client, CompletionRequest request) {
  std::promise<Completion> promise;
  client.Send(std::move(request), [&](Completion completion) { promise.set_value(std::move(completion)); });
  return promise.get_future().get();
}

TEST(Served, AStreamSaysWhatAWholeAnswerSays) {
  const char* service = std::getenv("KGRPO_CHAT_SERVICE");
  const char* model = std::getenv("KGRPO_CHAT_MODEL");
  if (service == nullptr || model == nullptr)
    GTEST_SKIP() << "no service: run scripts/serve_smollm2, then set KGRPO_CHAT_SERVICE and KGRPO_CHAT_MODEL";
  const json body = {{"model", model},
                     {"messages", {{{"role", "user"}, {"content", "Count from one to a hundred."}}}},
                     {"temperature", 0},
                     {"max_tokens", 24}};
  std::string text;
  for (const bool stream : {false, true}) {
    ClientOptions options;
    options.base_url = service;
    options.stream = stream;
    CompletionClient client(options);
    const Completion completion = Send(client, {body.dump(), 0});
    ASSERT_EQ(completion.outcome, Outcome::kAnswered) << completion.message;
    EXPECT_EQ(completion.finish_reason, "length");
    EXPECT_TRUE(completion.usage_known);
    EXPECT_GT(completion.prompt_tokens, 0U);
    EXPECT_NE(completion.text, "");
    if (stream) {
      EXPECT_EQ(completion.text, text);
    }
    text = completion.text;
  }
}

}  // namespace
}  // namespace kgrpo::coder_gpt4o
