// The description of a model, read from a Hugging Face folder: config.json and generation_config.json, as transformers
// 4 and 5 write them. Everything that the model cannot reproduce exactly is refused here, by name. Used by the
// parameters (shapes), the model (constants) and the policy (end tokens, dtype).
#ifndef KGRPO_PLUGINS_POLICY_QWEN_MODEL_CONFIG_H_
#define KGRPO_PLUGINS_POLICY_QWEN_MODEL_CONFIG_H_

#include <cstdint>
#include <string>
#include <vector>

namespace kgrpo::policy {

enum class Architecture { kQwen2, kQwen3, kLlama, kMistral };

// How the frequencies of rotary positions are derived (transformers: modeling_rope_utils.py).
enum class RopeScaling {
  kNone,
  kLinear,  // every frequency divided by `factor`
  kLlama3,  // low frequencies divided by `factor`, high ones kept, those between blended by wavelength
  kYarn,    // the same, blended by place in the head; cosines and sines times `attention_factor`
};

struct RopeConfig {
  double theta = 10000.0;
  RopeScaling scaling = RopeScaling::kNone;
  double factor = 1.0;
  double low_frequency_factor = 1.0;
  double high_frequency_factor = 4.0;
  double attention_factor = 1.0;
  double beta_fast = 32.0, beta_slow = 1.0;  // rotations in the original context between which yarn blends
  bool truncate = true;                      // yarn blends between whole places
  int64_t original_context_length = 0;
};

struct ModelConfig {
  Architecture architecture = Architecture::kQwen2;
  std::string architecture_name;  // "Qwen2ForCausalLM"
  int64_t vocabulary_size = 0;
  int64_t hidden_size = 0;
  int64_t intermediate_size = 0;
  int64_t layer_count = 0;
  int64_t head_count = 0;
  int64_t kv_head_count = 0;  // divides head_count
  int64_t head_size = 0;
  int64_t context_length = 0;  // max_position_embeddings, or a shorter sliding window
  std::string context_note;    // follows the context's length in messages; empty, or names the sliding window
  double norm_epsilon = 1e-6;
  double initializer_range = 0.02;
  RopeConfig rope;
  bool tied_head = false;             // the head's weight is the embedding's
  bool query_key_norm = false;        // RMSNorm over each head of q and k, before the rotary positions (Qwen3)
  bool attention_input_bias = false;  // of q, k, v
  bool attention_output_bias = false;
  bool mlp_bias = false;
  std::vector<int32_t> end_ids;    // from config.json's eos_token_id; generation_config.json's replace them
  std::vector<std::string> notes;  // facts about the folder that its user should know, each a line for the log

  int64_t query_size() const { return head_count * head_size; }
  int64_t kv_size() const { return kv_head_count * head_size; }
};

// Reads `folder`/config.json, and `folder`/generation_config.json where there is one. Throws kgrpo::Error naming the
// file and the key.
ModelConfig ReadModelConfig(const std::string& folder);

// Throws KGRPO_ERROR_INVALID if the parameters alone, of `bytes` bytes each, take more than `available` bytes. The
// message names `folder`/config.json, the key that is most likely wrong, and the memory needed. `memory` names the
// owner of the memory in the message: "this machine". Call before anything of the model's sizes is allocated.
void RequireRoom(const ModelConfig& config, const std::string& folder, double bytes, double available,
                 const std::string& memory);

// The frequencies of the rotary positions, head_size / 2 of them, in radians a position; computed in float32 as
// transformers does.
std::vector<float> RopeFrequencies(const ModelConfig& config);

}  // namespace kgrpo::policy

#endif  // KGRPO_PLUGINS_POLICY_QWEN_MODEL_CONFIG_H_
