// The model computes the same as transformers: logits, greedy continuations, log-probabilities, entropies, gradients.
#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>

#include "golden.h"
#include "policy_qwen/model/transformer.h"

namespace kgrpo::policy {
namespace {

class ParityTest : public ::testing::TestWithParam<std::string> {
 protected:
  ParityTest()
      : expected_(Expected(GetParam())),
        sequences_(expected_),
        config_(ReadModelConfig(GoldenFolder(GetParam()))),
        weights_(config_, at::kFloat, at::kCPU),
        rotary_(config_, at::kFloat, at::kCPU) {
    at::set_num_threads(1);
    ReadParameters(GoldenFolder(GetParam()), config_, weights_);
  }

  // Greedy continuations of the requests, end tokens not ending any.
  std::vector<std::vector<int32_t>> Continue(const std::vector<std::vector<int32_t>>& prompts, int64_t count) {
    ModelConfig endless = config_;
    endless.end_ids.clear();
    std::vector<GenerationRequest> requests;
    for (const auto& prompt : prompts) requests.push_back({prompt, 0});
    SamplingOptions options;
    options.temperature = 0;
    options.max_new_tokens = count;
    std::vector<std::vector<int32_t>> ids(prompts.size());
    GenerationEngine(endless, weights_.weights(), rotary_, at::kCPU, {})
        .scheduler()
        .Run(requests, options, [&](const Completion& completion) { ids[completion.request] = completion.ids; });
    return ids;
  }

  c10::InferenceMode inference_;
  nlohmann::json expected_;
  GoldenSequences sequences_;
  ModelConfig config_;
  ParameterSet weights_;
  RotaryTable rotary_;
};

TEST_P(ParityTest, Logits) {
  const std::vector<int32_t>& prompt = sequences_.prompts[0];
  const Ops ops;
  const Transformer transformer(config_, ops);
  const PackedBatch batch = transformer.Pack({{prompt, static_cast<int64_t>(prompt.size())}}, rotary_);
  const at::Tensor hidden = transformer.Forward(weights_.weights(), batch, nullptr);
  const std::vector<double> logits = ToDoubles(Linear(hidden, weights_.weights().head, {}));
  const auto expected = expected_["logits"].get<std::vector<double>>();
  ASSERT_EQ(logits.size(), expected.size());
  for (size_t i = 0; i < logits.size(); ++i) ASSERT_NEAR(logits[i], expected[i], 1e-4) << "logit " << i;
}

TEST_P(ParityTest, GreedyTokensOfABatch) {
  EXPECT_EQ(Continue(sequences_.prompts, 64), expected_["greedy"].get<std::vector<std::vector<int32_t>>>());
}

TEST_P(ParityTest, GreedyTokensOneByOne) {
  for (size_t i = 0; i < sequences_.prompts.size(); ++i) {
    EXPECT_EQ(Continue({sequences_.prompts[i]}, 64)[0], expected_["greedy"][i].get<std::vector<int32_t>>());
  }
}

TEST_P(ParityTest, LogprobsAndEntropies) {
  Policy policy(GoldenOptions(GetParam()), 0);
  std::vector<float> logprobs(sequences_.token_count), entropies(sequences_.token_count);
  policy.Forward(sequences_.views, Copy::kCurrent, expected_["temperature"], false, ViewOf(logprobs),
                 ViewOf(entropies));
  for (size_t i = 0; i < logprobs.size(); ++i) {
    EXPECT_NEAR(logprobs[i], expected_["logprobs"][i].get<double>(), 1e-5) << "token " << i;
    EXPECT_NEAR(entropies[i], expected_["entropies"][i].get<double>(), 1e-5) << "token " << i;
  }
}

TEST_P(ParityTest, GradientOfEveryParameter) {
  ParameterSet expected(config_, at::kFloat, at::kCPU);
  ReadParameters(GoldenFolder(GetParam()) + "/gradients", config_, expected);
  const auto coefficients = expected_["coefficients"].get<std::vector<float>>();
  // At once; in many chunks; and with nothing kept for the backward.
  for (const auto& [tokens, memory] : std::vector<std::pair<int64_t, int64_t>>{{4096, 1024}, {20, 1024}, {20, 0}}) {
    PolicyOptions options = GoldenOptions(GetParam());
    options.max_tokens_per_chunk = tokens;
    options.activation_memory_mib = memory;
    Policy policy(options, 0);
    std::vector<float> logprobs(sequences_.token_count);
    ForwardContextPtr context =
        policy.Forward(sequences_.views, Copy::kCurrent, expected_["temperature"], true, ViewOf(logprobs), {});
    policy.Backward(std::move(context), ViewOf(coefficients));
    for (size_t i = 0; i < expected.specs().size(); ++i) {
      EXPECT_LT(RelativeL2(ToDoubles(policy.gradients().Get(i)), ToDoubles(expected.Get(i))), 1e-5)
          << expected.specs()[i].name << ", chunks of " << tokens << " tokens, " << memory << " MiB";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, ParityTest, ::testing::ValuesIn(GoldenModels()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace kgrpo::policy
