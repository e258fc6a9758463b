// The policy as trainers and checkpoints use it: contexts, gradients, the reference copy, saving and loading, bfloat16.
#include "policy_qwen/policy.h"

#include <ATen/ops/equal.h>
#include <c10/core/InferenceMode.h>

#include "golden.h"

namespace kgrpo::policy {
namespace {

class PolicyTest : public ::testing::Test {
 protected:
  PolicyTest() : expected_(Expected("qwen2")), sequences_(expected_) {}

  std::vector<float> Score(Policy& policy, Copy copy = Copy::kCurrent) {
    std::vector<float> logprobs(sequences_.token_count);
    policy.Forward(sequences_.views, copy, 1.0, false, ViewOf(logprobs), {});
    return logprobs;
  }

  // Gradients of the golden scalar, after `times` backwards.
  std::vector<double> Gradients(Policy& policy, int times = 1) {
    const auto coefficients = expected_["coefficients"].get<std::vector<float>>();
    std::vector<float> logprobs(sequences_.token_count);
    policy.ZeroGradients();
    for (int i = 0; i < times; ++i) {
      policy.Backward(policy.Forward(sequences_.views, Copy::kCurrent, 1.0, true, ViewOf(logprobs), {}),
                      ViewOf(coefficients));
    }
    return ToDoubles(policy.gradients().buffer());
  }

