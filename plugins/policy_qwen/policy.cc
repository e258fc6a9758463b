#include "policy_qwen/policy.h"

#include <ATen/Parallel.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/InferenceMode.h>
#include <kgrpo/sdk/error.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>

#include "policy_qwen/device.h"
#include "policy_qwen/gpu_library.h"
#include "policy_qwen/gpu_training/gpu_kernels.h"
#include "policy_qwen/model/files.h"
#include "policy_qwen/model/tensors.h"
#include "policy_qwen/model/token_logprobs.h"

namespace kgrpo::policy {
namespace {

// Files of a model besides its weights, if its folder has them: copied when the model is saved.
constexpr const char* kCompanionFiles[] = {"config.json",
                                           "generation_config.json",
                                           "tokenizer.json",
                                           "tokenizer_config.json",
                                           "special_tokens_map.json",
                                           "added_tokens.json",
                                           "chat_template.jinja",
                                           "vocab.json",
                                           "merges.txt"};

// Defaults for unset options: tokens that go through the model together, and memory for activations. The fused kernels
// want large products, and take what is free.
constexpr int64_t kTokensAChunk = 2048, kTokensAFusedChunk = 16384;
constexpr int64_t kActivationMib = 2048;

std::map<std::string, std::string> ReadCompanionFiles(const std::string& folder) {
  std::map<std::string, std::string> files;
  for (const char* name : kCompanionFiles) {
    const std::string path = folder + "/" + name;
    if (FileExists(path)) files[name] = ReadFile(path);
  }
  return files;
}

// config.json with the dtype in which weights are written; all else as it was.
std::string WithDtype(const std::string& config, const char* dtype) {
  nlohmann::ordered_json object = nlohmann::ordered_json::parse(config);
  object[object.contains("torch_dtype") ? "torch_dtype" : "dtype"] = dtype;
  return object.dump(2) + "\n";
}

// No operator here records gradients or versions; tensors live on one device.
struct Scope {
  explicit Scope(at::Device device) : device_guard(device) {}
  c10::InferenceMode inference;
  c10::DeviceGuard device_guard;
};

// The folder with the configuration and the tokenizer: an adapter's base, or the folder itself.
std::string ModelFolder(const PolicyOptions& options) {
  if (!IsAdapterFolder(options.model)) return options.model;
  if (options.adapter) {
    throw Error(KGRPO_ERROR_INVALID, "model: " + options.model + " holds an adapter; to train it on, set model to " +
                                         "its base, " + BaseOfAdapter(options.model) + ", and adapter.start to it");
  }
  return BaseOfAdapter(options.model);
}

double PhysicalMemory() {
  return static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
}

}  // namespace

// Sequences that go through the model together, the shortest first.
struct Policy::Chunk {
  std::vector<PackedSequence> sequences;
  std::vector<int64_t> targets;  // the completions' tokens
  std::vector<int64_t> places;   // of each of them in the caller's arrays
  std::vector<int64_t> lengths;  // of the sequences

  // By libtorch's operators.
  PackedBatch batch;
  at::Tensor target_ids;    // int64 [outputs]
  Activations activations;  // only where kept
  at::Tensor hidden;        // only where kept

