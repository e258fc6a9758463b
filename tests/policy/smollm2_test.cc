// Real weights: SmolLM2-135M-Instruct continues as transformers does. Opt-in, since it needs the model
// folder of scripts/make_smollm2 (94 MB to download):
//   KGRPO_SMOLLM2=build/models/smollm2 build/tests/policy_model_test --gtest_filter='SmolLm2*'
#include <cstdlib>

#include "golden.h"

namespace kgrpo::policy {
namespace {

TEST(SmolLm2Test, ContinuesAsTransformersDoes) {
  const char* folder = std::getenv("KGRPO_SMOLLM2");
  if (folder == nullptr)
    GTEST_SKIP() << "KGRPO_SMOLLM2 is not set: no real weights to test with (scripts/make_smollm2 makes them)";
  std::ifstream file(GoldenFolder("smollm2_greedy.json"));
  const nlohmann::json expected = nlohmann::json::parse(file);
  PolicyOptions options;
  options.model = folder;
  Policy policy(options, 0);
  std::vector<GenerationRequest> requests;
  for (const auto& row : expected) {
    requests.push_back({row["prompt"].get<std::vector<int32_t>>(), 0});
    EXPECT_EQ(policy.tokenizer().Encode(row["text"].get<std::string>()), requests.back().prompt);
  }
  SamplingOptions sampling;
  sampling.temperature = 0;
  sampling.max_new_tokens = 64;
  std::vector<Completion> completions(requests.size());
  policy.Generate(
      requests, sampling, [&](const Completion& completion) { completions[completion.request] = completion; },
      [] { return false; });
  for (size_t i = 0; i < requests.size(); ++i) {
    // transformers was told not to stop at the end token; the policy does.
    std::vector<int32_t> ids = expected[i]["completion"].get<std::vector<int32_t>>();
    const auto end = std::ranges::find(ids, policy.config().end_ids.at(0));
    if (end != ids.end()) ids.erase(end + 1, ids.end());
    EXPECT_EQ(completions[i].ids, ids) << expected[i]["text"];
    for (size_t j = 0; j < ids.size() && j < completions[i].logprobs.size(); ++j) {
      EXPECT_NEAR(completions[i].logprobs[j], expected[i]["logprobs"][j].get<double>(), 1e-3);
    }
  }
}

}  // namespace
}  // namespace kgrpo::policy
