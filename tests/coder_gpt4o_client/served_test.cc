// The client against independent servers. Served is skipped unless KGRPO_CHAT_SERVICE names one, as
// http://localhost:8011/v1 once scripts/serve_smollm2 runs, and KGRPO_CHAT_MODEL its model. LiteLlm, between the client
// and a service on this machine, is skipped unless KGRPO_LITELLM is the path of the program litellm: pip install
// 'litellm[proxy]' (756 MB) into an environment of its own.
#include <tuple>

#include "server.h"
#include "socket_server.h"
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

class LiteLlm : public testing::Test {
 protected:
  void SetUp() override {
    const char* program = std::getenv("KGRPO_LITELLM");
    if (program == nullptr) GTEST_SKIP() << "not in CI: KGRPO_LITELLM does not name LiteLLM's program";
    std::ofstream(folder_ + "/config.yaml")
        << "model_list: [{model_name: m, litellm_params: {model: openai/gpt-4o, max_retries: 0, api_key: sk-upstream,"
        << " api_base: '" << upstream_.Url() << "'}}]\nlitellm_settings: {num_retries: 0, telemetry: false}\n";
    const std::string command = "cd " + folder_ +
                                " && LITELLM_LOCAL_MODEL_COST_MAP=True LITELLM_MASTER_KEY=" + kMaster + " " + program +
                                " --config config.yaml --host 127.0.0.1 --port " + std::to_string(port_) +
                                " >log 2>&1 & echo $! >" + folder_ + "/pid";
    ASSERT_EQ(std::system(command.c_str()), 0);
    httplib::Client health("127.0.0.1", port_);
    for (int tries = 0; tries < 240; ++tries) {
      if (const auto answer = health.Get("/health/liveliness"); answer && answer->status == 200) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(500));
    }
    FAIL() << "LiteLLM did not start: see " << folder_ << "/log";
  }
  void TearDown() override {
    if (std::ifstream(folder_ + "/pid")) std::ignore = std::system(("kill $(cat " + folder_ + "/pid)").c_str());
  }
  ClientOptions Options() const {
    ClientOptions options = QuickOptions("http://127.0.0.1:" + std::to_string(port_) + "/v1");
    options.api_key = kMaster;
    return options;
  }
  static CompletionRequest Request(const char* model, const char* words) {
    const json body = {{"model", model}, {"messages", {{{"role", "user"}, {"content", words}}}}};
    return {body.dump(), 0};
  }

  static constexpr const char* kMaster = "sk-master-0123456789abcdef0123456789abcdef";
  const std::string folder_ = [] {
    std::string folder = testing::TempDir() + "/kgrpo_litellm_XXXXXX";
    return std::string(mkdtemp(folder.data()));
  }();
  const int port_ = ClosedPort();
  const Server upstream_{[](const auto& request, auto& response, int) {
    if (request.body.find("poor") == std::string::npos) {
      AnswerRight(request, response, "hello");
      // LiteLLM takes the price of the model that the service names.
      const std::string model = "model-1";
      for (size_t at = 0; (at = response.body.find(model, at)) != std::string::npos;)
        response.body.replace(at, model.size(), "gpt-4o");
      return;
    }
    AnswerError(response, 429,
                ErrorBody("You exceeded your current quota, please check your plan and billing details.",
                          "insufficient_quota"));
  }};
};

TEST_F(LiteLlm, PassesAnswersCostsAndAnEmptyAccountOn) {
  for (const bool stream : {true, false}) {
    ClientOptions options = Options();
    options.stream = stream;
    CompletionClient client(options);
    const Completion completion = Send(client, Request("m", "hello"));
    ASSERT_EQ(completion.outcome, Outcome::kAnswered) << completion.message;
    EXPECT_EQ(completion.text, "hello");
    EXPECT_EQ(completion.completion_tokens, 7U);
    // By LiteLLM's own price list. A stream has the cost only with include_cost_in_streaming_usage.
    if (!stream) {
      EXPECT_NEAR(completion.cost.value_or(0), 11 * 2.5e-6 + 7 * 10e-6, 1e-9);
    }
  }
  CompletionClient unknown(Options());
  EXPECT_EQ(Send(unknown, Request("nope", "hello")).failure, "not_found");
  CompletionClient client(Options());
  const Completion empty = Send(client, Request("m", "poor"));
  EXPECT_EQ(empty.outcome, Outcome::kFatal);
  EXPECT_EQ(empty.failure, "quota");
}

}  // namespace
}  // namespace kgrpo::coder_gpt4o
