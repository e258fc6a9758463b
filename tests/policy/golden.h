// The tiny models of tests/golden/policy, the results of transformers with them, and temporary folders. Used by the
// policy's tests.
#ifndef KGRPO_TESTS_POLICY_GOLDEN_H_
#define KGRPO_TESTS_POLICY_GOLDEN_H_

#include <ATen/ops/from_blob.h>
#include <stdlib.h>

#include "policy_qwen/policy.h"
#include "test.h"

namespace kgrpo::policy {

inline const std::vector<std::string>& GoldenModels() {
  static const std::vector<std::string> names = {"qwen2", "qwen3", "llama", "llama_one_layer"};
  return names;
}

inline std::string GoldenFolder(const std::string& model) {
  return std::string(KGRPO_SOURCE_DIR) + "/tests/golden/policy/" + model;
}

// The model of an adapter in adapters/: "qwen2" of "qwen2-patterns".
inline std::string BaseOf(const std::string& adapter) { return adapter.substr(0, adapter.find('-')); }

inline nlohmann::json Expected(const std::string& model) {
  std::ifstream file(GoldenFolder(model) + "/expected.json");
  return nlohmann::json::parse(file);
}

inline PolicyOptions GoldenOptions(const std::string& model) {
  PolicyOptions options;
  options.model = GoldenFolder(model);
  options.chat_template = "chatml";
  options.threads = 1;
  // KGRPO_TEST_DEVICE=cuda:1 runs the tests of Policy on that GPU.
  if (const char* device = std::getenv("KGRPO_TEST_DEVICE")) options.device = device;
  return options;
}

// Prompts and completions of expected.json, and views of them as Forward takes them.
struct GoldenSequences {
  explicit GoldenSequences(const nlohmann::json& expected)
      : prompts(expected["prompts"].get<std::vector<std::vector<int32_t>>>()),
        completions(expected["completions"].get<std::vector<std::vector<int32_t>>>()) {
    for (size_t i = 0; i < prompts.size(); ++i) {
      views.push_back({prompts[i], completions[i]});
      token_count += completions[i].size();
    }
  }
  std::vector<std::vector<int32_t>> prompts, completions;
  std::vector<ScoredSequence> views;
  size_t token_count = 0;
};

inline double RelativeL2(const std::vector<double>& actual, const std::vector<double>& expected) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    difference += (actual[i] - expected[i]) * (actual[i] - expected[i]);
    norm += expected[i] * expected[i];
  }
  return std::sqrt(difference / norm);
}

inline std::vector<double> ToDoubles(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.cpu().to(at::kDouble).contiguous().view({-1});
  const double* data = flat.const_data_ptr<double>();
  return std::vector<double>(data, data + flat.numel());
}

// Numbers as Policy::Forward and Backward take them; borrowed.
inline at::Tensor ViewOf(std::vector<float>& values) {
  return at::from_blob(values.data(), {static_cast<int64_t>(values.size())}, at::TensorOptions().dtype(at::kFloat));
}
inline at::Tensor ViewOf(const std::vector<float>& values) { return ViewOf(const_cast<std::vector<float>&>(values)); }

using test::MessageOf;

// A folder that is removed with the object.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "kgrpo-policy-test-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
    path_ = pattern;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace kgrpo::policy

#endif  // KGRPO_TESTS_POLICY_GOLDEN_H_
