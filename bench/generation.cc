// How fast policy_qwen generates: tokens per second of the quickstart's model and of SmolLM2-135M's shape, random
// weights, and a checksum of the completions' bits. example: build/bin/generation --shape 135m --requests 16 --prompts
// 4 --dtype float32
#include <kgrpo/sdk/error.h>

#include <CLI/CLI.hpp>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "common/figures.h"
#include "model_folder.h"
#include "policy_qwen/model/random.h"
#include "policy_qwen/policy.h"

namespace {

using kgrpo::policy::GenerationRequest;
using kgrpo::policy::RandomBits;

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("tokens a second of policy_qwen's generation, by rounds");
  std::string shape = "tiny", dtype = "float32", device = "cpu";
  size_t count = 16, prompts = 4, prompt_tokens = 120, rounds = 5;
  int threads = 1;
  kgrpo::policy::SamplingOptions sampling;
  sampling.max_new_tokens = 16;
  app.add_option("--shape", shape, "of bench/shapes.json")
      ->check(CLI::IsMember(kgrpo::bench::ModelShapes()))
      ->capture_default_str();
  app.add_option("--requests", count, "completions")->capture_default_str();
  app.add_option("--prompts", prompts, "distinct prompts among them")->capture_default_str();
  app.add_option("--prompt-tokens", prompt_tokens, "mean length of a prompt")->capture_default_str();
  app.add_option("--new-tokens", sampling.max_new_tokens, "length of a completion")->capture_default_str();
  app.add_option("--top-p", sampling.top_p, "nucleus")->capture_default_str();
  app.add_option("--top-k", sampling.top_k, "most likely tokens to sample from; 0: all")->capture_default_str();
  app.add_option("--dtype", dtype, "float32 or bfloat16")->capture_default_str();
  app.add_option("--device", device, "cpu or cuda:N")->capture_default_str();
  app.add_option("--threads", threads, "CPU threads")->capture_default_str();
  app.add_option("--rounds", rounds, "timed repetitions")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  try {
    const kgrpo::bench::ModelFolder folder(shape);
    kgrpo::policy::PolicyOptions options;
    options.model = folder.path();
    options.random_weights = true;
    options.bfloat16 = dtype == "bfloat16";
    options.device = device;
    options.threads = threads;
    kgrpo::policy::Policy policy(options, 1);
    std::vector<GenerationRequest> requests(count);
    for (size_t i = 0; i < count; ++i) {
      const uint64_t prompt = i * prompts / count;
      const size_t length = prompt_tokens * 3 / 4 + RandomBits(prompt, 0) % (prompt_tokens / 2 + 1);
      for (uint64_t j = 1; j <= length; ++j)
        requests[i].prompt.push_back(static_cast<int32_t>(3 + RandomBits(prompt, j) % 700));
      requests[i].seed = i;
    }
    std::vector<double> rates;
    uint64_t checksum = 0;
    const auto add = [&](const kgrpo::policy::Completion& done) {  // in any order
      for (size_t i = 0; i < done.ids.size(); ++i) {
        const auto bits = std::bit_cast<uint32_t>(done.logprobs[i]) ^ static_cast<uint64_t>(done.ids[i]) << 32;
        checksum += RandomBits(bits, done.request << 16 | i);
      }
    };
    for (size_t round = 0; round <= rounds; ++round) {
      size_t tokens = 0;
      const auto start = std::chrono::steady_clock::now();
      policy.Generate(
          requests, sampling,
          [&](const kgrpo::policy::Completion& done) {
            tokens += done.ids.size();
            if (round == 0) add(done);
          },
          [] { return false; });
      const double seconds = kgrpo::bench::SecondsSince(start);
      if (round > 0) rates.push_back(static_cast<double>(tokens) / seconds);  // the first warms up
    }
    std::printf("%s %s requests %zu prompts %zu x %zu: %.1f tokens/s (least %.1f, most %.1f), checksum %016llx\n",
                shape.c_str(), dtype.c_str(), count, prompts, prompt_tokens, kgrpo::bench::Median(rates),
                kgrpo::bench::Quantile(rates, 0), kgrpo::bench::Quantile(rates, 1),
                static_cast<unsigned long long>(checksum));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "generation: %s\n", error.what());
    return 1;
  }
  return 0;
}
