// How fast policy_qwen generates: tokens a second of the quickstart's model and of SmolLM2-135M's shape, random
// weights. example: build/bin/generation --shape 135m --requests 16 --prompts 4 --dtype float32
#include <kgrpo/sdk/error.h>
#include <stdlib.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "common/figures.h"
#include "policy_qwen/model/random.h"
#include "policy_qwen/policy.h"

namespace {

namespace fs = std::filesystem;
using kgrpo::policy::GenerationRequest;
using kgrpo::policy::RandomBits;

// A model folder of that shape without weights; its tokenizer is not used.
class ModelFolder {
 public:
  explicit ModelFolder(const std::string& shape) {
    std::string pattern = (fs::temp_directory_path() / "kgrpo-generation-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
    path_ = pattern;
    fs::copy_file(fs::path(KGRPO_SOURCE_DIR) / "tests/golden/policy/qwen2/tokenizer.json",
                  fs::path(path_) / "tokenizer.json");
    const char* const sizes = shape == "tiny" ? R"("vocab_size": 768, "hidden_size": 128, "intermediate_size": 384,
      "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "architectures": ["Qwen2ForCausalLM"],
      "model_type": "qwen2", "max_position_embeddings": 512)"
                                              : R"("vocab_size": 49152, "hidden_size": 576, "intermediate_size": 1536,
      "num_hidden_layers": 30, "num_attention_heads": 9, "num_key_value_heads": 3,
      "architectures": ["LlamaForCausalLM"], "model_type": "llama", "max_position_embeddings": 8192)";
    std::ofstream(path_ + "/config.json")
        << "{" << sizes << R"(, "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "hidden_act": "silu",
      "initializer_range": 0.02, "tie_word_embeddings": true, "eos_token_id": 2})";
  }
  ~ModelFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  ModelFolder(const ModelFolder&) = delete;
  ModelFolder& operator=(const ModelFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("tokens a second of policy_qwen's generation, by rounds");
  std::string shape = "tiny", dtype = "float32", device = "cpu";
  size_t count = 16, prompts = 4, prompt_tokens = 120, rounds = 5;
  int threads = 1;
  kgrpo::policy::SamplingOptions sampling;
  sampling.max_new_tokens = 16;
  app.add_option("--shape", shape, "tiny or 135m")->check(CLI::IsMember({"tiny", "135m"}))->capture_default_str();
  app.add_option("--requests", count, "completions")->capture_default_str();
  app.add_option("--prompts", prompts, "distinct prompts among them")->capture_default_str();
  app.add_option("--prompt-tokens", prompt_tokens, "mean length of a prompt")->capture_default_str();
  app.add_option("--new-tokens", sampling.max_new_tokens, "length of a completion")->capture_default_str();
  app.add_option("--top-p", sampling.top_p, "nucleus")->capture_default_str();
  app.add_option("--dtype", dtype, "float32 or bfloat16")->capture_default_str();
  app.add_option("--device", device, "cpu or cuda:N")->capture_default_str();
  app.add_option("--threads", threads, "CPU threads")->capture_default_str();
  app.add_option("--rounds", rounds, "timed repetitions")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  try {
    const ModelFolder folder(shape);
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
    for (size_t round = 0; round <= rounds; ++round) {
      size_t tokens = 0;
      const auto start = std::chrono::steady_clock::now();
      policy.Generate(
          requests, sampling, [&](const kgrpo::policy::Completion& done) { tokens += done.ids.size(); },
          [] { return false; });
      const double seconds = kgrpo::bench::SecondsSince(start);
      if (round > 0) rates.push_back(static_cast<double>(tokens) / seconds);  // the first warms up
    }
    std::printf("%s %s requests %zu prompts %zu x %zu: %.1f tokens/s (least %.1f, most %.1f)\n", shape.c_str(),
                dtype.c_str(), count, prompts, prompt_tokens, kgrpo::bench::Median(rates),
                kgrpo::bench::Quantile(rates, 0), kgrpo::bench::Quantile(rates, 1));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "generation: %s\n", error.what());
    return 1;
  }
  return 0;
}