  GpuPass pass;  // by fused kernels
};

struct ForwardContext {
  std::vector<Policy::Chunk> chunks;
  double temperature = 1.0;
};

size_t TokenCount(const ForwardContext& context) {
  size_t count = 0;
  for (const auto& chunk : context.chunks) count += chunk.places.size();
  return count;
}

void ForwardContextDeleter::operator()(ForwardContext* context) const {
  delete context;
}

Policy::Policy(const PolicyOptions& options, uint64_t seed)
    : options_(options),
      folder_(ModelFolder(options)),
      tokenizer_(tokenizer::Tokenizer::Load(folder_)),
      device_(at::kCPU),
      dtype_(options.bfloat16 ? at::kBFloat16 : at::kFloat),
      files_(ReadCompanionFiles(folder_)) {
  if (options_.tokenizer_only) return;
  config_ = ReadModelConfig(folder_);
  if (static_cast<int64_t>(tokenizer_.vocabulary_size()) > config_.vocabulary_size) {
    throw Error(KGRPO_ERROR_INVALID,
                folder_ + ": tokenizer.json has ids up to " + std::to_string(tokenizer_.vocabulary_size() - 1) +
                    ", but \"vocab_size\" in config.json is " + std::to_string(config_.vocabulary_size));
  }
  if (config_.end_ids.empty() && tokenizer_.eos_id() >= 0) config_.end_ids.push_back(tokenizer_.eos_id());
  device_ = OpenDevice(options_.device);
  UseThreads();
  const Scope scope(device_);
  RequireRoom(config_, folder_, options_.bfloat16 ? 2 : 4,
              device_.is_cpu() ? PhysicalMemory() : static_cast<double>(FreeBytesOf(device_)),
              device_.is_cpu() ? "this machine" : "the GPU, free,");
  current_ = ParameterSet(config_, dtype_, device_);
  rotary_ = std::make_unique<RotaryTable>(config_, dtype_, device_);
  has_engine_ = options_.engine_generation.value_or(device_.is_cuda() && HasGpuLibrary(kGenerationLibrary) &&
                                                    GpuModel::Covers(config_));
  if (has_engine_) {
    if (device_.is_cpu()) throw Error(KGRPO_ERROR_INVALID, "generation: engine needs a GPU, and device is cpu");
    GpuModel::CheckShape(config_);
  }
  if (options_.adapter) {
    if (options_.random_weights) {
      throw Error(KGRPO_ERROR_INVALID, "init: random leaves nothing to adapt: an adapter needs pretrained weights");
    }
    if (options_.fused_training.value_or(false)) {
      throw Error(KGRPO_ERROR_UNSUPPORTED, "training: fused trains all weights; with an adapter set it to auto");
    }
    options_.fused_training = false;
  }
  if (options_.fused_training.value_or(device_.is_cuda() && HasGpuLibrary(kTrainingLibrary))) {
    if (device_.is_cpu()) throw Error(KGRPO_ERROR_INVALID, "training: fused needs a GPU, and device is cpu");
    gpu_scorer_ = std::make_unique<GpuScorer>(config_, dtype_, device_, LoadGpuKernels(),
                                              [device = device_] { return FreeBytesOf(device); });
  }
  if (options_.random_weights) {
    InitializeParameters(config_, seed, current_);
  } else {
    ReadWeights(options_.model, current_);
  }
  if (options_.adapter) {
    adapter_.emplace(*options_.adapter, config_, current_.weights(), folder_, device_, seed);
  }
}

// An adapter's folder: its base, with the adapter merged in.
void Policy::ReadWeights(const std::string& folder, ParameterSet& set) const {
  if (!IsAdapterFolder(folder)) {
    ReadParameters(folder, config_, set);
    return;
  }
  const std::string base = BaseOfAdapter(folder);
  ReadParameters(base, config_, set);
  AdapterSet factors(config_, ReadAdapterConfig(folder), device_);
  ReadAdapter(folder, base, factors);
  MergeAdapter(config_, factors.Attached(set.weights()), set.weights());
}

int64_t Policy::parameter_count() const {
  if (!current_.defined()) return 0;
  return current_.parameter_count() + (adapter_ ? adapter_->factors().parameter_count() : 0);
}

void Policy::RequireWeights() const {
  if (!current_.defined()) {
    throw Error(KGRPO_ERROR_INVALID, "the policy was made with \"tokenizer_only\": it has no weights");
  }
}

const Weights& Policy::WeightsOf(Copy copy) const {
  RequireWeights();
  if (copy == Copy::kCurrent) return adapter_ ? adapter_->weights() : current_.weights();
  if (adapter_ ? !adapter_->has_reference() : !reference_.defined()) {
    throw Error(KGRPO_ERROR_INVALID, "the policy has no reference copy yet: freeze_reference or load makes it");
  }
  return adapter_ ? adapter_->reference_weights() : reference_.weights();
}

// Called before requests are served, when none is under way: then alone the parameters may have changed.
const Weights& Policy::GenerationWeights() {
  if (!adapter_) return current_.weights();
  bool changed = false;
  const Weights& merged = adapter_->Merged(&changed);
  if (changed) WaitForDevice(device_);  // the engine has a stream of its own
  return merged;
}

// The number is the process's: another plugin may have set its own since.
void Policy::UseThreads() const {
  if (at::get_num_threads() != options_.threads) at::set_num_threads(options_.threads);
}

std::string Policy::RenderChat(std::span<const tokenizer::Message> messages, bool add_generation_prompt,
                               std::optional<bool> enable_thinking) const {
  // Looked at only now: a model without a chat template is of use as long as nobody chats with it.
  const tokenizer::ChatTemplate chat_template =
      options_.chat_template == "auto"
          ? tokenizer::ChatTemplate::Detect(folder_)
          : tokenizer::ChatTemplate::ByName(options_.chat_template, options_.default_system);
  return chat_template.Render(messages, add_generation_prompt,
                              enable_thinking.has_value() ? enable_thinking : options_.enable_thinking);
}

void Policy::CheckIds(std::span<const int32_t> ids, const std::string& what) const {
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || ids[i] >= config_.vocabulary_size) {
      throw Error(KGRPO_ERROR_INVALID, what + ": token " + std::to_string(i) + " is " + std::to_string(ids[i]) +
                                           ", outside the model's vocabulary of " +
                                           std::to_string(config_.vocabulary_size));
    }
  }
}

