// Model folders without weights, of the shapes that are measured. Used by generation.cc, policy.cc,
// reduction.cc and training.cc.
#ifndef KGRPO_BENCH_MODEL_FOLDER_H_
#define KGRPO_BENCH_MODEL_FOLDER_H_

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string>

namespace kgrpo::bench {

// What config.json says of each shape.
inline const std::map<std::string, std::string>& ModelShapes() {
  static const std::map<std::string, std::string> shapes = {
      {"tiny", R"("architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "vocab_size": 768, "hidden_size": 128,
        "intermediate_size": 384, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
        "rope_theta": 10000.0, "max_position_embeddings": 512)"},
      // The smallest that the engine on a GPU takes, for compute-sanitizer's slow tools.
      {"small-64",
       R"("architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "vocab_size": 768, "hidden_size": 128,
        "intermediate_size": 384, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1,
        "rope_theta": 10000.0, "max_position_embeddings": 512)"},
      {"135m", R"("architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 49152, "hidden_size": 576,
        "intermediate_size": 1536, "num_hidden_layers": 30, "num_attention_heads": 9, "num_key_value_heads": 3,
        "rope_theta": 10000.0, "max_position_embeddings": 8192)"},
      {"qwen2-0.5b", R"("architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "vocab_size": 151936,
        "hidden_size": 896, "intermediate_size": 4864, "num_hidden_layers": 24, "num_attention_heads": 14,
        "num_key_value_heads": 2, "rope_theta": 1000000.0, "max_position_embeddings": 32768)"},
      {"qwen3-0.6b", R"("architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "vocab_size": 151936,
        "hidden_size": 1024, "intermediate_size": 3072, "num_hidden_layers": 28, "num_attention_heads": 16,
        "num_key_value_heads": 8, "head_dim": 128, "rope_theta": 1000000.0, "max_position_embeddings": 40960)"},
      {"qwen2-1.5b", R"("architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "vocab_size": 151936,
        "hidden_size": 1536, "intermediate_size": 8960, "num_hidden_layers": 28, "num_attention_heads": 12,
        "num_key_value_heads": 2, "rope_theta": 1000000.0, "max_position_embeddings": 32768)"}};
  return shapes;
}

// A folder of that shape, removed with the object. Its tokenizer is another model's and is not used.
class ModelFolder {
 public:
  explicit ModelFolder(const std::string& shape) {
    namespace fs = std::filesystem;
    std::string pattern = (fs::temp_directory_path() / "kgrpo-model-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
    path_ = pattern;
    fs::copy_file(fs::path(KGRPO_SOURCE_DIR) / "tests/golden/policy/qwen2/tokenizer.json",
                  fs::path(path_) / "tokenizer.json");
    std::ofstream(path_ + "/config.json")
        << "{" << ModelShapes().at(shape) << R"(, "rms_norm_eps": 1e-6, "hidden_act": "silu",
      "initializer_range": 0.02, "tie_word_embeddings": true, "eos_token_id": 2})";
  }
  ~ModelFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ModelFolder(const ModelFolder&) = delete;
  ModelFolder& operator=(const ModelFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace kgrpo::bench

#endif  // KGRPO_BENCH_MODEL_FOLDER_H_
