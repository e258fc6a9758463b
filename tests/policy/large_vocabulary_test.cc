// A vocabulary so large that the logits of one sequence are computed in several blocks of rows: forward and backward
// against float64 (tests/golden/policy/make_large_vocabulary.py, whose formulas are repeated here).
#include <c10/core/InferenceMode.h>

#include <algorithm>

#include "golden.h"

namespace kgrpo::policy {
namespace {

constexpr int64_t kLargeVocabulary = 120'000;

std::vector<double> MixedNoise(size_t count, uint64_t salt) {
  std::vector<double> values(count);
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t mixed = ((i * 40503 + salt * 9973) * 2654435761) % (uint64_t{1} << 32);
    values[i] = static_cast<double>(mixed / 256) / (1 << 23) - 1;
  }
  return values;
}

std::vector<int32_t> Ids(size_t count, uint64_t salt) {
  std::vector<int32_t> ids;
  for (const double value : MixedNoise(count, salt))
    ids.push_back(static_cast<int32_t>(3 + (value + 1) / 2 * (kLargeVocabulary - 3)));
  return ids;
}

constexpr const char* kConfig = R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 120000,
  "hidden_size": 8, "intermediate_size": 12, "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 2,
  "max_position_embeddings": 256, "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "hidden_act": "silu",
  "initializer_range": 0.02, "tie_word_embeddings": false, "eos_token_id": 2})";

TEST(LargeVocabularyTest, ForwardAndBackwardAreThoseOfFloat64) {
  const c10::InferenceMode inference;
  const TemporaryFolder folder;
  std::filesystem::copy(GoldenFolder("llama") + "/tokenizer.json", folder.path());
  std::ofstream(folder.path() + "/config.json") << kConfig;
  PolicyOptions options = GoldenOptions("llama");
  options.model = folder.path();
  options.random_weights = true;
  Policy policy(options, 0);
  const std::vector<ParameterSpec>& specs = policy.parameters().specs();
  for (size_t i = 0; i < specs.size(); ++i) {
    std::vector<float> values;
    for (const double value : MixedNoise(static_cast<size_t>(specs[i].size()), i))
      values.push_back(static_cast<float>(specs[i].is_norm ? 1 + value / 4 : value));
    policy.parameters().Get(i).copy_(ViewOf(values).view(specs[i].shape));
  }

  const std::vector<int32_t> prompt = Ids(10, 100), completion = Ids(190, 101);
  const std::vector<ScoredSequence> sequences = {{prompt, completion}};
  std::vector<float> logprobs(190), entropies(190), coefficients;
  for (const double value : MixedNoise(190, 102)) coefficients.push_back(static_cast<float>(value));
  const nlohmann::json expected = nlohmann::json::parse(std::ifstream(GoldenFolder("large_vocabulary.json")));
  ForwardContextPtr context =
      policy.Forward(sequences, Copy::kCurrent, expected["temperature"], true, ViewOf(logprobs), ViewOf(entropies));
  policy.Backward(std::move(context), ViewOf(coefficients));

  // PyTorch sums the vocabulary in float32, a sum a vector lane: without AVX-512 half as many, and twice the error.
  for (size_t i = 0; i < logprobs.size(); ++i) {
    EXPECT_NEAR(logprobs[i], expected["logprobs"][i].get<double>(), 6e-5) << "token " << i;
    EXPECT_NEAR(entropies[i], expected["entropies"][i].get<double>(), 6e-4) << "token " << i;
  }
  for (size_t i = 0; i < specs.size(); ++i) {
    const std::vector<double> gradient = ToDoubles(policy.gradients().Get(i));
    const auto figures = expected["gradients"][specs[i].name].get<std::vector<double>>();
    const double scale = std::ranges::max(figures, {}, [](double value) { return std::abs(value); });
    for (uint64_t direction = 0; direction < 3; ++direction) {
      const std::vector<double> vector = MixedNoise(gradient.size(), 200 + direction);
      double product = 0;
      for (size_t j = 0; j < gradient.size(); ++j) product += gradient[j] * vector[j];
      EXPECT_NEAR(product, figures[direction], 1e-4 * std::abs(scale)) << specs[i].name << ", direction " << direction;
    }
  }
}

}  // namespace
}  // namespace kgrpo::policy