void Policy::CheckPrompt(std::span<const int32_t> prompt, const std::string& what) const {
  if (prompt.empty()) throw Error(KGRPO_ERROR_INVALID, what + ": the prompt is empty");
  if (static_cast<int64_t>(prompt.size()) >= config_.context_length) {
    throw Error(KGRPO_ERROR_INVALID, what + ": its prompt of " + std::to_string(prompt.size()) +
                                         " tokens leaves no room in the context of " +
                                         std::to_string(config_.context_length));
  }
  CheckIds(prompt, what);
}

void Policy::Generate(const std::vector<GenerationRequest>& requests, const SamplingOptions& options,
                      const std::function<void(const Completion&)>& sink, const std::function<bool()>& cancelled) {
  RequireWeights();
  CheckSamplingOptions(options);
  for (size_t i = 0; i < requests.size(); ++i) CheckPrompt(requests[i].prompt, "request " + std::to_string(i));
  UseThreads();
  const Scope scope(device_);
  policy::Generate(config_, GenerationWeights(), *rotary_,
                   {options_.max_sequences, options_.max_tokens_per_chunk.value_or(kTokensAChunk)}, requests, options,
                   sink, cancelled);
}

GenerationScheduler& Policy::Engine() {
  const Scope scope(device_);
  const Weights& weights = GenerationWeights();
  if (engine_ == nullptr) {
    const EngineOptions options = {static_cast<int32_t>(options_.max_sequences), options_.generation_memory_mib};
    engine_ = std::make_unique<GenerationEngine>(config_, weights, *rotary_, device_, options);
    WaitForDevice(device_);
  }
  return engine_->Use();
}

void Policy::CheckSequences(std::span<const ScoredSequence> sequences) const {
  for (size_t i = 0; i < sequences.size(); ++i) {
    const std::string what = "sequence " + std::to_string(i);
    const ScoredSequence& sequence = sequences[i];
    if (sequence.prompt.empty()) throw Error(KGRPO_ERROR_INVALID, what + ": the prompt is empty");
    if (sequence.completion.empty()) throw Error(KGRPO_ERROR_INVALID, what + ": the completion is empty");
    const size_t size = sequence.prompt.size() + sequence.completion.size();
    if (static_cast<int64_t>(size) > config_.context_length) {
      throw Error(KGRPO_ERROR_INVALID, what + ": its " + std::to_string(size) + " tokens exceed the context of " +
                                           std::to_string(config_.context_length));
    }
    CheckIds(sequence.prompt, what + ", prompt");
    CheckIds(sequence.completion, what + ", completion");
  }
}

