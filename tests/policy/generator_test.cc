// Batched generation: each sequence depends on its prompt and seed alone, ends at the right token, and reports the same
// log-probabilities as the trainer computes.
#include <c10/core/InferenceMode.h>
#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <set>

#include "golden.h"
#include "policy_qwen/model/random.h"

namespace kgrpo::policy {
namespace {

class GeneratorTest : public ::testing::TestWithParam<std::string> {
 protected:
  std::vector<Completion> Run(Policy& policy, const std::vector<GenerationRequest>& requests,
                              const SamplingOptions& options) {
    std::vector<Completion> completions(requests.size());
    std::set<size_t> seen;
    policy.Generate(
        requests, options,
        [&](const Completion& completion) {
          EXPECT_TRUE(seen.insert(completion.request).second) << "pushed twice";
          completions[completion.request] = completion;
        },
        [] { return false; });
    EXPECT_EQ(seen.size(), requests.size());
    return completions;
  }

  // Prompts of different lengths, some of them twice.
  static std::vector<GenerationRequest> MakeRequests(size_t count) {
    std::vector<GenerationRequest> requests(count);
    for (size_t i = 0; i < count; ++i) {
      const uint64_t prompt = i % 7;
      const uint64_t length = 1 + RandomBits(prompt, 0) % 30;
      for (uint64_t j = 1; j <= length; ++j)
        requests[i].prompt.push_back(static_cast<int32_t>(3 + RandomBits(prompt, j) % 297));
      requests[i].seed = 1000 + i;
    }
    return requests;
  }
};

TEST_P(GeneratorTest, BehaviourLogprobsAreTheTrainers) {
  for (const double temperature : {1.0, 0.6}) {
    Policy policy(GoldenOptions(GetParam()), 0);
    SamplingOptions options;
    options.temperature = temperature;
    options.max_new_tokens = 40;
    options.top_p = 0.95;
    const std::vector<GenerationRequest> requests = MakeRequests(20);
    const std::vector<Completion> completions = Run(policy, requests, options);
    std::vector<ScoredSequence> sequences;
    size_t count = 0;
    for (size_t i = 0; i < requests.size(); ++i) {
      sequences.push_back({requests[i].prompt, completions[i].ids});
      count += completions[i].ids.size();
    }
    std::vector<float> logprobs(count);
    policy.Forward(sequences, Copy::kCurrent, temperature, false, ViewOf(logprobs), {});
    size_t next = 0;
    for (const Completion& completion : completions) {
      for (const float behaviour : completion.logprobs) ASSERT_NEAR(behaviour, logprobs[next++], 1e-4);
    }
  }
}

TEST_P(GeneratorTest, EachSequenceIsItsOwn) {
  Policy policy(GoldenOptions(GetParam()), 0);
  PolicyOptions small_options = GoldenOptions(GetParam());
  small_options.max_sequences = 3;
  small_options.max_tokens_per_chunk = 16;
  Policy small(small_options, 0);
  SamplingOptions options;
  options.max_new_tokens = 25;
  std::vector<GenerationRequest> requests = MakeRequests(20);
  const std::vector<Completion> together = Run(policy, requests, options);
  const std::vector<Completion> in_parts = Run(small, requests, options);
  std::vector<GenerationRequest> reversed(requests.rbegin(), requests.rend());
  const std::vector<Completion> backwards = Run(policy, reversed, options);
  for (size_t i = 0; i < requests.size(); ++i) {
    EXPECT_EQ(together[i].ids, Run(policy, {requests[i]}, options)[0].ids) << "request " << i;
    EXPECT_EQ(together[i].ids, in_parts[i].ids) << "request " << i;
    EXPECT_EQ(together[i].ids, backwards[requests.size() - 1 - i].ids) << "request " << i;
  }
  // Same prompt, other seed: another completion.
  EXPECT_NE(together[0].ids, together[7].ids);
}

TEST_P(GeneratorTest, EndsAtAnEndTokenOrALength) {
  Policy policy(GoldenOptions(GetParam()), 0);
  ASSERT_EQ(policy.config().end_ids, (std::vector<int32_t>{2, 0})) << "from generation_config.json";
  SamplingOptions options;
  options.max_new_tokens = 60;
  options.temperature = 3;  // nearly uniform: end tokens come soon
  bool some_ended = false, some_did_not = false;
  for (const Completion& completion : Run(policy, MakeRequests(60), options)) {
    ASSERT_FALSE(completion.ids.empty());
    ASSERT_EQ(completion.ids.size(), completion.logprobs.size());
    const auto is_end = [](int32_t id) { return id == 2 || id == 0; };
    EXPECT_EQ(is_end(completion.ids.back()), completion.ended);
    EXPECT_EQ(std::count_if(completion.ids.begin(), completion.ids.end(), is_end), completion.ended ? 1 : 0);
    if (!completion.ended) {
      EXPECT_EQ(completion.ids.size(), 60u);
    }
    some_ended |= completion.ended;
    some_did_not |= !completion.ended;
  }
  EXPECT_TRUE(some_ended);
  EXPECT_TRUE(some_did_not);
}

TEST_P(GeneratorTest, StopsWhereTheContextEnds) {
  Policy policy(GoldenOptions(GetParam()), 0);
  const int64_t context = policy.config().context_length;
  std::vector<GenerationRequest> requests(2);
  requests[0].prompt.assign(static_cast<size_t>(context - 3), 5);
  requests[1].prompt.assign(static_cast<size_t>(context - 1), 5);
  SamplingOptions options;
  options.max_new_tokens = 10;
  options.temperature = 0;
  const std::vector<Completion> completions = Run(policy, requests, options);
  if (!completions[0].ended) {
    EXPECT_EQ(completions[0].ids.size(), 3u);
  }
  EXPECT_EQ(completions[1].ids.size(), 1u);
}

TEST_P(GeneratorTest, RefusesBadRequests) {
  Policy policy(GoldenOptions(GetParam()), 0);
  const auto message = [&](const std::vector<int32_t>& prompt) -> std::string {
    try {
      Run(policy, {{{3, 4}, 0}, {prompt, 0}}, {});
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(message({}), "request 1: the prompt is empty");
  EXPECT_EQ(message({5, -1}), "request 1: token 1 is -1, outside the model's vocabulary of 300");
  EXPECT_EQ(message({300}), "request 1: token 0 is 300, outside the model's vocabulary of 300");
  EXPECT_EQ(message(std::vector<int32_t>(256, 5)),
            "request 1: its prompt of 256 tokens leaves no room in the context of 256");
}

TEST_P(GeneratorTest, CancelEndsIt) {
  Policy policy(GoldenOptions(GetParam()), 0);
  SamplingOptions options;
  options.max_new_tokens = 200;
  int asked = 0;
  try {
    policy.Generate(
        MakeRequests(5), options, [](const Completion&) {}, [&] { return ++asked == 4; });
    FAIL() << "not cancelled";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), KGRPO_ERROR_CANCELLED);
    EXPECT_EQ(asked, 4);
  }
}

INSTANTIATE_TEST_SUITE_P(All, GeneratorTest, ::testing::ValuesIn(GoldenModels()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace kgrpo::policy
