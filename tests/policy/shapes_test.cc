// Models with the structure of Qwen2.5-1.5B and 7B, Qwen3-0.6B, 1.7B and 8B, Llama-3.2-1B and Mistral-7B, and two with
// yarn, made small: logits, gradients and greedy tokens are transformers' (tests/golden/policy/make_shapes.py, whose
// formulas are repeated here).
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <map>

#include "golden.h"
#include "policy_qwen/generation/generation_engine.h"
#include "policy_qwen/model/scorer.h"

namespace kgrpo::policy {
namespace {

constexpr int64_t kVocabulary = 96, kLength = 600, kOutputs = 4;

std::vector<float> Noise(int64_t count, uint64_t salt) {
  std::vector<float> values(static_cast<size_t>(count));
  for (uint64_t i = 0; i < values.size(); ++i) {
    const uint64_t mixed = (i * 40503 + salt * 9973) * 2654435761 % (uint64_t{1} << 32);
    values[i] = static_cast<float>(static_cast<double>(mixed / 256) / (1 << 23) - 1);
  }
  return values;
}

class ShapesTest : public ::testing::TestWithParam<const char*> {};

TEST_P(ShapesTest, LogitsGradientsAndGreedyTokensAreTransformers) {
  const c10::InferenceMode inference;
  const nlohmann::json expected = nlohmann::json::parse(std::ifstream(GoldenFolder("shapes.json"))).at(GetParam());
  const TemporaryFolder folder;
  std::ofstream(folder.path() + "/config.json") << expected["config"];
  const ModelConfig config = ReadModelConfig(folder.path());

  ParameterSet parameters(config, at::kFloat, at::kCPU), gradients(config, at::kFloat, at::kCPU);
  std::map<std::string, size_t> by_name;  // in the order of the salts
  for (size_t i = 0; i < parameters.specs().size(); ++i) by_name[parameters.specs()[i].name] = i;
  uint64_t salt = 0;
  for (const auto& [name, index] : by_name) {
    const ParameterSpec& spec = parameters.specs()[index];
    std::vector<float> values = Noise(spec.size(), salt++);
    const float scale = spec.is_matrix ? 2 / std::sqrt(static_cast<float>(spec.shape[1])) : 0.25F;
    for (float& value : values) value = value * scale + (spec.is_matrix ? 0.0F : 1.0F);
    parameters.Get(index).copy_(ViewOf(values).view(spec.shape));
  }

  PackedSequence sequence;
  std::vector<int64_t> targets;
  for (const float value : Noise(kLength, 100))
    sequence.ids.push_back(static_cast<int32_t>(3 + (value + 1) / 2 * static_cast<float>(kVocabulary - 3)));
  targets.assign(sequence.ids.end() - kOutputs, sequence.ids.end());
  const nlohmann::json& greedy = expected["greedy"];
  const std::vector<int32_t> prompt(sequence.ids.begin(), sequence.ids.begin() + greedy["prompt"].get<int64_t>());
  sequence.ids.pop_back();
  sequence.output_count = kOutputs;
  RotaryTable rotary(config, at::kFloat, at::kCPU);
  const Ops ops;
  Scorer scorer(config, ops, rotary);
  int64_t room = ops.ActivationRoom();
  Scorer::Result scored = scorer.Forward(parameters.weights(), {sequence}, targets, 1.0, false, &room);
  const std::vector<double> logits = ToDoubles(Linear(scored.pass.hidden, parameters.weights().head, {}));
  for (int64_t i = 0; i < kOutputs * kVocabulary; ++i) {
    EXPECT_NEAR(logits[static_cast<size_t>(i)],
                expected["logits"][static_cast<size_t>(i / kVocabulary)][static_cast<size_t>(i % kVocabulary)], 1e-4)
        << "logit " << i;
  }

  std::vector<float> coefficients = Noise(kOutputs, 101);
  scorer.Backward(parameters.weights(), gradients.weights(), std::move(scored.pass), 1.0, ViewOf(coefficients), room);
  for (const auto& [name, index] : by_name) {
    const std::vector<double> gradient = ToDoubles(gradients.Get(index));
    const std::vector<float> vector = Noise(static_cast<int64_t>(gradient.size()), 200);
    double product = 0, squares = 0;
    for (size_t i = 0; i < gradient.size(); ++i) {
      product += gradient[i] * vector[i];
      squares += gradient[i] * gradient[i];
    }
    const double norm = expected["gradient_norms"][name].get<double>();
    EXPECT_NEAR(std::sqrt(squares), norm, 1e-4 * norm + 1e-7) << name;
    EXPECT_NEAR(product, expected["gradients"][name].get<double>(), 1e-3 * norm + 1e-6) << name;
  }

  SamplingOptions likeliest;
  likeliest.temperature = 0;
  likeliest.max_new_tokens = static_cast<int64_t>(greedy["tokens"].size());
  std::vector<int32_t> written;
  const std::vector<GenerationRequest> requests = {{prompt, 1}};
  GenerationEngine(config, parameters.weights(), rotary, at::kCPU, {})
      .scheduler()
      .Run(requests, likeliest, [&](const Completion& completion) { written = completion.ids; });
  EXPECT_EQ(written, greedy["tokens"].get<std::vector<int32_t>>());
}

INSTANTIATE_TEST_SUITE_P(All, ShapesTest,
                         ::testing::Values("Qwen2.5-1.5B", "Qwen2.5-7B", "Qwen3-0.6B", "Qwen3-1.7B", "Qwen3-8B",
                                           "Llama-3.2-1B", "Mistral-7B", "Qwen2.5-yarn", "Llama-yarn"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::ranges::replace_if(
                               name, [](char c) { return c == '.' || c == '-'; }, '_');
                           return name;
                         });

}  // namespace
}  // namespace kgrpo::policy
