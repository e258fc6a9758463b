// The plugin coder_engine as a host sees it: what becomes of completions, and that an answer depends on its request
// only.
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <deque>

#include "../coder_shared/asked.h"
#include "base/directories.h"
#include "base/services.h"
#include "config/load.h"
#include "config/schema.h"
#include "plugin/instances.h"
#include "plugin/library.h"
#include "scripted_model.h"
#include "test.h"

namespace kgrpo {
namespace {

using coder_shared::Asked;
using coder_shared::Fenced;
using coder_shared::kKernelB;
using coder_shared::kKernelC;

const PluginLibrary& Library() {
  static const PluginLibrary library(KGRPO_BINARY_DIR "/lib/kgrpo/coder_engine.so");
  return library;
}

std::string Golden(const std::string& folder) { return KGRPO_SOURCE_DIR "/tests/golden/policy/" + folder; }

class CoderEngine : public testing::Test {
 protected:
  // With the options' defaults filled in, as the host does.
  std::unique_ptr<Coder> Make(const json& options) {
    return std::make_unique<Coder>(
        Library().Table<kgrpo_coder_interface>(Role::kCoder), services_.ForInstance("coder"),
        CheckOptions(nlohmann::ordered_json(options), Library().OptionsSchema(Role::kCoder), "", "test"));
  }
  std::unique_ptr<Coder> Scripted(const std::vector<std::string>& answers, json options = json::object(),
                                  int context = 16384) {
    test::WriteScriptedModel(folder_.path() / "model", answers, context);
    options["model"] = (folder_.path() / "model").string();
    return Make(options);
  }
  // A model with random weights, whose answers depend on the whole prompt. Its context is short, and so the prompt is.
  std::unique_ptr<Coder> Random(const std::string& folder, double temperature, json options = json::object()) {
    options["model"] = Golden(folder);
    options["sampling"] = {{"temperature", temperature}, {"max_new_tokens", 24}};
    options["prompt"] = {{"system", ""}, {"user", "{{suggestion}} {{code_b}}"}};
    return Make(options);
  }

  // The answers to all requests, in their order, sent in the given order.
  static std::vector<CoderAnswer> Ask(Coder& coder, std::deque<Asked>& requests, const std::vector<size_t>& order) {
    std::vector<std::promise<CoderAnswer>> promises(requests.size());
    for (const size_t i : order) {
      coder.Implement(requests[i].request(), [&, i](std::optional<CoderAnswer> answer, std::exception_ptr error) {
        if (error) return promises[i].set_exception(error);
        promises[i].set_value(std::move(*answer));
      });
    }
    std::vector<CoderAnswer> answers(requests.size());
    for (const size_t i : order) answers[i] = promises[i].get_future().get();
    return answers;
  }
  static CoderAnswer Ask(Coder& coder, const std::string& suggestion = "use one warp", uint64_t seed = 1) {
    std::deque<Asked> requests;
    requests.emplace_back(suggestion, seed);
    return Ask(coder, requests, {0})[0];
  }
  Error Refusal(const json& options) {
    try {
      Make(options);
    } catch (const Error& error) {
      return error;
    }
    return {KGRPO_ERROR_INTERNAL, "accepted"};
  }

