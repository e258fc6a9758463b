// A policy's adapter while it trains: the factors, their gradients, the reference's factors, and the weights merged for
// generation. Used by the policy where the option `adapter` is given; the base's weights stay the policy's.
#ifndef KGRPO_PLUGINS_POLICY_QWEN_TRAINED_ADAPTER_H_
#define KGRPO_PLUGINS_POLICY_QWEN_TRAINED_ADAPTER_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "policy_qwen/model/adapter.h"

namespace kgrpo::policy {

// The option `adapter`. Unset members take the values of `start`, or AdapterConfig's defaults without it.
struct AdapterOptions {
  std::string start = "";  // an adapter's folder; empty: a new one
  std::optional<int64_t> rank = std::nullopt;
  std::optional<double> alpha = std::nullopt;
  std::optional<bool> rank_stabilized = std::nullopt;
  std::optional<std::vector<std::string>> targets = std::nullopt;  // in any order
};

// One thread at a time.
class TrainedAdapter {
 public:
  // Reads or initialises the factors; `seed` decides new ones. `base` outlives the adapter; `base_folder` is where it
  // was read from. Throws KGRPO_ERROR_INVALID where the options contradict the folder that they start from.
  TrainedAdapter(const AdapterOptions& options, const ModelConfig& config, const Weights& base, std::string base_folder,
                 at::Device device, uint64_t seed);

  const AdapterConfig& config() const { return config_; }
  const AdapterSet& factors() const { return factors_; }
  const AdapterSet& gradients();  // zeros at the first call

  // The base with the current factors beside it, and the gradients that its backward adds to.
  Weights weights() const { return factors_.Attached(base_); }
  Weights gradient_weights() { return gradients().Alone(); }
  // The base with the reference's factors beside it, or the base alone where those change nothing.
  bool has_reference() const { return reference_.has_value(); }
  Weights reference_weights() const { return reference_->defined() ? reference_->Attached(base_) : base_; }

  // Returns the base's weights with the adapter merged in, for generation. Merges again if the factors have changed;
  // the tensors keep their addresses. `changed` receives true if the tensors were written.
  const Weights& Merged(bool* changed);
  // Bytes that the merged weights take beyond the base's.
  int64_t merged_bytes() const;

  void FreezeReference() { SetReference(factors_); }
  void Save(bool reference, const std::string& directory) const;
  // On failure the factors are as before. Throws KGRPO_ERROR_INVALID for an adapter of another shape.
  void Load(bool reference, const std::string& directory);

 private:
  void SetReference(const AdapterSet& factors);

  AdapterConfig config_;
  const ModelConfig& model_;
  const Weights& base_;
  std::string base_folder_;
  at::Device device_;
  AdapterSet factors_, gradients_;
  std::optional<AdapterSet> reference_;  // undefined if all its B are zero
  std::optional<Weights> merged_;
  at::Tensor merged_factors_;  // the factors that merged_ contains
};

}  // namespace kgrpo::policy

#endif  // KGRPO_PLUGINS_POLICY_QWEN_TRAINED_ADAPTER_H_