int64_t Policy::TokensAChunk() const {
  return options_.max_tokens_per_chunk.value_or(gpu_scorer_ == nullptr ? kTokensAChunk : kTokensAFusedChunk);
}

// The last token of a completion is never an input; the row before each of its tokens predicts it.
std::vector<Policy::Chunk> Policy::MakeChunks(std::span<const ScoredSequence> sequences) const {
  const int64_t most_rows = TokensAChunk();
  std::vector<int64_t> first_place(sequences.size());
  int64_t place = 0;
  for (size_t i = 0; i < sequences.size(); ++i) {
    first_place[i] = place;
    place += static_cast<int64_t>(sequences[i].completion.size());
  }
  const auto rows_of = [&](size_t i) {
    return static_cast<int64_t>(sequences[i].prompt.size() + sequences[i].completion.size()) - 1;
  };
  std::vector<size_t> order(sequences.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return rows_of(a) < rows_of(b); });

  std::vector<Chunk> chunks;
  for (size_t begin = 0; begin < order.size();) {
    Chunk chunk;
    int64_t rows = 0;
    size_t end = begin;
    for (; end < order.size() && (end == begin || rows + rows_of(order[end]) <= most_rows); ++end) {
      const ScoredSequence& sequence = sequences[order[end]];
      PackedSequence input;
      input.ids.assign(sequence.prompt.begin(), sequence.prompt.end());
      input.ids.insert(input.ids.end(), sequence.completion.begin(), sequence.completion.end() - 1);
      input.output_count = static_cast<int64_t>(sequence.completion.size());
      for (size_t j = 0; j < sequence.completion.size(); ++j) {
        chunk.targets.push_back(sequence.completion[j]);
        chunk.places.push_back(first_place[order[end]] + static_cast<int64_t>(j));
      }
      rows += rows_of(order[end]);
      chunk.lengths.push_back(rows_of(order[end]));
      chunk.sequences.push_back(std::move(input));
    }
    chunks.push_back(std::move(chunk));
    begin = end;
  }
  return chunks;
}

// About how much memory a chunk's activations take (LayerActivations), attention probabilities included.
int64_t Policy::ActivationBytes(const Chunk& chunk) const {
  int64_t bytes = 0;
  for (const int64_t length : chunk.lengths) bytes += ActivationBytes(length);
  return bytes;
}

// Those of a sequence.
int64_t Policy::ActivationBytes(int64_t length) const {
  const int64_t a_row =
      4 * config_.hidden_size + 3 * config_.query_size() + 4 * config_.kv_size() + 3 * config_.intermediate_size;
  return length * (a_row + config_.head_count * std::min<int64_t>(length, 256)) * config_.layer_count *
         static_cast<int64_t>(c10::elementSize(dtype_));
}

MemoryNeeds Policy::Memory(uint32_t ranks) const {
  MemoryNeeds needs;
  needs.ranks = ranks;
  needs.parameters = static_cast<uint64_t>(parameter_count());
  needs.weights = current_.buffer().nbytes();
  needs.has_adapter = adapter_.has_value();
  if (adapter_) {
    needs.trained = static_cast<uint64_t>(adapter_->factors().parameter_count());
    needs.adapter = needs.trained * sizeof(float);
    needs.merged = static_cast<uint64_t>(adapter_->merged_bytes());
  } else {
    needs.trained = needs.parameters;
    needs.masters = dtype_ == at::kBFloat16;
  }
  if (device_.is_cuda()) {
    needs.free = static_cast<uint64_t>(FreeBytesOf(device_));
    needs.total = static_cast<uint64_t>(TotalBytesOf(device_));
  }
  const int64_t tokens = TokensAChunk();
  needs.chunk_tokens = static_cast<uint64_t>(tokens);
  int64_t limit = options_.activation_memory_mib.value_or(kActivationMib) << 20;
  if (gpu_scorer_ != nullptr) {
    const int64_t all = gpu_scorer_->BytesARow(Keep::kAll);
    needs.activations = static_cast<uint64_t>(tokens * all);
    needs.least_activations =
        static_cast<uint64_t>(tokens * (gpu_scorer_->BytesARow(Keep::kLayerInputs) + all / config_.layer_count));
    if (!options_.activation_memory_mib) limit = GpuScorer::RoomForActivations(static_cast<int64_t>(needs.free));
  } else {  // a chunk that was not kept is computed again as a whole
    needs.activations = needs.least_activations =
        static_cast<uint64_t>(ActivationBytes(std::min(tokens, config_.context_length)));
  }
  needs.activation_limit = static_cast<uint64_t>(limit);
  needs.cache_token = static_cast<uint64_t>(2 * config_.kv_size() * config_.layer_count) * c10::elementSize(dtype_);
  if (has_engine_) {
    const uint64_t wanted =
        options_.generation_memory_mib ? static_cast<uint64_t>(*options_.generation_memory_mib) << 20 : needs.free / 4;
    needs.cache =
        std::min(wanted, static_cast<uint64_t>(options_.max_sequences * config_.context_length) * needs.cache_token);
  }
  return needs;
}

