// Milliseconds of a training step: log-probabilities under a frozen reference, forward, backward, clipping and AdamW,
// with random weights. bench/training.py alternates it with transformers.
//   build/bin/training --device cuda --dtype bfloat16 --training fused --sequences 16
#include <kgrpo/sdk/error.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include <ATen/ops/from_blob.h>

#include "common/figures.h"
#include "model_folder.h"
#include "policy_qwen/device.h"
#include "policy_qwen/model/random.h"
#include "policy_qwen/policy.h"
#include "policy_spans.h"
#include "trainer_shared/adamw.h"
#include "trainer_shared/cuda_tensor_math.h"

namespace {

using kgrpo::policy::Copy;

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("milliseconds of a training step of policy_qwen, by rounds");
  std::string shape = "qwen2-0.5b", dtype = "bfloat16", device = "cpu";
  kgrpo::policy::PolicyOptions options;
  size_t count = 16, prompt_tokens = 512, completion_tokens = 128, rounds = 7;
  std::string training = "libtorch";
  app.add_option("--shape", shape, "tiny, small-64, 135m or qwen2-0.5b")
      ->check(CLI::IsMember(kgrpo::bench::ModelShapes()));
  app.add_option("--sequences", count, "of a step")->capture_default_str();
  app.add_option("--prompt-tokens", prompt_tokens, "a sequence")->capture_default_str();
  app.add_option("--completion-tokens", completion_tokens, "a sequence")->capture_default_str();
  app.add_option("--dtype", dtype, "float32 or bfloat16")->capture_default_str();
  app.add_option("--device", device, "cpu or cuda:N")->capture_default_str();
  app.add_option("--training", training, "libtorch or fused")->capture_default_str();
  app.add_option("--threads", options.threads, "CPU threads")->capture_default_str();
  app.add_option("--rounds", rounds, "timed steps")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  try {
    const kgrpo::bench::ModelFolder folder(shape);
    options.model = folder.path();
    options.random_weights = true;
    options.bfloat16 = dtype == "bfloat16";
    options.device = device;
    options.fused_training = training == "fused";
    kgrpo::policy::Policy policy(options, 1);
    policy.FreezeReference();
    kgrpo::trainer::AdamW adamw(kgrpo::bench::SpansOf(policy), {}, kgrpo::trainer::MakeCudaTensorMath);

    std::vector<std::vector<int32_t>> ids(count);
    std::vector<kgrpo::policy::ScoredSequence> sequences;
    for (size_t i = 0; i < count; ++i) {
      for (uint64_t j = 0; j < prompt_tokens + completion_tokens; ++j)
        ids[i].push_back(static_cast<int32_t>(3 + kgrpo::policy::RandomBits(i, j) % 700));
      const std::span<const int32_t> all = ids[i];
      sequences.push_back({all.first(prompt_tokens), all.last(completion_tokens)});
    }
    std::vector<float> values(count * completion_tokens), d(values.size(), 1.0F / static_cast<float>(values.size()));
    const auto view = [](std::vector<float>& of) {
      return at::from_blob(of.data(), {static_cast<int64_t>(of.size())}, at::dtype(at::kFloat));
    };
    std::vector<double> times;
    double norm = 0;
    for (size_t round = 0; round <= rounds; ++round) {
      kgrpo::policy::WaitForDevice(policy.device());
      const auto start = std::chrono::steady_clock::now();
      policy.Forward(sequences, Copy::kReference, 1.0, false, view(values), {});
      kgrpo::policy::ForwardContextPtr context = policy.Forward(sequences, Copy::kCurrent, 1.0, true, view(values), {});
      policy.ZeroGradients();
      policy.Backward(std::move(context), view(d));
      norm = adamw.GradientNorm();
      adamw.Step(1e-6, std::min(1.0, 1.0 / (norm + 1e-6)));
      kgrpo::policy::WaitForDevice(policy.device());
      if (round > 0) times.push_back(1e3 * kgrpo::bench::SecondsSince(start));  // the first warms up
    }
    std::printf("%s %s %s %s, %zu x (%zu + %zu): %.2f ms a step (least %.2f, most %.2f), gradient norm %.6f\n",
                shape.c_str(), dtype.c_str(), device.c_str(), training.c_str(), count, prompt_tokens, completion_tokens,
                kgrpo::bench::Median(times), kgrpo::bench::Quantile(times, 0), kgrpo::bench::Quantile(times, 1), norm);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "training: %s\n", error.what());
    return 1;
  }
  return 0;
}
