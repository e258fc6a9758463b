// On a CPU a completion's ids and log-probabilities depend on its prompt, seed, sampling and the parameters alone, bit
// for bit: every request is generated alone, then in random groups and orders.
#include <algorithm>
#include <bit>
#include <random>

#include "golden.h"

namespace kgrpo::policy {
namespace {

struct Model {
  const char* name;
  const char* folder;  // of tests/golden/policy
  bool odd_sizes;      // random weights of sizes that no vector divides, instead of the folder's
  bool bfloat16;
  int threads;
  double top_p;
};

class BatchInvarianceTest : public ::testing::TestWithParam<Model> {
 protected:
  PolicyOptions Options() {
    PolicyOptions options = GoldenOptions(GetParam().folder);
    options.bfloat16 = GetParam().bfloat16;
    options.threads = GetParam().threads;
    if (!GetParam().odd_sizes) return options;
    nlohmann::json config = nlohmann::json::parse(std::ifstream(options.model + "/config.json"));
    config.update({{"vocab_size", 1003},
                   {"hidden_size", 190},
                   {"intermediate_size", 301},
                   {"num_attention_heads", 5},
                   {"num_key_value_heads", 1},
                   {"initializer_range", 0.1}});
    config["head_dim"] = 38;
    std::filesystem::copy(options.model + "/tokenizer.json", folder_.path());
    std::ofstream(folder_.path() + "/config.json") << config;
    options.model = folder_.path();
    options.random_weights = true;
    return options;
  }

  // Equal prompts, prompts with a common beginning, and others, of 1 to 200 tokens.
  static std::vector<GenerationRequest> MakeRequests(size_t count) {
    std::mt19937_64 engine(7);
    const auto draw = [&](size_t size) {
      std::vector<int32_t> ids(size);
      for (int32_t& id : ids) id = static_cast<int32_t>(3 + engine() % 297);
      return ids;
    };
    const std::vector<int32_t> common = draw(90);
    std::vector<GenerationRequest> requests(count);
    for (size_t i = 0; i < count; ++i) {
      std::vector<int32_t>& prompt = requests[i].prompt;
      if (i % 4 == 1) {
        prompt = requests[i - 1].prompt;
      } else if (i % 4 == 2) {
        prompt = common;
        const std::vector<int32_t> rest = draw(engine() % 110);
        prompt.insert(prompt.end(), rest.begin(), rest.end());
      } else {
        prompt = draw(1 + engine() % 200);
      }
      requests[i].seed = engine();
    }
    return requests;
  }

  struct Bits {
    std::vector<int32_t> ids;
    std::vector<uint32_t> logprobs;
    bool operator==(const Bits&) const = default;
  };

  std::vector<Bits> Generate(Policy& policy, const std::vector<GenerationRequest>& requests) {
    SamplingOptions sampling;
    sampling.max_new_tokens = 8;
    sampling.temperature = 0.9;
    sampling.top_p = GetParam().top_p;
    std::vector<Bits> made(requests.size());
    policy.Generate(
        requests, sampling,
        [&](const Completion& completion) {
          Bits& bits = made[completion.request];
          bits.ids = completion.ids;
          for (const float logprob : completion.logprobs) bits.logprobs.push_back(std::bit_cast<uint32_t>(logprob));
        },
        [] { return false; });
    return made;
  }

  TemporaryFolder folder_;
};

TEST_P(BatchInvarianceTest, ARequestGetsTheSameBitsInAnyCompany) {
  PolicyOptions options = Options();
  if (options.device != "cpu") GTEST_SKIP() << "what a GPU's products round depends on their shape";
  Policy policy(options, 3);
  options.max_sequences = 5;
  options.max_tokens_per_chunk = 64;
  Policy in_parts(options, 3);

  const std::vector<GenerationRequest> requests = MakeRequests(200);
  std::vector<Bits> alone;
  for (const GenerationRequest& request : requests) alone.push_back(Generate(policy, {request})[0]);

  std::mt19937_64 engine(11);
  std::vector<size_t> order(requests.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  for (int round = 0; round < 3; ++round) {
    std::ranges::shuffle(order, engine);
    for (size_t begin = 0; begin < order.size();) {
      const size_t end = std::min(order.size(), begin + 1 + engine() % (round == 0 ? 200 : 40));
      std::vector<GenerationRequest> group;
      for (size_t i = begin; i < end; ++i) group.push_back(requests[order[i]]);
      const std::vector<Bits> together = Generate(round == 2 ? in_parts : policy, group);
      for (size_t i = begin; i < end; ++i) {
        ASSERT_EQ(together[i - begin].ids, alone[order[i]].ids) << "request " << order[i] << " among " << end - begin;
        ASSERT_EQ(together[i - begin].logprobs, alone[order[i]].logprobs)
            << "request " << order[i] << " among " << end - begin;
      }
      begin = end;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, BatchInvarianceTest,
                         ::testing::Values(Model{"qwen2", "qwen2", false, false, 1, 1.0},
                                           Model{"qwen3_bfloat16", "qwen3", false, true, 1, 1.0},
                                           Model{"llama_top_p", "llama", false, false, 1, 0.9},
                                           Model{"odd_sizes", "qwen2", true, false, 1, 1.0},
                                           Model{"odd_sizes_bfloat16_two_threads", "qwen2", true, true, 2, 0.95}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace kgrpo::policy