TokenLogprobs Policy::ForwardByLibtorch(Chunk& chunk, const Weights& weights, double temperature, bool need_gradient,
                                        bool want_entropies, int64_t& memory_left) {
  chunk.batch = PackSequences(config_, chunk.sequences, *rotary_, device_);
  chunk.target_ids = IndexTensor(chunk.targets, device_);
  const bool keep = need_gradient && ActivationBytes(chunk) <= memory_left;
  if (keep) memory_left -= ActivationBytes(chunk);
  const at::Tensor hidden =
      TransformerForward(config_, weights, chunk.batch, keep ? &chunk.activations : nullptr, nullptr);
  if (keep) chunk.hidden = hidden;
  return ComputeTokenLogprobs(hidden, weights.head, chunk.target_ids, temperature, want_entropies);
}

TokenLogprobs Policy::ForwardFused(Chunk& chunk, const Weights& weights, double temperature, bool need_gradient,
                                   bool want_entropies) {
  std::optional<int64_t> memory = options_.activation_memory_mib;
  if (memory) *memory <<= 20;
  GpuScorer::Result result =
      gpu_scorer_->Forward(weights, chunk.sequences, chunk.targets, temperature, want_entropies, need_gradient, memory);
  chunk.pass = std::move(result.pass);
  return {result.logprobs, result.entropies};
}

ForwardContextPtr Policy::Forward(std::span<const ScoredSequence> sequences, Copy copy, double temperature,
                                  bool need_gradient, const at::Tensor& logprobs, const at::Tensor& entropies) {
  const Weights& weights = WeightsOf(copy);
  if (!std::isfinite(temperature) || temperature <= 0) {
    throw Error(KGRPO_ERROR_INVALID, "forward: the temperature must be above 0");
  }
  if (need_gradient && copy != Copy::kCurrent) {
    throw Error(KGRPO_ERROR_INVALID, "forward: only the current copy can be differentiated");
  }
  CheckSequences(sequences);
  UseThreads();
  const Scope scope(device_);

  ForwardContextPtr context(need_gradient ? new ForwardContext : nullptr);
  int64_t memory_left = options_.activation_memory_mib.value_or(kActivationMib) << 20;
  std::vector<Chunk> chunks = MakeChunks(sequences);
  for (Chunk& chunk : chunks) {
    const TokenLogprobs result =
        gpu_scorer_ == nullptr
            ? ForwardByLibtorch(chunk, weights, temperature, need_gradient, entropies.defined(), memory_left)
            : ForwardFused(chunk, weights, temperature, need_gradient, entropies.defined());
    const at::Tensor places = IndexTensor(chunk.places, logprobs.device());
    at::Tensor(logprobs).index_copy_(0, places, result.logprobs.to(logprobs.device()));
    if (entropies.defined()) at::Tensor(entropies).index_copy_(0, places, result.entropies.to(entropies.device()));
  }
  if (context != nullptr) {
    context->chunks = std::move(chunks);
    context->temperature = temperature;
  }
  return context;
}

