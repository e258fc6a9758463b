// policy_bandit - a policy that reads nothing: one learned weight for each suggestion of a list. It finds the
// suggestions that pay on average; a language model must beat it. The whole of a plugin: options, tokens, the model,
// the bootstrap.
#include <kgrpo/sdk/cpu_policy.h>
#include <kgrpo/sdk/plugin.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

namespace {

// The schema of `options:`. The host checks the pipeline against it and fills the defaults in before Make is called.
std::string_view OptionsSchema() {
  return R"json({
    "title": "policy_bandit",
    "type": "object",
    "additionalProperties": false,
    "properties": {
      "model": {"title": "model", "type": "string", "default": "",
                "description": "A folder that a run has saved; empty: all suggestions are equally likely."},
      "suggestions": {"title": "suggestions", "type": "array", "minItems": 1, "uniqueItems": true,
                      "items": {"type": "string", "minLength": 1},
                      "default": ["vectorize loads 4", "unroll 4", "shared memory tile", "warp shuffle reduction", "fast intrinsics"],
                      "description": "What it may suggest. A saved model goes with the list that it was trained with."}
    }
  })json";
}

// Token ids: bytes, then the suggestions, then the end.
constexpr int32_t kFirst = 256;

class Bandit : public kgrpo::CpuPolicy {
 public:
  Bandit(const kgrpo_host* host, std::vector<std::string> suggestions)
      : CpuPolicy(host, {"Bandit",
                         /*vocabulary_size=*/static_cast<uint32_t>(kFirst + suggestions.size() + 1),
                         /*context_length=*/1U << 20,
                         /*end_ids=*/{static_cast<int32_t>(kFirst + suggestions.size())},
                         /*parameter_count=*/suggestions.size()}),
        words_(std::move(suggestions)) {
    words_.emplace_back("<|end|>");
  }

  // The longest word at each place of the text is one token.
  std::vector<int32_t> Encode(std::string_view text) const override {
    std::vector<int32_t> ids;
    for (size_t at = 0, size; at < text.size(); at += size) {
      int32_t id = static_cast<unsigned char>(text[at]);
      size = 1;
      for (size_t w = 0; w < words_.size(); ++w) {
        const bool is = text.substr(at, words_[w].size()) == words_[w];
        if (!is || (id >= kFirst && words_[w].size() < size)) continue;
        id = kFirst + static_cast<int32_t>(w);
        size = words_[w].size();
      }
      ids.push_back(id);
    }
    return ids;
  }

  std::string Decode(const int32_t* ids, size_t count, bool skip_special) const override {
    std::string text;
    for (size_t i = 0; i < count; ++i) {
      const auto word = static_cast<size_t>(ids[i] - kFirst);
      if (ids[i] < kFirst) {
        text += static_cast<char>(ids[i]);
      } else if (!skip_special || word + 1 < words_.size()) {
        text += words_.at(word);
      }
    }
    return text;
  }

  // A suggestion by its weight, then the end.
  void Logits(const std::vector<float>& weights, const Prefix& prefix, std::vector<double>* logits) const override {
    const bool written = prefix.size > prefix.prompt_size;
    std::fill(logits->begin(), logits->end(), -std::numeric_limits<double>::infinity());
    if (written) {
      logits->back() = 0;
    } else {
      std::copy(weights.begin(), weights.end(), logits->begin() + kFirst);
    }
  }

  void Backward(const std::vector<float>&, const Prefix&, const std::vector<double>& dlogits,
                std::vector<float>* gradients) const override {
    for (size_t s = 0; s < gradients->size(); ++s) (*gradients)[s] += static_cast<float>(dlogits[kFirst + s]);
  }

 private:
  std::vector<std::string> words_;  // the suggestions, and the end
};

std::unique_ptr<Bandit> Make(const kgrpo_host* host, std::string_view options) {
  const auto json = nlohmann::json::parse(options);
  auto bandit = std::make_unique<Bandit>(host, json.at("suggestions").get<std::vector<std::string>>());
  if (const auto model = json.at("model").get<std::string>(); !model.empty()) bandit->Load(KGRPO_POLICY_CURRENT, model);
  return bandit;
}

}  // namespace

KGRPO_PLUGIN("policy_bandit", "0.1.0", "learns how often to make each suggestion of a list",
             {KGRPO_POLICY_INTERFACE, &kgrpo::CpuPolicyInterface<Bandit, OptionsSchema, Make>::kInterface});
