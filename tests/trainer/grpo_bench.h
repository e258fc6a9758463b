// Helpers of the tests of trainer_grpo: random samples, and a trainer over a policy whose gradients are known. Used
// by trainer_grpo_test.cc, trainer_grpo_refusal_test.cc, trainer_grpo_state_test.cc and grpo_options_test.cc.
#ifndef KGRPO_TESTS_TRAINER_GRPO_BENCH_H
#define KGRPO_TESTS_TRAINER_GRPO_BENCH_H

#include "bigram_policy.h"
#include "fake_host.h"
#include "options_json.h"
#include "recorded_sink.h"
#include "test.h"
#include "trainer_grpo/grpo_options.h"
#include "trainer_grpo/grpo_trainer.h"

namespace kgrpo::grpo {

inline constexpr size_t kVocabulary = 11;

// Random samples: trajectories of four rounds over three problems, with true behaviour log-probabilities.
struct Batch {
  Batch(const testing::BigramPolicy& policy, uint64_t seed, size_t trajectories, double temperature = 1.0) {
    std::mt19937_64 engine(seed);
    auto draw = [&](size_t size) {
      std::vector<int32_t> ids(size);
      for (int32_t& id : ids) id = static_cast<int32_t>(engine() % kVocabulary);
      return ids;
    };
    const size_t count = trajectories * 4;
    for (size_t i = 0; i < count; ++i) {
      prompts.push_back(draw(1 + engine() % 3));
      completions.push_back(draw(1 + engine() % 6));
      logprobs.emplace_back(completions[i].size());
      policy.Score({prompts[i].data(), prompts[i].size(), completions[i].data(), completions[i].size()},
                   KGRPO_POLICY_CURRENT, temperature, logprobs[i].data(), nullptr);
    }
    for (size_t i = 0; i < count; ++i) {
      samples.push_back({sizeof(kgrpo_sample), prompts[i].data(), prompts[i].size(), completions[i].data(),
                         logprobs[i].data(), completions[i].size(), static_cast<double>(engine() % 100) / 50, 0.5,
                         i / 4, static_cast<uint32_t>(i % 4), 4, static_cast<uint32_t>(i / 4 % 3),
                         completions[i].size() == 6 ? 1 : 0});
    }
  }
  std::vector<std::vector<int32_t>> prompts, completions;
  std::vector<std::vector<float>> logprobs;
  std::vector<kgrpo_sample> samples;
};

// A policy, a trainer over it, and what they need.
struct Bench {
  explicit Bench(const nlohmann::json& options = nlohmann::json::object(), bool bfloat16 = false, uint64_t steps = 10)
      : policy(kVocabulary, bfloat16),
        trainer(host.get(), ReadGrpoOptions(testing::OptionsJson(GrpoOptionsSchema(), options)), nullptr) {
    policy.FillRandomly(1);
    policy.FreezeReference();
    trainer.Begin(&testing::BigramPolicy::Api(), policy.get(),
                  {sizeof(kgrpo_trainer_plan), steps, 1.0, 6, 0, 0, 0, 0, 0, 0});
  }
  void Update(const Batch& batch) {
    trainer.Update(testing::PointersTo(batch.samples).data(), batch.samples.size(), sink.get());
  }
  std::vector<double> Values() const {
    std::vector<double> all = policy.Values(0);
    for (double value : policy.Values(1)) all.push_back(value);
    return all;
  }
  testing::FakeHost host;
  testing::BigramPolicy policy;
  GrpoTrainer trainer;
  testing::RecordedSink sink;
};

// The code and text of the kgrpo::Error that `body` throws.
inline std::string ErrorOf(const std::function<void()>& body, kgrpo_error_code code = KGRPO_ERROR_INVALID) {
  return test::MessageOf(body, code);
}

inline double LargestDifference(const std::vector<double>& a, const std::vector<double>& b) {
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

}  // namespace kgrpo::grpo
#endif
