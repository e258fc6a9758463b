// The safetensors format (huggingface.co/docs/safetensors): a length, a JSON header, raw little-endian data.
// Reading maps the file and checks everything that the header claims; writing is atomic. Used by the parameters.
#ifndef KGRPO_PLUGINS_POLICY_QWEN_MODEL_SAFETENSORS_H_
#define KGRPO_PLUGINS_POLICY_QWEN_MODEL_SAFETENSORS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "policy_qwen/files.h"

namespace kgrpo::policy {

// A tensor inside a mapped file. `data` lives as long as the TensorFiles it came from.
struct StoredTensor {
  std::string dtype;  // as the format spells it: "F32", "BF16", "F16", ...
  std::vector<int64_t> shape;
  std::span<const uint8_t> data;
  std::string file;  // for messages
};

// True if a model folder holds weights that TensorFiles would open.
bool HasTensorFiles(const std::string& folder);

// The tensors of a model folder: model.safetensors, or the shards that model.safetensors.index.json lists.
class TensorFiles {
 public:
  // Opens and checks all headers. Throws kgrpo::Error naming file, tensor, what was expected and what was found.
  explicit TensorFiles(const std::string& folder);
  // The tensors of a single file.
  static TensorFiles OfFile(const std::string& path);

  const std::map<std::string, StoredTensor>& tensors() const { return tensors_; }

 private:
  TensorFiles() = default;
  void Open(const std::string& path);
  void OpenShards(const std::string& folder, const std::string& index_path);

  std::vector<std::unique_ptr<MappedFile>> files_;
  std::map<std::string, StoredTensor> tensors_;
};

// A tensor for WriteTensorFile: a compact row-major tensor in the caller's memory.
struct TensorToWrite {
  std::string name;
  std::string dtype;
  std::vector<int64_t> shape;
  std::span<const uint8_t> data;
};

// Writes one file, in the given order, atomically.
void WriteTensorFile(const std::string& path, const std::vector<TensorToWrite>& tensors);

// "[2, 3]", for messages.
std::string ShapeText(std::span<const int64_t> shape);

}  // namespace kgrpo::policy

#endif  // KGRPO_PLUGINS_POLICY_QWEN_MODEL_SAFETENSORS_H_
