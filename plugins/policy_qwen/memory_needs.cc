#include "policy_qwen/memory_needs.h"

#include <algorithm>

namespace kgrpo::policy {
namespace {

std::string Mib(uint64_t bytes) { return std::to_string((bytes + (1 << 19)) >> 20) + " MiB"; }

// Advice on lowering the largest part that an option can lower.
std::string Remedy(const MemoryNeeds& needs) {
  const std::string options = needs.part + ".options.";
  const uint64_t activations = needs.kept_activations(), state = needs.gradients() + needs.optimizer();
  if (needs.cache >= std::max(activations, state)) return "lower " + options + "generation_memory_mib";
  if (activations >= state) {
    return "lower " + options + "activation_memory_mib or max_tokens_per_chunk (" + std::to_string(needs.chunk_tokens) +
           " tokens now)";
  }
  if (!needs.has_adapter) return "train an adapter (" + options + "adapter), or take a smaller model";
  return "lower " + options + "adapter.rank, or take a smaller model";
}

std::string TrainingText(const MemoryNeeds& needs) {
  std::string text;
  if (needs.has_adapter)
    text += ", adapter " + Mib(needs.adapter) + ", merged weights for generation " + Mib(needs.merged);
  else
    text += ", a reference where the trainer wants one " + Mib(needs.reference());
  text += ", gradients " + Mib(needs.gradients()) + ", AdamW's state " + Mib(needs.optimizer());
  if (needs.ranks > 1) text += " (this rank's share of " + std::to_string(needs.ranks) + ")";
  text += ", activations " + Mib(needs.kept_activations()) + " for " + std::to_string(needs.chunk_tokens) + " tokens";
  if (needs.activations > needs.kept_activations())
    text += " (" + Mib(needs.activations) + " without computing layers again)";
  return text;
}

}  // namespace

uint64_t MemoryNeeds::optimizer() const { return trained * 4 * (masters ? 3 : 2) / ranks; }

uint64_t MemoryNeeds::kept_activations() const {
  return activations <= activation_limit ? activations
                                         : std::max(least_activations, std::min(activations, activation_limit));
}

uint64_t MemoryNeeds::further() const {
  return adapter + merged + gradients() + optimizer() + kept_activations() + cache;
}

std::string MemoryText(const MemoryNeeds& needs) {
  std::string text = (needs.trains ? std::to_string(needs.trained) + " of " : "") + std::to_string(needs.parameters) +
                     " parameters" + (needs.trains ? " train" : "") +
                     (needs.has_adapter ? " (the adapter's, beside frozen weights)" : "") + "; memory: weights " +
                     Mib(needs.weights);
  if (needs.trains) text += TrainingText(needs);
  text +=
      ", generation cache " + (needs.cache > 0 ? Mib(needs.cache) : Mib(1000 * needs.cache_token) + " per 1000 tokens");
  if (needs.total > 0)
    text += "; beside the weights " + Mib(needs.further()) + " of " + Mib(needs.free) + " free, " + Mib(needs.total) +
            " in all";
  return text;
}

std::string MemoryWarning(const MemoryNeeds& needs) {
  if (needs.total == 0 || needs.further() + needs.reference() <= needs.free) return "";
  const bool without = needs.further() > needs.free;
  return std::string(needs.trains ? "training" : "generation") + " will not fit" +
         std::string(without ? "" : " if the trainer uses a reference policy") + ": beside the weights " +
         Mib(needs.further() + (without ? 0 : needs.reference())) + " are needed and " + Mib(needs.free) +
         " are free; " + Remedy(needs);
}

}  // namespace kgrpo::policy