  HostServices services_{HostOptions{7, {}, {}}};
  TemporaryDirectory folder_;
};

TEST_F(CoderEngine, TheSchemaIsSound) {
  EXPECT_THAT(FindSchemaMistakes(Library().OptionsSchema(Role::kCoder)), testing::IsEmpty());
}

TEST_F(CoderEngine, AnswersAreReadByTheTableOfForms) {
  const struct {
    std::string answer;
    kgrpo_coder_outcome outcome;
    std::string source;
  } cases[] = {
      {Fenced(kKernelC), KGRPO_CODER_OK, kKernelC},
      {"<think>\nSo: " + Fenced("int draft;\n") + "</think>\n" + Fenced(kKernelC), KGRPO_CODER_OK, kKernelC},
      {Fenced(kKernelB), KGRPO_CODER_NOT_APPLICABLE, ""},
      {"NOT APPLICABLE: there is one warp already", KGRPO_CODER_NOT_APPLICABLE, ""},
      {"UNCLEAR: which warp?", KGRPO_CODER_UNCLEAR, ""},
      {"I'm sorry, but I cannot help with that.", KGRPO_CODER_REFUSED, ""},
      {"I would use one warp.", KGRPO_CODER_NO_CODE, ""},
      {"```cuda\n__global__ void k(float* x) {\n  *x", KGRPO_CODER_TRUNCATED, ""},
  };
  for (const auto& [text, outcome, source] : cases) {
    SCOPED_TRACE(text);
    const auto coder = Scripted({text});
    const CoderAnswer answer = Ask(*coder);
    EXPECT_EQ(answer.outcome, outcome) << answer.message;
    EXPECT_EQ(answer.source, source);
    EXPECT_EQ(answer.text, text);
    EXPECT_EQ(answer.message.empty(), outcome == KGRPO_CODER_OK);
    EXPECT_EQ(answer.completion_tokens, 2U) << "the answer and the end token";
    EXPECT_GT(answer.prompt_tokens, 500U);
    EXPECT_EQ(answer.attempts, 1U);
    EXPECT_EQ(answer.cost, 0);
  }
}

TEST_F(CoderEngine, AnAnswerThatIsCutOffSaysWhere) {
  const std::string endless = std::string("```cuda\nint a;") + test::kEndless;
  const CoderAnswer cut = Ask(*Scripted({endless}, {{"sampling", {{"max_new_tokens", 5}}}}));
  EXPECT_EQ(cut.outcome, KGRPO_CODER_TRUNCATED);
  EXPECT_EQ(cut.message, "the answer was cut off at 5 tokens: raise coder.options.sampling.max_new_tokens");
  EXPECT_EQ(cut.completion_tokens, 5U);
  const int context = static_cast<int>(cut.prompt_tokens) + 3;
  const CoderAnswer short_of_room = Ask(*Scripted({endless}, json::object(), context));
  EXPECT_EQ(short_of_room.outcome, KGRPO_CODER_TRUNCATED);
  EXPECT_THAT(short_of_room.message,
              HasSubstr("context of " + std::to_string(context) + " tokens, of which the prompt"));
  // No room at all: the round fails, and the run goes on.
  const CoderAnswer none = Ask(*Scripted({endless}, json::object(), context - 3));
  EXPECT_EQ(none.outcome, KGRPO_CODER_FAILED);
  EXPECT_THAT(none.message, HasSubstr("its prompt of " + std::to_string(cut.prompt_tokens) + " tokens leaves no room"));
}

TEST_F(CoderEngine, AnAnswerDoesNotDependOnWhatIsInFlight) {
  const auto coder = Random("qwen2", 1);
  std::deque<Asked> requests;
  std::vector<size_t> order;
  for (size_t i = 0; i < 12; ++i) {
    requests.emplace_back("use " + std::to_string(1 + i % 4) + std::string(i % 3, '0') + " warps", 100 + i / 2);
    requests.back().code_b = "int b;";
    order.push_back(i);
  }
  std::vector<std::string> expected;
  for (Asked& request : requests) {
    std::deque<Asked> one = {request};
    expected.push_back(Ask(*coder, one, {0})[0].text);
  }
  EXPECT_GT(std::set<std::string>(expected.begin(), expected.end()).size(), 10U);
  const auto same = [&](Coder& other) {
    const std::vector<CoderAnswer> answers = Ask(other, requests, order);
    for (size_t i = 0; i < answers.size(); ++i) EXPECT_EQ(answers[i].text, expected[i]) << i;
  };
  same(*coder);
  std::reverse(order.begin(), order.end());
  same(*coder);
  same(*Random("qwen2", 1, {{"max_sequences", 3}}));
  const auto again = [&](uint64_t seed) { return Ask(*coder, "use 1 warps", seed).text; };
  EXPECT_NE(again(1), again(2));
}

TEST_F(CoderEngine, WithTemperature0TheSeedDoesNotMatter) {
  const auto coder = Random("qwen2", 0);
  EXPECT_EQ(Ask(*coder, "tile", 1).text, Ask(*coder, "tile", 2).text);
  EXPECT_NE(Ask(*coder, "tile", 1).text, Ask(*coder, "unroll by 4", 1).text);
}

TEST_F(CoderEngine, AnAdaptersFolderIsAModel) {
  const auto base = Random("qwen2", 0), adapted = Random("adapters/qwen2", 0);
  EXPECT_NE(Ask(*base, "tile").text, Ask(*adapted, "tile").text);
}

TEST_F(CoderEngine, CancelEndsWhatIsInFlight) {
  const auto coder = Scripted({std::string("```\nint a;") + test::kEndless},
                              {{"sampling", {{"max_new_tokens", 200000}}}}, /*context=*/1 << 18);
  Asked asked;
  std::promise<CoderAnswer> answered;
  coder->Implement(asked.request(), [&](std::optional<CoderAnswer> answer, const std::exception_ptr&) {
    answered.set_value(std::move(*answer));
  });
  std::future<CoderAnswer> answer = answered.get_future();
  EXPECT_EQ(answer.wait_for(std::chrono::milliseconds(100)), std::future_status::timeout);
  coder->Cancel();
  EXPECT_EQ(answer.get().outcome, KGRPO_CODER_FAILED);
}

TEST_F(CoderEngine, WhatCannotBeACoderIsRefusedAtOnce) {
  const Error missing = Refusal({{"model", "/nowhere/model"}});
  EXPECT_EQ(missing.code(), KGRPO_ERROR_NOT_FOUND) << missing.what();
  EXPECT_THAT(missing.what(), HasSubstr("/nowhere/model"));
  const Error prompt = Refusal({{"model", Golden("qwen2")}, {"prompt", {{"user", "{{sugestion}}"}}}});
  EXPECT_EQ(prompt.code(), KGRPO_ERROR_INVALID);
  EXPECT_THAT(prompt.what(), AllOf(HasSubstr("options.prompt.user: 1:1: unknown variable"),
                                   HasSubstr("options.prompt.user: it mentions {{code_b}} nowhere")));
  test::WriteScriptedModel(folder_.path() / "base", {"<answer>"});
  std::filesystem::remove(folder_.path() / "base/chat_template.jinja");
  const Error base = Refusal({{"model", (folder_.path() / "base").string()}});
  EXPECT_EQ(base.code(), KGRPO_ERROR_UNSUPPORTED) << base.what();
  std::ofstream(folder_.path() / "base/chat_template.jinja")
      << "{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}-";
  EXPECT_THAT(Refusal({{"model", (folder_.path() / "base").string()}}).what(),
              AllOf(HasSubstr("System role not supported"), HasSubstr("set prompt.system_role to user")));
  const Error devices = Refusal({{"model", Golden("qwen2")}, {"device", "abacus"}});
  EXPECT_EQ(devices.code(), KGRPO_ERROR_INVALID);
}

TEST_F(CoderEngine, ReportsItsModelItsMemoryAndItsTime) {
  std::ostringstream said;
  const auto former = spdlog::default_logger();
  spdlog::set_default_logger(
      std::make_shared<spdlog::logger>("", std::make_shared<spdlog::sinks::ostream_sink_mt>(said)));
  const auto coder = Random("qwen2", 0.5);
  spdlog::set_default_logger(former);
  EXPECT_THAT(said.str(), HasSubstr("coder on cpu: "));
  EXPECT_THAT(said.str(), HasSubstr(" parameters; memory: weights 0 MiB, generation cache 0 MiB per 1000 tokens"));
  EXPECT_EQ(coder->Describe(), "Qwen2ForCausalLM, 0.03 M parameters, from " + Golden("qwen2") +
                                   ", on cpu, temperature 0.5, at most 24 tokens an answer");
  Asked asked;
  EXPECT_THAT(coder->DescribeRequest(asked.request()), StartsWith("<|im_start|>user\nuse one warp __global__"));
  EXPECT_EQ(services_.TakeMetrics().count("coder/device_seconds"), 0U);
  Ask(*coder, "tile");
  const auto metrics = services_.TakeMetrics();
  ASSERT_EQ(metrics.count("coder/device_seconds"), 1U);
  EXPECT_GT(metrics.at("coder/device_seconds"), 0);
}

}  // namespace
}  // namespace kgrpo