  c10::InferenceMode inference_;
  nlohmann::json expected_;
  GoldenSequences sequences_;
};

TEST_F(PolicyTest, GradientsAreAddedUp) {
  Policy policy(GoldenOptions("qwen2"), 0);
  std::vector<double> once = Gradients(policy);
  const std::vector<double> thrice = Gradients(policy, 3);
  for (double& value : once) value *= 3;
  EXPECT_LT(RelativeL2(thrice, once), 1e-6);
}

TEST_F(PolicyTest, RepeatsBitForBit) {
  for (const int threads : {1, 2}) {
    PolicyOptions options = GoldenOptions("qwen2");
    options.threads = threads;
    Policy first(options, 0), second(options, 0);
    EXPECT_EQ(Score(first), Score(second));
    EXPECT_EQ(Gradients(first), Gradients(second));
    EXPECT_EQ(Gradients(first), Gradients(first));
  }
}

TEST_F(PolicyTest, SequencesLongerThanAScoreBlock) {
  // A context of 256 stays below the limits where attention is blocked and probabilities are computed again; a longer
  // one must give the same gradient as the same sequence cut into completions of one token each.
  TemporaryFolder folder;
  for (const auto& entry : std::filesystem::directory_iterator(GoldenFolder("llama"))) {
    if (entry.is_regular_file()) std::filesystem::copy(entry.path(), folder.path());
  }
  nlohmann::json config = nlohmann::json::parse(std::ifstream(folder.path() + "/config.json"));
  config["max_position_embeddings"] = 4096;
  std::ofstream(folder.path() + "/config.json") << config;
  PolicyOptions options = GoldenOptions("llama");
  options.model = folder.path();
  Policy policy(options, 0);

  std::vector<int32_t> ids;
  for (int i = 0; i < 1500; ++i) ids.push_back(3 + (i * i + 7 * i) % 297);
  const std::span<const int32_t> all(ids);
  std::vector<float> whole(1499), pieces(1499);
  std::vector<float> coefficients(1499, 0.0f);
  std::vector<ScoredSequence> cut;
  std::vector<float> cut_logprobs, cut_coefficients;
  for (const size_t end : {2u, 300u, 900u, 1500u}) {
    cut.push_back({all.first(end - 1), all.subspan(end - 1, 1)});
    coefficients[end - 2] = static_cast<float>(end) / 1000;
    cut_coefficients.push_back(coefficients[end - 2]);
  }
  cut_logprobs.resize(cut.size());
  const std::vector<ScoredSequence> one = {{all.first(1), all.subspan(1)}};
  policy.ZeroGradients();
  policy.Backward(policy.Forward(one, Copy::kCurrent, 1.0, true, ViewOf(whole), {}), ViewOf(coefficients));
  const std::vector<double> whole_gradient = ToDoubles(policy.gradients().buffer());
  policy.ZeroGradients();
  policy.Backward(policy.Forward(cut, Copy::kCurrent, 1.0, true, ViewOf(cut_logprobs), {}), ViewOf(cut_coefficients));
  EXPECT_NEAR(whole[0], cut_logprobs[0], 1e-5);
  EXPECT_NEAR(whole[298], cut_logprobs[1], 1e-5);
  EXPECT_NEAR(whole[898], cut_logprobs[2], 1e-5);
  EXPECT_NEAR(whole[1498], cut_logprobs[3], 1e-5);
  EXPECT_LT(RelativeL2(ToDoubles(policy.gradients().buffer()), whole_gradient), 1e-5);
}

TEST_F(PolicyTest, ReferenceStaysWhereItWasFrozen) {
  Policy policy(GoldenOptions("qwen2"), 0);
  EXPECT_EQ(MessageOf([&] { Score(policy, Copy::kReference); }),
            "the policy has no reference copy yet: freeze_reference or load makes it");
  const std::vector<float> before = Score(policy);
  policy.FreezeReference();
  at::Tensor(policy.parameters().buffer()).mul_(1.1);
  EXPECT_EQ(Score(policy, Copy::kReference), before);
  EXPECT_NE(Score(policy), before);
  policy.FreezeReference();
  EXPECT_EQ(Score(policy, Copy::kReference), Score(policy));
}

TEST_F(PolicyTest, SaveAndLoadAreBitExact) {
  for (const std::string& model : GoldenModels()) {
    for (const bool bfloat16 : {false, true}) {
      PolicyOptions options = GoldenOptions(model);
      options.bfloat16 = bfloat16;
      Policy policy(options, 0);
      policy.FreezeReference();
      at::Tensor(policy.parameters().buffer()).mul_(1.1);
      TemporaryFolder current, reference;
      policy.Save(Copy::kCurrent, current.path());
      policy.Save(Copy::kReference, reference.path());

      options.model = current.path();
      Policy again(options, 0);
      again.Load(Copy::kReference, reference.path());
      EXPECT_TRUE(at::equal(again.parameters().buffer(), policy.parameters().buffer())) << model;
      EXPECT_EQ(Score(again, Copy::kReference), Score(policy, Copy::kReference)) << model;
      const void* address = again.parameters().buffer().const_data_ptr();
      again.Load(Copy::kCurrent, reference.path());
      EXPECT_EQ(Score(again), Score(again, Copy::kReference));
      EXPECT_EQ(again.parameters().buffer().const_data_ptr(), address) << "views must stay valid";
    }
  }
}

TEST_F(PolicyTest, AFailedLoadChangesNothing) {
  Policy policy(GoldenOptions("qwen2"), 0);
  const std::vector<float> before = Score(policy);
  EXPECT_NE(MessageOf([&] { policy.Load(Copy::kCurrent, GoldenFolder("qwen3")); }), "nothing thrown");
  EXPECT_NE(MessageOf([&] { policy.Load(Copy::kCurrent, "/nowhere"); }), "nothing thrown");
  EXPECT_EQ(Score(policy), before);
}

TEST_F(PolicyTest, Bfloat16IsCloseToFloat32) {
  PolicyOptions options = GoldenOptions("qwen2");
  Policy exact(options, 0);
  options.bfloat16 = true;
  Policy rounded(options, 0);
  EXPECT_EQ(rounded.gradients().buffer().scalar_type(), at::kFloat);
  const std::vector<float> expected = Score(exact), actual = Score(rounded);
  double difference = 0;
  for (size_t i = 0; i < actual.size(); ++i) difference += std::abs(actual[i] - expected[i]);
  EXPECT_LT(difference / static_cast<double>(actual.size()), 0.1);
  EXPECT_LT(RelativeL2(Gradients(rounded), Gradients(exact)), 0.1);
}

TEST_F(PolicyTest, RandomWeightsAreTheSeeds) {
  PolicyOptions options = GoldenOptions("qwen2");
  options.random_weights = true;
  Policy first(options, 1), same(options, 1), other(options, 2);
  EXPECT_TRUE(at::equal(first.parameters().buffer(), same.parameters().buffer()));
  EXPECT_FALSE(at::equal(first.parameters().buffer(), other.parameters().buffer()));
  for (size_t i = 0; i < first.parameters().specs().size(); ++i) {
    const ParameterSpec& spec = first.parameters().specs()[i];
    const std::vector<double> values = ToDoubles(first.parameters().Get(i));
    double sum = 0, squares = 0;
    for (const double value : values) {
      sum += value;
      squares += value * value;
    }
    const double n = static_cast<double>(values.size());
    if (spec.is_matrix) {
      EXPECT_NEAR(sum / n, 0, 5 * 0.02 / std::sqrt(n)) << spec.name;
      EXPECT_NEAR(std::sqrt(squares / n), 0.02, 5 * 0.02 / std::sqrt(2 * n)) << spec.name;
    } else {
      EXPECT_EQ(sum, spec.is_norm ? n : 0) << spec.name;
    }
  }
}

TEST_F(PolicyTest, TokenizerOnlyNeedsNoWeights) {
  TemporaryFolder folder;
  for (const char* name : {"tokenizer.json", "tokenizer_config.json", "chat_template.jinja"}) {
    std::filesystem::copy(GoldenFolder("qwen2") + "/" + name, folder.path());
  }
  PolicyOptions options = GoldenOptions("qwen2");
  options.model = folder.path();
  options.tokenizer_only = true;
  Policy policy(options, 0);
  EXPECT_EQ(policy.RenderChat(tokenizer::Json::array({{{"role", "user"}, {"content", "tile"}}}), true),
            "<|im_start|>user\ntile<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_EQ(MessageOf([&] { Score(policy); }), "the policy was made with \"tokenizer_only\": it has no weights");
  EXPECT_EQ(MessageOf([&] { policy.FreezeReference(); }),
            "the policy was made with \"tokenizer_only\": it has no weights");
}

// Another program that opens a saved folder prompts as this policy does.
TEST_F(PolicyTest, SavesTheTemplateInUse) {
  const tokenizer::Json chat = tokenizer::Json::array({{{"role", "user"}, {"content", "tile"}}});
  PolicyOptions options = GoldenOptions("qwen2");
  options.chat_template = "qwen3";
  options.chat_template_arguments = {{"enable_thinking", false}};
  Policy policy(options, 0);
  const std::string text = policy.RenderChat(chat, true);
  EXPECT_THAT(text, testing::EndsWith("</think>\n\n"));
  TemporaryFolder folder;
  policy.Save(Copy::kCurrent, folder.path());
  options = GoldenOptions("qwen2");
  options.chat_template = "auto";
  options.model = folder.path();
  EXPECT_EQ(Policy(options, 0).RenderChat(chat, true), text);
}

TEST_F(PolicyTest, TemplatesWithoutTheirTokensAreRefused) {
  TemporaryFolder folder;
  std::ifstream from(GoldenFolder("qwen2") + "/tokenizer.json");
  std::string json((std::istreambuf_iterator<char>(from)), std::istreambuf_iterator<char>());
  for (size_t at; (at = json.find("<|im_start|>")) != std::string::npos;) json.replace(at, 12, "<|other_one|>");
  std::ofstream(folder.path() + "/tokenizer.json") << json;
  std::ofstream(folder.path() + "/chat_template.jinja") << "<|im_start|>{{ messages[0].content }}<|im_end|>";
  PolicyOptions options;
  options.model = folder.path();
  options.tokenizer_only = true;
  EXPECT_THAT(Policy(options, 0).ForeignMarkers(), testing::ElementsAre("<|im_start|>"));
  options.chat_template = "chatml";
  EXPECT_EQ(MessageOf([&] { Policy(options, 0); }),
            "chat_template: chatml writes <|im_start|>, which is not a token of " + folder.path() +
                "; set chat_template to auto or to the path of a Jinja file for this model");
}

TEST_F(PolicyTest, RefusesBadSequences) {
  Policy policy(GoldenOptions("qwen2"), 0);
  std::vector<float> logprobs(1000);
  const std::vector<int32_t> some = {3, 4}, none, foreign = {3, 300}, most(255, 3);
  const auto message = [&](const std::vector<int32_t>& prompt, const std::vector<int32_t>& completion,
                           double temperature = 1.0) {
    const std::vector<ScoredSequence> sequences = {{some, some}, {prompt, completion}};
    return MessageOf([&] { policy.Forward(sequences, Copy::kCurrent, temperature, false, ViewOf(logprobs), {}); });
  };
  EXPECT_EQ(message(none, some), "sequence 1: the prompt is empty");
  EXPECT_EQ(message(some, none), "sequence 1: the completion is empty");
  EXPECT_EQ(message(some, most), "sequence 1: its 257 tokens exceed the context of 256");
  EXPECT_EQ(message(some, foreign), "sequence 1, completion: token 1 is 300, outside the model's vocabulary of 300");
  EXPECT_EQ(message(foreign, some), "sequence 1, prompt: token 1 is 300, outside the model's vocabulary of 300");
  EXPECT_EQ(message(some, some, 0.0), "forward: the temperature must be above 0");
  policy.FreezeReference();
  EXPECT_EQ(MessageOf([&] { policy.Forward(sequences_.views, Copy::kReference, 1.0, true, ViewOf(logprobs), {}); }),
            "forward: only the current copy can be differentiated");
}

// Without a GPU the engine is refused with the option to change, not replaced in silence.
TEST(PolicyOptionsTest, TheEngineNeedsAGpu) {
  PolicyOptions options = GoldenOptions("qwen2");
  options.device = "cpu";
  options.engine_generation = true;
  try {
    const Policy policy(options, 0);
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "generation: engine needs a GPU, and device is cpu");
  }
}

}  // namespace
}  // namespace kgrpo::policy
