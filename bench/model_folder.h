// Model folders without weights, of the shapes that are measured. Used by generation.cc, policy.cc,
// reduction.cc and training.cc.
#ifndef KGRPO_BENCH_MODEL_FOLDER_H_
#define KGRPO_BENCH_MODEL_FOLDER_H_

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

namespace kgrpo::bench {

// config.json of each shape of bench/shapes.json, which policy.py and training.py read, too; "small-64" is the smallest
// that the engine on a GPU takes, for compute-sanitizer's slow tools.
inline const std::map<std::string, std::string>& ModelShapes() {
  static const std::map<std::string, std::string> shapes = [] {
    std::ifstream file(KGRPO_SOURCE_DIR "/bench/shapes.json");
    std::map<std::string, std::string> read;
    const nlohmann::json all = nlohmann::json::parse(file);
    for (const auto& [name, shape] : all.items()) {
      nlohmann::json config = {{"rms_norm_eps", 1e-6},
                               {"hidden_act", "silu"},
                               {"initializer_range", 0.02},
                               {"tie_word_embeddings", true},
                               {"eos_token_id", 2}};
      config.update(shape);
      read[name] = config.dump();
    }
    return read;
  }();
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
    std::ofstream(path_ + "/config.json") << ModelShapes().at(shape);
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
