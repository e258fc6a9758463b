// The engine and the fused kernels on this machine's first two GPUs, each in its turn: the CPU's samples, scores and
// gradients in float32, and the same bits on both GPUs in bfloat16. Skipped without a GPU.
#include <ATen/TensorOperators.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <c10/core/InferenceMode.h>
#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <thread>
#include <tuple>

#include "golden.h"
#include "policy_qwen/device.h"
#include "policy_qwen/generation/generation_engine.h"
#include "policy_qwen/gpu/fused_ops.h"
#include "policy_qwen/gpu/gpu_library.h"
#include "policy_qwen/model/random.h"

namespace kgrpo::policy {
namespace {

int GpuCount() {
  try {
    return DeviceCount();
  } catch (const Error&) {
    return 0;  // libtorch has no CUDA library
  }
}

class GpuPolicyTest : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (GpuCount() <= GetParam()) GTEST_SKIP() << "needs " << GetParam() + 1 << " GPUs, and there are " << GpuCount();
    // The first GPU is in use and current, as it is for a rank beside an evaluator.
    OpenDevice("cuda:0");
    WaitForDevice(at::ones({1}, at::device(at::Device(at::kCUDA, 0))).device());
    std::filesystem::copy_file(GoldenFolder("qwen2") + "/tokenizer.json", folder_.path() + "/tokenizer.json");
    WriteConfig(256);
    for (uint64_t i = 0; i < 24; ++i) {
      std::vector<int32_t> prompt(20 + RandomBits(i, 0) % 200);
      for (size_t j = 0; j < prompt.size(); ++j) prompt[j] = static_cast<int32_t>(3 + RandomBits(i, j + 1) % 700);
      requests_.push_back({std::move(prompt), i});
    }
  }

  // Of a model with four heads.
  void WriteConfig(int hidden_size) const {
    std::ofstream(folder_.path() + "/config.json")
        << R"({"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "vocab_size": 768, "hidden_size": )"
        << hidden_size << R"(,
               "intermediate_size": 384, "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2,
               "rope_theta": 10000.0, "max_position_embeddings": 512, "rms_norm_eps": 1e-6, "hidden_act": "silu",
               "initializer_range": )"
        << 1.6 / std::sqrt(hidden_size) << R"(, "tie_word_embeddings": true, "eos_token_id": 2})";
  }

  std::string device() const { return "cuda:" + std::to_string(GetParam()); }

  struct Results {
    std::vector<Completion> completions;
    std::vector<double> logprobs, gradients;
  };

  // Completions (those of `given`, if there are any), their scores, and the derivative of the scores' mean. Generation
  // has a thread of its own, as in a run.
  Results Run(const std::string& device, bool bfloat16, double top_p, const std::vector<Completion>& given = {}) {
    PolicyOptions options;
    options.model = folder_.path();
    options.random_weights = true;
    options.bfloat16 = bfloat16;
    options.device = device;
    options.engine_generation = device != "cpu" && given.empty();
    Policy policy(options, 5);
    Results results;
    results.completions = given;
    results.completions.resize(requests_.size());
    if (given.empty()) std::thread([&] { Generate(policy, top_p, results.completions); }).join();

    std::vector<ScoredSequence> sequences;
    size_t tokens = 0;
    for (size_t i = 0; i < requests_.size(); ++i) {
      sequences.push_back({requests_[i].prompt, results.completions[i].ids});
      tokens += results.completions[i].ids.size();
    }
    std::vector<float> logprobs(tokens), ones(tokens, 1.0F / static_cast<float>(tokens));
    const c10::InferenceMode inference;
    ForwardContextPtr context = policy.Forward(sequences, Copy::kCurrent, 1.0, true, ViewOf(logprobs), {});
    policy.ZeroGradients();
    policy.Backward(std::move(context), ViewOf(ones));
    results.logprobs.assign(logprobs.begin(), logprobs.end());
    results.gradients = ToDoubles(policy.gradients().buffer());
    return results;
  }

  void Generate(Policy& policy, double top_p, std::vector<Completion>& completions) const {
    const SamplingOptions sampling = {24, 1.0, 0, top_p, 0.0};
    GenerationScheduler& scheduler = policy.Engine();
    for (size_t i = 0; i < requests_.size(); ++i) scheduler.Submit(i, requests_[i], sampling);
    while (!scheduler.idle()) {
      scheduler.Turn([&](const Completion& completion) { completions[completion.request] = completion; });
      WaitForDevice(policy.device());  // as between the slices of a run
    }
  }

  TemporaryFolder folder_;
  std::vector<GenerationRequest> requests_;
};

