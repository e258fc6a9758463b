// A language model that trains: everything that kgrpo.policy/1 offers, as C++. plugin.cc is the thin layer above it;
// below are model/ (the transformer, its weights, sampling) and tokenizer/.
//
// There are two copies of the parameters: the current one and, once FreezeReference was called or a reference was
// loaded, a frozen reference. With an adapter (trained_adapter.h), both share one frozen copy of the weights, and each
// has its own adapter. One thread at a time, except for functions that say otherwise; any thread may use config,
// tokenizer and RenderChat meanwhile. Errors are kgrpo::Error.
#ifndef KGRPO_PLUGINS_POLICY_QWEN_POLICY_H_
#define KGRPO_PLUGINS_POLICY_QWEN_POLICY_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "policy_qwen/generation/generation_engine.h"
#include "policy_qwen/gpu/gpu_library.h"
#include "policy_qwen/memory_needs.h"
#include "policy_qwen/model/config.h"
#include "policy_qwen/model/parameters.h"
#include "policy_qwen/model/scorer.h"
#include "policy_qwen/tokenizer/chat_template.h"
#include "policy_qwen/tokenizer/tokenizer.h"
#include "policy_qwen/trained_adapter.h"

namespace kgrpo::policy {

// The plugin's options; options.cc describes each to users.
struct PolicyOptions {
  std::string part = "policy";            // of the pipeline, for messages: the options are PART.options.NAME
  bool trains = true;                     // false: only generates, and takes no memory for more
  std::string model;                      // the model folder, or an adapter's, which is merged into its base
  std::optional<AdapterOptions> adapter;  // train one instead of the weights
  bool random_weights = false;
  bool bfloat16 = false;
  std::vector<std::string> devices = {"cpu"};  // several: one for each rank on a machine
  std::string device = "cpu";                  // this process's
  int threads = 1;
  std::string chat_template = "auto";
  tokenizer::Json chat_template_arguments = tokenizer::Json::object();
  std::optional<int64_t> max_tokens_per_chunk;  // unset: Ops::TokensAtATime
  int64_t max_sequences = 256;
  std::optional<int64_t> activation_memory_mib;  // unset: Ops::ActivationRoom
  bool engine_generation = false;                // on a GPU: generate there, or refuse to start
  std::optional<int64_t> generation_memory_mib;  // of the cache
  bool tokenizer_only = false;
};

enum class Copy { kCurrent, kReference };

// One sequence whose completion's log-probabilities are wanted.
struct ScoredSequence {
  std::span<const int32_t> prompt;      // at least one id
  std::span<const int32_t> completion;  // at least one id
};

// State that a forward with gradient keeps for its backward.
struct ForwardContext {
  // Sequences that go through the model together, the shortest first.
  struct Chunk {
    std::vector<PackedSequence> sequences;
    std::vector<int64_t> targets;  // the completions' tokens
    std::vector<int64_t> places;   // of each target in the caller's arrays
    ScoredPass pass;               // only with a gradient
  };
  std::vector<Chunk> chunks;
  double temperature = 1.0;
  size_t tokens = 0;  // of all completions
};
using ForwardContextPtr = std::unique_ptr<ForwardContext>;

class Policy {
 public:
  // Reads or initialises the model. `seed` decides random weights.
  Policy(const PolicyOptions& options, uint64_t seed);

  const ModelConfig& config() const { return config_; }
  const tokenizer::Tokenizer& tokenizer() const { return tokenizer_; }
  at::Device device() const { return device_; }
  // Includes the adapter's parameters.
  int64_t parameter_count() const;
  const PolicyOptions& options() const { return options_; }
  // Throws KGRPO_ERROR_INVALID where only the tokenizer was loaded. Any thread.
  void RequireWeights() const;

  // The text of a chat in the model's format: see ChatTemplate::Render. Throws KGRPO_ERROR_UNSUPPORTED if the model has
  // no chat template. Any thread.
  std::string RenderChat(const tokenizer::Json& messages, bool add_generation_prompt,
                         const tokenizer::Json& arguments = tokenizer::Json::object()) const;
  // Texts like <|name|> that the chat template writes and that are not single tokens of the vocabulary.
  std::vector<std::string> ForeignMarkers() const;

  // Throws KGRPO_ERROR_INVALID unless the prompt's ids are in the vocabulary and leave room in the context. `what`
  // begins the message: "request 3". Any thread.
  void CheckPrompt(std::span<const int32_t> prompt, const std::string& what) const;

  // GenerationScheduler::Run of Engine; checks the requests first.
  void Generate(const std::vector<GenerationRequest>& requests, const SamplingOptions& options,
                const std::function<void(const Completion&)>& sink, const std::function<bool()>& cancelled);

