// Milliseconds of a training step: log-probabilities under a frozen reference, forward, backward, clipping and AdamW,
// with random weights, of all weights or of a LoRA adapter. bench/training.py alternates it with transformers.
//   build/bin/training --device cuda --dtype bfloat16 --training fused --sequences 16
//   build/bin/training --device cuda --training fused --adapter 16
#include <kgrpo/sdk/error.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <ATen/ops/from_blob.h>
#include <c10/core/InferenceMode.h>

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
using kgrpo::policy::Policy;
using kgrpo::policy::PolicyOptions;

// The policy; an adapter refuses random weights, so it gets them as a model's file in options->model.
std::unique_ptr<Policy> MakePolicy(PolicyOptions* options, int64_t adapter_rank) {
  std::unique_ptr<Policy> made;
  if (options->random_weights || adapter_rank == 0) made = std::make_unique<Policy>(*options, 1);
  if (adapter_rank == 0) return made;
  if (options->random_weights) made->Save(Copy::kCurrent, options->model);
  made.reset();
  options->random_weights = false;
  options->adapter = kgrpo::policy::AdapterOptions{.rank = adapter_rank};
  made = std::make_unique<Policy>(*options, 1);
  return made;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("milliseconds of a training step of policy_qwen, by rounds");
  std::string shape = "qwen2-0.5b", dtype = "bfloat16", device = "cpu";
  kgrpo::policy::PolicyOptions options;
  size_t count = 16, prompt_tokens = 512, completion_tokens = 128, rounds = 7;
  int64_t adapter_rank = 0;
  std::string model;
  app.add_option("--shape", shape, "of the random weights")->check(CLI::IsMember(kgrpo::bench::ModelShapes()));
  app.add_option("--model", model, "a model's folder, in place of random weights of --shape");
  app.add_option("--sequences", count, "of a step")->capture_default_str();
  app.add_option("--prompt-tokens", prompt_tokens, "a sequence")->capture_default_str();
  app.add_option("--completion-tokens", completion_tokens, "a sequence")->capture_default_str();
  app.add_option("--dtype", dtype, "float32 or bfloat16")->capture_default_str();
  app.add_option("--device", device, "cpu or cuda:N")->capture_default_str();
  app.add_option("--adapter", adapter_rank, "rank of a LoRA adapter of all linear layers; 0: all weights train")
      ->capture_default_str();
  app.add_option("--threads", options.threads, "CPU threads")->capture_default_str();
  app.add_option("--rounds", rounds, "timed steps")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  try {
    const c10::InferenceMode inference;
    const kgrpo::bench::ModelFolder folder(shape);
    options.model = model.empty() ? folder.path() : model;
    options.random_weights = model.empty();
    options.bfloat16 = dtype == "bfloat16";
    options.device = device;
    const std::unique_ptr<Policy> owned = MakePolicy(&options, adapter_rank);
    Policy& policy = *owned;
    policy.FreezeReference();
    if (policy.adapter() != nullptr) {  // a zero B would leave A without a gradient
      at::Tensor(policy.adapter()->factors().buffer()).add_(1e-3);
    }
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
    const std::string what = adapter_rank == 0 ? "" : ", adapter of rank " + std::to_string(adapter_rank);
    std::printf("%s %s %s%s, %zu x (%zu + %zu): %.2f ms a step (least %.2f, most %.2f), gradient norm %.6f\n",
                shape.c_str(), dtype.c_str(), device.c_str(), what.c_str(), count, prompt_tokens, completion_tokens,
                kgrpo::bench::Median(times), kgrpo::bench::Quantile(times, 0), kgrpo::bench::Quantile(times, 1), norm);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "training: %s\n", error.what());
    return 1;
  }
  return 0;
}