// The GPU adds in another order, which moves log-probabilities by up to 5e-6. Without a filter the draw goes through
// the vocabulary by id, and the tokens are the CPU's. With top_p it goes by falling logit, and neighbours whose logits
// differ by less change places: noise of 1e-6 to 1e-5 on the CPU's logits changes 0.3 to 1.3 of these 24 completions,
// at most 3 in 40 repeats. The CPU then finds the two tokens of the first difference about equally likely.
TEST_P(GpuPolicyTest, DoesWhatTheCpuDoes) {
  for (const double top_p : {1.0, 0.95}) {
    SCOPED_TRACE(top_p);
    const Results drawn = Run("cpu", false, top_p), found = Run(device(), false, top_p);
    const Results expected = Run("cpu", false, top_p, found.completions);
    size_t differ = 0, token = 0;
    for (size_t i = 0; i < requests_.size(); ++i) {
      const Completion &ours = found.completions[i], &cpus = drawn.completions[i];
      const auto same = static_cast<size_t>(std::ranges::mismatch(ours.ids, cpus.ids).in1 - ours.ids.begin());
      if (ours.ids != cpus.ids) {
        ++differ;
        ASSERT_LT(same, std::min(ours.ids.size(), cpus.ids.size())) << i;  // where one ends, the other does
        EXPECT_NEAR(expected.logprobs[token + same], cpus.logprobs[same], 0.02) << i << ", token " << same;
      }
      for (size_t j = 0; j < ours.ids.size(); ++j, ++token) {
        ASSERT_NEAR(ours.logprobs[j], expected.logprobs[token], 1e-4) << i << ", token " << j;
        ASSERT_NEAR(found.logprobs[token], expected.logprobs[token], 1e-4) << i << ", token " << j;
      }
    }
    ASSERT_GT(token, requests_.size() * 10);
    EXPECT_LE(differ, top_p < 1 ? 4 : 0);
    EXPECT_LT(RelativeL2(found.gradients, expected.gradients), 1e-4);
  }
}

// Heads of 20 and 264 elements, which FlashAttention-2 does not take, train in bfloat16 too.
TEST_P(GpuPolicyTest, AnyHeadSizeTrains) {
  for (const int hidden_size : {80, 1056}) {
    WriteConfig(hidden_size);
    const Results expected = Run("cpu", false, 1.0), found = Run(device(), true, 1.0, expected.completions);
    EXPECT_LT(RelativeL2(found.logprobs, expected.logprobs), 0.1) << hidden_size;
    EXPECT_LT(RelativeL2(found.gradients, expected.gradients), 0.3) << hidden_size;
  }
}

TEST_P(GpuPolicyTest, EveryGpuGivesTheSameBits) {
  if (GetParam() == 0) GTEST_SKIP() << "compared with itself";
  const Results expected = Run("cuda:0", true, 0.95), found = Run(device(), true, 0.95);
  for (size_t i = 0; i < requests_.size(); ++i) {
    EXPECT_EQ(found.completions[i].ids, expected.completions[i].ids) << i;
    EXPECT_EQ(found.completions[i].logprobs, expected.completions[i].logprobs) << i;
  }
  EXPECT_EQ(found.logprobs, expected.logprobs);
  EXPECT_EQ(found.gradients, expected.gradients);
}