void Policy::Backward(ForwardContextPtr context, const at::Tensor& d_logprobs, const GradientsFinal& final) {
  UseThreads();
  const Scope scope(device_);
  const Weights& weights = WeightsOf(Copy::kCurrent);
  const Weights& gradients = adapter_ ? adapter_->gradient_weights() : this->gradients().weights();
  const at::Tensor& buffer = adapter_ ? adapter_->gradients().buffer() : this->gradients().buffer();
  std::vector<LayerPiece> pieces;
  if (final) pieces = LayerPieces(adapter_ ? adapter_->gradients().specs() : this->gradients().specs(), buffer.numel());
  const LayerDone tell = [&](int64_t layer) {
    for (const LayerPiece& piece : pieces) {
      if (piece.layer == layer) final(buffer.narrow(0, piece.begin, piece.end - piece.begin));
    }
  };
  for (Chunk& chunk : context->chunks) {
    const bool is_last = &chunk == &context->chunks.back();
    const LayerDone done = final && is_last ? tell : LayerDone();
    const at::Tensor d = d_logprobs.index_select(0, IndexTensor(chunk.places, d_logprobs.device())).to(device_);
    if (gpu_scorer_ != nullptr) {
      gpu_scorer_->Backward(weights, gradients, std::move(chunk.pass), context->temperature, d, done);
    } else {
      if (!chunk.hidden.defined()) {
        chunk.hidden = TransformerForward(config_, weights, chunk.batch, &chunk.activations, nullptr);
      }
      const at::Tensor d_hidden =
          TokenLogprobsBackward(d, chunk.hidden, weights.head, gradients.head, chunk.target_ids, context->temperature);
      TransformerBackward(config_, weights, gradients, chunk.batch, chunk.activations, d_hidden, done);
    }
    chunk = Chunk();
  }
}

const ParameterSet& Policy::gradients() {
  RequireWeights();
  if (adapter_) throw Error(KGRPO_ERROR_INVALID, "the weights are frozen: the adapter trains");
  if (!gradients_.defined()) {
    const Scope scope(device_);
    gradients_ = ParameterSet(config_, at::kFloat, device_);
  }
  return gradients_;
}

void Policy::ZeroGradients() {
  const Scope scope(device_);
  at::Tensor(adapter_ ? adapter_->gradients().buffer() : gradients().buffer()).zero_();
}

void Policy::FreezeReference() {
  RequireWeights();
  const Scope scope(device_);
  if (adapter_) {
    adapter_->FreezeReference();
    return;
  }
  if (!reference_.defined()) reference_ = ParameterSet(config_, dtype_, device_);
  at::Tensor(reference_.buffer()).copy_(current_.buffer());
}

void Policy::Save(Copy copy, const std::string& directory) {
  WeightsOf(copy);  // throws where there is no such copy
  const Scope scope(device_);
  for (const auto& [name, content] : files_) {
    const bool is_config = name == "config.json";
    if (adapter_ && (is_config || name == "generation_config.json")) continue;  // the base's
    const std::string text = is_config ? WithDtype(content, options_.bfloat16 ? "bfloat16" : "float32") : content;
    WriteFileAtomically(directory + "/" + name, {text});
  }
  if (adapter_) {
    adapter_->Save(copy == Copy::kReference, directory);
  } else {
    WriteParameters(directory, copy == Copy::kCurrent ? current_ : reference_);
  }
}

void Policy::Load(Copy copy, const std::string& directory) {
  RequireWeights();
  const Scope scope(device_);
  if (adapter_) {
    adapter_->Load(copy == Copy::kReference, directory);
    return;
  }
  ParameterSet loaded(config_, dtype_, device_);
  ReadWeights(directory, loaded);
  if (copy == Copy::kCurrent) {
    at::Tensor(current_.buffer()).copy_(loaded.buffer());  // in place: others hold views
  } else {
    reference_ = std::move(loaded);
  }
}

}  // namespace kgrpo::policy