  // Whether a GPU generates, and if not, the reason: then completions are generated on the CPU. Any thread.
  const KernelChoice& engine_choice() const { return engine_choice_; }
  // False: a GPU's policy generates on the CPU, and needs the device only during Engine. Any thread.
  bool generates_on_device() const { return device_.is_cpu() || engine_choice_.ours; }
  // The scheduler of generation, made at the first call, with the parameters as they are now: call it when no request
  // is in flight. Call RequireWeights before, hold the device, one thread at a time.
  GenerationScheduler& Engine();
  // How the engine computes prompts on a GPU, for the log; empty before its first use, and on a CPU.
  std::string PromptNote() const;

  // Needs PolicyOptions::trains on a GPU. Writes the log-probabilities of all completions' tokens under logits /
  // temperature, sequence after sequence, to the caller's float32 [tokens] on the CPU or the policy's device. Also
  // writes entropies if that tensor is defined. With need_gradient (current copy only) returns the context for
  // Backward, else null.
  ForwardContextPtr Forward(std::span<const ScoredSequence> sequences, Copy copy, double temperature,
                            bool need_gradient, const at::Tensor& logprobs, const at::Tensor& entropies);

  // Receives a flat piece of the gradients' buffer once a backward pass adds nothing more to it.
  using GradientsFinal = std::function<void(const at::Tensor& piece)>;

  // Adds sum_i d_logprobs[i] * d logprobs[i] / d parameter to the gradients; d_logprobs as Forward's result. Ends the
  // context. The parameters must be those of the forward. `final`, which may be empty, receives every element once.
  void Backward(ForwardContextPtr context, const at::Tensor& d_logprobs, const GradientsFinal& final = {});

  // The current copy and its gradients (float32, made and zeroed at the first call): their buffers stay where they are.
  // With an adapter: the frozen base, and no gradients.
  const ParameterSet& parameters() const { return current_; }
  const ParameterSet& gradients();
  // Null where all weights train.
  TrainedAdapter* adapter() { return adapter_ ? &*adapter_ : nullptr; }
  void ZeroGradients();
  // Memory of the policy and its training, with the optimiser's state divided among `ranks`.
  MemoryNeeds Memory(uint32_t ranks) const;

  void FreezeReference();

  // Writes a Hugging Face folder of that copy to an existing, empty directory: a whole model, or an adapter's folder.
  void Save(Copy copy, const std::string& directory);
  // Replaces that copy's weights or adapter; on failure nothing changes. A policy that trains no adapter loads an
  // adapter's folder by merging it into the base that the folder names.
  void Load(Copy copy, const std::string& directory);

 private:
  void ReadWeights(const std::string& folder, ParameterSet& set) const;
  Weights WeightsOf(Copy copy) const;
  const Weights& GenerationWeights();
  const TensorSet& TrainedGradients();  // of what trains: the weights or the adapter
  void UseThreads() const;
  void CheckIds(std::span<const int32_t> ids, const std::string& what) const;
  // In policy_scoring.cc, with Forward, Backward and Memory:
  void CheckSequences(std::span<const ScoredSequence> sequences) const;
  std::vector<ForwardContext::Chunk> MakeChunks(std::span<const ScoredSequence> sequences) const;
  int64_t TokensAChunk() const;
  int64_t ActivationRoom() const;

  PolicyOptions options_;
  std::string folder_;            // options_.model, or the base of the adapter there
  std::string tokenizer_folder_;  // the same, or an adapter's with its own tokenizer
  tokenizer::Tokenizer tokenizer_;
  std::optional<tokenizer::ChatTemplate> chat_template_;  // none: a model without one is still of use without chats
  ModelConfig config_;
  at::Device device_;
  at::ScalarType dtype_;
  std::map<std::string, std::string> files_;  // of the model folder, besides weights: Save writes them again
  ParameterSet current_, reference_, gradients_;
  std::optional<TrainedAdapter> adapter_;
  std::unique_ptr<RotaryTable> rotary_;
  // The weights of a GPU's policy that generates on the CPU, as of the last call of Engine: trainers write to them
  // directly.
  struct HostCopy {
    ParameterSet parameters;
    RotaryTable rotary;
  };
  std::optional<HostCopy> host_copy_;
  std::unique_ptr<GenerationEngine> engine_;
  KernelChoice engine_choice_;
  std::unique_ptr<const Ops> ops_;  // null if a GPU's policy does not train
  std::unique_ptr<Scorer> scorer_;  // likewise
};

}  // namespace kgrpo::policy

#endif  // KGRPO_PLUGINS_POLICY_QWEN_POLICY_H_
