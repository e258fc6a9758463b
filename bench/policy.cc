// Milliseconds of a decode step and of reading prompts, with random weights, and how far the completions'
// log-probabilities are from those that training computes; bench/policy.py alternates it with transformers. --check
// compares the engine's tokens with the CPU's and its bits alone and together instead.
//   build/bin/policy --device cuda --dtype bfloat16 --batch 16
#include <kgrpo/sdk/error.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include <ATen/ops/from_blob.h>

#include "common/figures.h"
#include "model_folder.h"
#include "policy_qwen/device.h"
#include "policy_qwen/model/random.h"
#include "policy_qwen/policy.h"

namespace {

using kgrpo::policy::Completion;
using kgrpo::policy::GenerationRequest;
using kgrpo::policy::Policy;
using kgrpo::policy::SamplingOptions;

// Different from the first token on: nothing can be shared.
std::vector<GenerationRequest> MakeRequests(size_t count, size_t prompt_tokens) {
  std::vector<GenerationRequest> requests(count);
  for (size_t i = 0; i < count; ++i) {
    for (uint64_t j = 0; j < prompt_tokens; ++j)
      requests[i].prompt.push_back(static_cast<int32_t>(3 + (j == 0 ? i : kgrpo::policy::RandomBits(i, j) % 700)));
    requests[i].seed = i;
  }
  return requests;
}

std::vector<Completion> Generate(Policy& policy, const std::vector<GenerationRequest>& requests,
                                 const SamplingOptions& sampling) {
  std::vector<Completion> completions(requests.size());
  policy.Engine().Run(requests, sampling,
                      [&](const Completion& completion) { completions[completion.request] = completion; });
  return completions;
}

// Milliseconds.
double Time(Policy& policy, const std::vector<GenerationRequest>& requests, const SamplingOptions& sampling) {
  const auto start = std::chrono::steady_clock::now();
  Generate(policy, requests, sampling);
  kgrpo::policy::WaitForDevice(policy.device());
  return 1e3 * kgrpo::bench::SecondsSince(start);
}

// The difference per token between the recorded log-probabilities and the policy's own scores of the completions.
void PrintDifference(Policy& policy, const std::vector<GenerationRequest>& requests, const SamplingOptions& sampling) {
  const std::vector<Completion> completions = Generate(policy, requests, sampling);
  std::vector<kgrpo::policy::ScoredSequence> sequences;
  std::vector<float> recorded;
  for (size_t i = 0; i < requests.size(); ++i) {
    sequences.push_back({requests[i].prompt, completions[i].ids});
    recorded.insert(recorded.end(), completions[i].logprobs.begin(), completions[i].logprobs.end());
  }
  std::vector<float> scores(recorded.size());
  policy.Forward(sequences, kgrpo::policy::Copy::kCurrent, sampling.temperature, false,
                 at::from_blob(scores.data(), {static_cast<int64_t>(scores.size())}, at::dtype(at::kFloat)), {});
  double sum = 0, greatest = 0;
  for (size_t i = 0; i < scores.size(); ++i) {
    const double difference = std::abs(static_cast<double>(scores[i]) - static_cast<double>(recorded[i]));
    sum += difference;
    greatest = std::max(greatest, difference);
  }
  std::printf("log-probabilities against training's: |difference| mean %.3e, greatest %.3e of %zu tokens\n",
              sum / static_cast<double>(scores.size()), greatest, scores.size());
}

void Measure(Policy& policy, const std::string& name, size_t batch, size_t prompt_tokens, size_t rounds,
             const SamplingOptions& sampling) {
  using kgrpo::bench::Median;
  using kgrpo::bench::Quantile;
  const std::vector<GenerationRequest> requests = MakeRequests(batch, prompt_tokens);
  SamplingOptions first_only = sampling;
  first_only.max_new_tokens = 1;
  std::vector<double> reads, steps, alls;
  for (size_t round = 0; round <= rounds; ++round) {
    const double read = Time(policy, requests, first_only), all = Time(policy, requests, sampling);
    if (round == 0) continue;  // warms up
    reads.push_back(read);
    alls.push_back(all);
    steps.push_back((all - read) / static_cast<double>(sampling.max_new_tokens - 1));
  }
  std::printf(
      "%s batch %zu: decode %.3f ms a step (%.3f to %.3f), prompts of %zu %.2f ms (%.2f to %.2f), all %.1f ms (%.1f to "
      "%.1f)\n",
      name.c_str(), batch, Median(steps), Quantile(steps, 0), Quantile(steps, 1), prompt_tokens, Median(reads),
      Quantile(reads, 0), Quantile(reads, 1), Median(alls), Quantile(alls, 0), Quantile(alls, 1));
  PrintDifference(policy, requests, sampling);
}

void Check(const kgrpo::policy::PolicyOptions& options, size_t batch, size_t prompt_tokens, SamplingOptions sampling) {
  kgrpo::policy::PolicyOptions cpu = options;
  cpu.device = "cpu";
  cpu.engine_generation = false;
  cpu.threads = static_cast<int>(std::thread::hardware_concurrency());
  Policy ours(options, 1), reference(cpu, 1);
  const std::vector<GenerationRequest> requests = MakeRequests(batch, prompt_tokens);
  for (const double temperature : {0.0, 1.0}) {
    sampling.temperature = temperature;
    const auto found = Generate(ours, requests, sampling), expected = Generate(reference, requests, sampling);
    size_t equal = 0, tokens = 0, alone_equal = 0;
    double greatest = 0, sum = 0;
    for (size_t i = 0; i < requests.size(); ++i) {
      // Until the first other token the contexts are the same.
      for (size_t j = 0; j < std::min(found[i].ids.size(), expected[i].ids.size()); ++j) {
        ++tokens;
        if (found[i].ids[j] != expected[i].ids[j]) break;
        ++equal;
        const double difference = std::abs(found[i].logprobs[j] - expected[i].logprobs[j]);
        greatest = std::max(greatest, difference);
        sum += difference;
      }
      const Completion alone = Generate(ours, {requests[i]}, sampling)[0];
      alone_equal += alone.ids == found[i].ids && alone.logprobs == found[i].logprobs;
    }
    std::printf(
        "temperature %.0f: %zu of %zu tokens as the CPU's, |log-probability difference| mean %.2e, greatest %.2e; "
        "%zu of %zu completions bit for bit the same alone\n",
        temperature, equal, tokens, sum / static_cast<double>(std::max<size_t>(equal, 1)), greatest, alone_equal,
        requests.size());
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("milliseconds of a decode step and of reading prompts, by rounds");
  std::string shape = "qwen2-0.5b", dtype = "bfloat16", device = "cuda";
  std::string model;
  std::vector<size_t> batches = {16};
  size_t prompt_tokens = 512, rounds = 5;
  bool check = false;
  kgrpo::policy::PolicyOptions options;
  SamplingOptions sampling;
  sampling.max_new_tokens = 128;
  app.add_option("--shape", shape, "of bench/shapes.json")->check(CLI::IsMember(kgrpo::bench::ModelShapes()));
  app.add_option("--model", model, "a model's folder, in place of random weights of --shape");
  app.add_option("--batch", batches, "completions at a time: a measurement for each")->capture_default_str();
  app.add_option("--prompt-tokens", prompt_tokens, "of each")->capture_default_str();
  app.add_option("--new-tokens", sampling.max_new_tokens, "of each")->capture_default_str();
  app.add_option("--top-p", sampling.top_p, "nucleus")->capture_default_str();
  app.add_option("--top-k", sampling.top_k, "most likely tokens to sample from; 0: all")->capture_default_str();
  app.add_option("--dtype", dtype, "float32 or bfloat16")->capture_default_str();
  app.add_option("--device", device, "cpu or cuda:N")->capture_default_str();
  app.add_option("--rounds", rounds, "timed repetitions")->capture_default_str();
  app.add_flag("--check", check, "compare the engine with the CPU, and with itself");
  CLI11_PARSE(app, argc, argv);
  try {
    const kgrpo::bench::ModelFolder folder(shape);
    options.model = model.empty() ? folder.path() : model;
    options.random_weights = model.empty();
    options.bfloat16 = dtype == "bfloat16";
    options.device = device;
    if (device != "cpu") options.engine_generation = true;
    if (check) {
      for (const size_t batch : batches) Check(options, batch, prompt_tokens, sampling);
      return 0;
    }
    const std::string name = (model.empty() ? shape : model) + " " + dtype;
    Policy policy(options, 1);
    for (const size_t batch : batches) Measure(policy, name, batch, prompt_tokens, rounds, sampling);
    if (const std::string note = policy.PromptNote(); !note.empty()) std::printf("%s\n", note.c_str());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "policy: %s\n", error.what());
    return 1;
  }
  return 0;
}
