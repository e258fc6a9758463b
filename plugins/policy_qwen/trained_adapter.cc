#include "policy_qwen/trained_adapter.h"

#include <ATen/ops/equal.h>
#include <kgrpo/sdk/error.h>

#include <utility>

namespace kgrpo::policy {
namespace {

std::string NumberText(double value) {
  std::string text = std::to_string(value);
  text.erase(text.find_last_not_of('0') + 1);
  return text.ends_with('.') ? text.substr(0, text.size() - 1) : text;
}

std::string TextOf(const AdapterConfig& config) {
  std::string text = "rank " + std::to_string(config.rank) + ", alpha " + NumberText(config.alpha) +
                     (config.rank_stabilized ? ", rank-stabilized" : "") + ", targets ";
  if (config.targets.size() > AllTargets().size()) {
    text += std::to_string(config.targets.size()) + " paths";
  } else {
    for (size_t i = 0; i < config.targets.size(); ++i) text += (i > 0 ? " " : "") + config.targets[i];
  }
  for (const auto& [key, value] : config.patterns.items()) text += ", " + key + " " + value.dump();
  return text;
}

AdapterConfig Resolve(const AdapterOptions& options) {
  AdapterConfig config = options.start.empty() ? AdapterConfig() : ReadAdapterConfig(options.start);
  const AdapterConfig stored = config;
  if (options.rank) config.rank = *options.rank;
  if (options.alpha) config.alpha = *options.alpha;
  if (options.rank_stabilized) config.rank_stabilized = *options.rank_stabilized;
  if (options.targets) config.targets = InTargetOrder(*options.targets);
  if (!options.start.empty() && config != stored) {
    throw Error(KGRPO_ERROR_INVALID, "adapter: " + options.start + " has " + TextOf(stored) + ", and the options say " +
                                         TextOf(config) + "; leave rank, alpha, use_rslora and targets out");
  }
  return config;
}

}  // namespace

TrainedAdapter::TrainedAdapter(const AdapterOptions& options, const ModelConfig& config, const Weights& base,
                               std::string base_folder, at::Device device, uint64_t seed)
    : config_(Resolve(options)),
      model_(config),
      base_(base),
      base_folder_(std::move(base_folder)),
      device_(device),
      factors_(config, config_, device) {
  if (options.start.empty()) {
    InitializeAdapter(seed, factors_);
  } else {
    ReadAdapter(options.start, base_folder_, factors_);
  }
}

const AdapterSet& TrainedAdapter::gradients() {
  if (!gradients_.defined()) gradients_ = AdapterSet(model_, config_, device_);
  return gradients_;
}

const Weights& TrainedAdapter::Merged(bool* changed) {
  *changed = !merged_ || !at::equal(merged_factors_, factors_.buffer());
  if (*changed) {
    if (!merged_) merged_ = CopyTargets(model_, weights());
    MergeAdapter(model_, weights(), *merged_);
    merged_factors_ = factors_.buffer().clone();
  }
  return *merged_;
}

int64_t TrainedAdapter::merged_bytes() const { return CopiedBytes(weights()); }

void TrainedAdapter::SetReference(const AdapterSet& factors) {
  reference_.emplace();
  if (factors.IsOff()) return;
  reference_.emplace(model_, config_, device_);
  at::Tensor(reference_->buffer()).copy_(factors.buffer());
}

void TrainedAdapter::Save(bool reference, const std::string& directory) const {
  const AdapterSet& saved = !reference              ? factors_
                            : reference_->defined() ? *reference_
                                                    : AdapterSet(model_, config_, at::kCPU);
  WriteAdapter(directory, base_folder_, config_, saved);
}

void TrainedAdapter::Load(bool reference, const std::string& directory) {
  if (!IsAdapterFolder(directory)) {
    throw Error(KGRPO_ERROR_INVALID, directory +
                                         " holds no adapter, and this policy trains one; for a whole model set "
                                         "policy.options.adapter=null");
  }
  const AdapterConfig stored = ReadAdapterConfig(directory);
  if (stored != config_) {
    throw Error(KGRPO_ERROR_INVALID,
                directory + " holds an adapter of " + TextOf(stored) + "; the policy's has " + TextOf(config_));
  }
  AdapterSet loaded(model_, config_, device_);
  ReadAdapter(directory, base_folder_, loaded);
  if (reference) {
    SetReference(loaded);
  } else {
    at::Tensor(factors_.buffer()).copy_(loaded.buffer());  // in place: others hold views
  }
}

}  // namespace kgrpo::policy