// Prompts in bfloat16 by pinned products and flash attention: whole or in chunks, alone or among others, with shared
// pages or without. A chunk of one row is the shortest, one of 8,192 takes all.
TEST_P(GpuPolicyTest, PromptsHaveTheSameBitsInAnyChunks) {
  const DeviceScope scope(OpenDevice(device()));
  const at::Device gpu = OpenDevice(device());
  for (const auto& [head_size, heads, kv_heads] : {std::tuple{64, 14, 2}, {128, 8, 8}}) {
    ModelConfig config;
    config.architecture = Architecture::kQwen2;
    config.vocabulary_size = 768;
    config.hidden_size = 896;
    config.intermediate_size = 4864;
    config.layer_count = 3;
    config.head_count = heads;
    config.kv_head_count = kv_heads;
    config.head_size = head_size;
    config.context_length = 2048;
    config.initializer_range = 0.05;
    config.attention_input_bias = true;
    ParameterSet parameters(config, at::kBFloat16, gpu);
    InitializeParameters(config, 3, parameters);
    RotaryTable rotary(config, at::kBFloat16, gpu);
    std::vector<GenerationRequest> requests;
    for (const size_t length : {1, 2, 15, 16, 17, 33, 127, 128, 129, 200, 512, 513, 700, 1150, 1500, 1500, 1500}) {
      std::vector<int32_t> prompt(length);
      // The last three begin with the same 1,400 tokens.
      const uint64_t key = length == 1500 ? 99 : requests.size();
      for (size_t j = 0; j < length; ++j) {
        prompt[j] = static_cast<int32_t>(RandomBits(j < 1400 ? key : requests.size(), j) % 700);
      }
      requests.push_back({std::move(prompt), requests.size()});
    }
    const auto run = [&](int32_t slots, int32_t rows, std::span<const GenerationRequest> which) {
      GenerationEngine engine(config, parameters.weights(), rotary, gpu,
                              {.max_sequences = slots, .memory_mib = 2048, .rows_a_read = rows});
      EXPECT_THAT(engine.prompt_note(), ::testing::StartsWith("prompts by FlashAttention-2 and 896 x "));
      std::vector<Completion> completions(which.size());
      engine.scheduler().Run(which, {4, 1.0, 0, 1.0, 0.0},
                             [&](const Completion& done) { completions[done.request] = done; });
      return completions;
    };
    const std::vector<Completion> whole = run(32, 8192, requests);
    for (const auto& [slots, rows] : {std::pair{32, 1000}, {32, 129}, {7, 64}, {1, 8192}, {1, 77}, {2, 1}}) {
      const std::vector<Completion> found = run(slots, rows, requests);
      for (size_t i = 0; i < requests.size(); ++i) {
        EXPECT_EQ(found[i].ids, whole[i].ids) << slots << " slots, " << rows << " rows, request " << i;
        EXPECT_EQ(found[i].logprobs, whole[i].logprobs) << slots << " slots, " << rows << " rows, request " << i;
      }
    }
  }
}

// More rows than a grid's y may count: the derivative replaces the logits in all of them.
TEST_P(GpuPolicyTest, ManyRowsAtATime) {
  const c10::InferenceMode inference;
  const at::Device gpu = OpenDevice(device());
  const c10::DeviceGuard guard(gpu);
  constexpr int64_t kRows = 70'000, kVocabulary = 256;
  const auto& kernels = OpenGpuTable<GpuKernels>();
  const FusedOps ops(kernels, gpu, [gpu] { return FreeBytesOf(gpu); });
  for (const at::ScalarType type : {at::kBFloat16, at::kFloat}) {
    const at::Tensor logits = at::randn({kRows, kVocabulary}, at::device(gpu).dtype(type));
    const at::Tensor targets = at::randint(kVocabulary, {kRows}, at::device(gpu).dtype(at::kLong));
    const at::Tensor d = at::ones({kRows}, at::device(gpu).dtype(at::kFloat));
    const at::Tensor scores = at::log_softmax(logits.to(at::kFloat), 1);
    at::Tensor expected = scores.exp().neg_();
    expected.scatter_add_(1, targets.unsqueeze(1), at::ones({kRows, 1}, expected.options()));
    const Ops::Logprobs found = ops.TokenLogprobs(logits, targets, 1.0, true);
    EXPECT_LT((found.logprobs - scores.gather(1, targets.unsqueeze(1)).squeeze(1)).abs().max().item<float>(), 1e-4);
    ops.TokenLogprobsBackward(logits, targets, found.normalizers, d, 1.0);
    EXPECT_LT((logits.to(at::kFloat) - expected).abs().max().item<float>(), type == at::kFloat ? 1e-5 : 5e-3);
  }
}

TEST_P(GpuPolicyTest, RefusedLaunchIsAnError) {
  const at::Device gpu = OpenDevice(device());
  const auto& kernels = OpenGpuTable<GpuKernels>();
  const GpuStream stream = {gpu.index(), CurrentStream(gpu)};
  EXPECT_EQ(kernels.check_card(gpu.index()), nullptr);
  const char* failure = kernels.swiglu(Element::kFloat32, nullptr, int64_t{1} << 50, 64, nullptr, stream);
  EXPECT_THAT(failure == nullptr ? "" : failure, ::testing::StartsWith("swiglu: invalid"));
  WaitForDevice(gpu);  // libtorch knows nothing of it
  EXPECT_NE(kernels.swiglu(Element::kFloat32, nullptr, 1, 64, nullptr, {GpuCount(), nullptr}), nullptr);
  const at::Tensor x = at::zeros({1, 128}, at::device(gpu));
  EXPECT_EQ(kernels.swiglu(Element::kFloat32, x.data_ptr(), 1, 64, x.data_ptr(), stream), nullptr);
}

INSTANTIATE_TEST_SUITE_P(EachGpu, GpuPolicyTest, ::testing::Values(0, 1),
                         [](const auto& info) { return "Cuda" + std::to_string(info.param); });

}  // namespace
}  // namespace kgrpo::policy
