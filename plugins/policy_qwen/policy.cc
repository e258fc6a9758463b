#include "policy_qwen/policy.h"

#include <ATen/Parallel.h>
#include <kgrpo/sdk/error.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "policy_qwen/device.h"
#include "policy_qwen/files.h"
#include "policy_qwen/gpu/fused_ops.h"

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

std::map<std::string, std::string> ReadCompanionFiles(const PolicyOptions& options, const std::string& folder,
                                                      const std::string& tokenizer_folder) {
  std::map<std::string, std::string> files;
  for (const std::string name : kCompanionFiles) {
    std::string path = (name == "config.json" ? folder : tokenizer_folder) + "/" + name;
    if (name == "generation_config.json")  // an adapter's has the sampling that it was trained with
      path = (FileExists(options.model + "/" + name) ? options.model : folder) + "/" + name;
    if (FileExists(path)) files[name] = ReadFile(path);
  }
  return files;
}

// Returns config.json as it describes the written weights: their dtype, and whether they have a head.
std::string WithWeights(const std::string& config, const char* dtype, bool tied_head) {
  nlohmann::ordered_json object = nlohmann::ordered_json::parse(config);
  object[object.contains("torch_dtype") ? "torch_dtype" : "dtype"] = dtype;
  if (!tied_head && object.contains("tie_word_embeddings")) object["tie_word_embeddings"] = false;
  return object.dump(2) + "\n";
}

PolicyOptions WithSnapshots(PolicyOptions options) {
  options.model = SnapshotOf(options.model);
  if (options.adapter) options.adapter->start = SnapshotOf(options.adapter->start);
  return options;
}

// The folder with the configuration: an adapter's base, or the folder itself.
std::string ModelFolder(const PolicyOptions& options) {
  if (!IsAdapterFolder(options.model)) return options.model;
  if (options.adapter) {
    throw Error(KGRPO_ERROR_INVALID, "model: " + options.model +
                                         " holds an adapter; to continue its training, set model to its base, " +
                                         BaseOfAdapter(options.model) + ", and adapter.start to it");
  }
  return BaseOfAdapter(options.model);
}

// An adapter's folder, if a tokenizer is there; else the model's.
std::string TokenizerFolder(const PolicyOptions& options, const std::string& folder) {
  const std::string& own = options.adapter ? options.adapter->start : options.model;
  if (own.empty() || FileExists(own + "/tokenizer.json")) return own.empty() ? folder : own;
  for (const char* name : {"tokenizer_config.json", "chat_template.jinja"}) {
    if (own == folder || !FileExists(own + "/" + name)) continue;
    throw Error(KGRPO_ERROR_INVALID, own + ": holds " + name +
                                         ", but no tokenizer.json; copy tokenizer.json there from " + folder +
                                         ", or remove " + name + " to take the tokenizer there");
  }
  return folder;
}

void CopyWeights(const Weights& from, const Weights& to) {
  std::vector<at::Tensor> sources;
  ForEachTensor(from, [&](const at::Tensor& tensor) { sources.push_back(tensor); });
  size_t next = 0;
  ForEachTensor(to, [&](const at::Tensor& tensor) { tensor.copy_(sources[next++]); });
}

}  // namespace

Policy::Policy(const PolicyOptions& options, uint64_t seed)
    : options_(WithSnapshots(options)),
      folder_(ModelFolder(options_)),
      tokenizer_folder_(TokenizerFolder(options_, folder_)),
      tokenizer_(tokenizer::Tokenizer::Load(tokenizer_folder_)),
      chat_template_(
          tokenizer::ChatTemplate::Load(tokenizer_folder_, options.chat_template, options.chat_template_arguments)),
      device_(at::kCPU),
      dtype_(options.bfloat16 ? at::kBFloat16 : at::kFloat),
      files_(ReadCompanionFiles(options_, folder_, tokenizer_folder_)) {
  const bool built_in = options_.chat_template == "chatml" || options_.chat_template == "qwen3";
  if (const auto foreign = built_in ? ForeignMarkers() : std::vector<std::string>(); !foreign.empty()) {
    throw Error(KGRPO_ERROR_INVALID, "chat_template: " + options_.chat_template + " writes " + foreign[0] +
                                         ", which is not a token of " + tokenizer_folder_ +
                                         "; set chat_template to auto or to the path of a Jinja file for this model");
  }
  if (options_.tokenizer_only) return;
  config_ = ReadModelConfig(folder_);
  if (static_cast<int64_t>(tokenizer_.vocabulary_size()) > config_.vocabulary_size) {
    const auto last = static_cast<int32_t>(tokenizer_.vocabulary_size() - 1);
    throw Error(KGRPO_ERROR_INVALID, tokenizer_folder_ + ": the tokenizer's token '" +
                                         tokenizer_.Decode({&last, 1}, false) + "' has the id " + std::to_string(last) +
                                         ", but \"vocab_size\" in config.json is " +
                                         std::to_string(config_.vocabulary_size));
  }
  if (config_.end_ids.empty() && tokenizer_.eos_id() >= 0) config_.end_ids.push_back(tokenizer_.eos_id());
  device_ = OpenDevice(options_.device);
  UseThreads();
  const DeviceScope scope(device_);
  RequireRoom(config_, folder_, options_.bfloat16 ? 2 : 4,
              static_cast<double>(device_.is_cpu() ? static_cast<int64_t>(MachineBytes()) : FreeBytesOf(device_)),
              device_.is_cpu() ? "this machine" : "the GPU, free,");
  if (config_.tied_head && !options_.random_weights && HasOwnHead(folder_)) {
    config_.tied_head = false;
    config_.notes.push_back(folder_ +
                            ": \"tie_word_embeddings\" is true, but \"lm_head.weight\" differs from the "
                            "embedding: it is used as the head, as transformers does");
  }
  current_ = ParameterSet(config_, dtype_, device_);
  rotary_ = std::make_unique<RotaryTable>(config_, dtype_, device_);
  engine_choice_ = ChooseEngine(options_.engine_generation, device_, [&] { RequireEngine(config_, device_); });
  if (options_.adapter && options_.random_weights)
    throw Error(KGRPO_ERROR_INVALID, "init: random leaves nothing to adapt: an adapter needs pretrained weights");
  if (device_.is_cpu()) {
    ops_ = std::make_unique<Ops>();
  } else if (options_.trains) {
    const auto& kernels = OpenGpuTable<GpuKernels>();
    CheckCard("training", device_, kernels.check_card(device_.index()), "\"device\": \"cpu\"");
    ops_ = std::make_unique<FusedOps>(kernels, device_, [device = device_] { return FreeBytesOf(device); });
  }
  if (ops_ != nullptr) scorer_ = std::make_unique<Scorer>(config_, *ops_, *rotary_);
  if (options_.random_weights) {
    InitializeParameters(config_, seed, current_);
  } else {
    ReadWeights(options_.model, current_);
  }
  if (options_.adapter) {
    adapter_.emplace(*options_.adapter, config_, current_.weights(), folder_, device_, seed);
  }
}

// For an adapter's folder, reads its base and merges the adapter in.
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

Weights Policy::WeightsOf(Copy copy) const {
  RequireWeights();
  if (copy == Copy::kCurrent) return adapter_ ? adapter_->weights() : current_.weights();
  if (adapter_ ? !adapter_->has_reference() : !reference_.defined()) {
    throw Error(KGRPO_ERROR_INVALID, "the policy has no reference copy yet: freeze_reference or load makes it");
  }
  return adapter_ ? adapter_->reference_weights() : reference_.weights();
}

// Call before requests are served, when none is in flight: the parameters may change only then.
const Weights& Policy::GenerationWeights() {
  if (!adapter_) return current_.weights();
  bool changed = false;
  const Weights& merged = adapter_->Merged(&changed);
  if (changed) WaitForDevice(device_);  // the engine has a stream of its own
  return merged;
}

// The number of threads is the process's: another plugin may have changed it.
void Policy::UseThreads() const {
  if (at::get_num_threads() != options_.threads) at::set_num_threads(options_.threads);
}

std::string Policy::RenderChat(const tokenizer::Json& messages, bool add_generation_prompt,
                               const tokenizer::Json& arguments) const {
  if (!chat_template_) {
    throw Error(KGRPO_ERROR_UNSUPPORTED,
                tokenizer_folder_ +
                    ": has no chat_template.jinja, and tokenizer_config.json no chat_template; set the option "
                    "chat_template to chatml, qwen3 or the path of a Jinja file");
  }
  return chat_template_->Render(messages, add_generation_prompt, arguments);
}

std::vector<std::string> Policy::ForeignMarkers() const {
  std::vector<std::string> markers;
  if (chat_template_) markers = chat_template_->Markers();
  std::erase_if(markers, [&](const std::string& marker) { return tokenizer_.Encode(marker).size() == 1; });
  return markers;
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
                                         std::to_string(config_.context_length) + config_.context_note);
  }
  CheckIds(prompt, what);
}

void Policy::Generate(const std::vector<GenerationRequest>& requests, const SamplingOptions& options,
                      const std::function<void(const Completion&)>& sink, const std::function<bool()>& cancelled) {
  RequireWeights();
  CheckSamplingOptions(options);
  for (size_t i = 0; i < requests.size(); ++i) CheckPrompt(requests[i].prompt, "request " + std::to_string(i));
  Engine().Run(requests, options, sink, cancelled);
}

GenerationScheduler& Policy::Engine() {
  UseThreads();
  const DeviceScope scope(device_);
  const Weights* weights = &GenerationWeights();
  if (!generates_on_device()) {
    const bool is_first = !host_copy_;
    if (is_first) {
      host_copy_.emplace(HostCopy{ParameterSet(config_, dtype_, at::kCPU), RotaryTable(config_, dtype_, at::kCPU)});
    }
    if (is_first || options_.trains) CopyWeights(*weights, host_copy_->parameters.weights());
    weights = &host_copy_->parameters.weights();
  }
  if (engine_ == nullptr) {
    const EngineOptions options = {static_cast<int32_t>(options_.max_sequences), options_.generation_memory_mib};
    engine_ = std::make_unique<GenerationEngine>(config_, *weights, host_copy_ ? host_copy_->rotary : *rotary_,
                                                 host_copy_ ? at::Device(at::kCPU) : device_, options);
    WaitForDevice(device_);
  }
  return engine_->scheduler();
}

std::string Policy::PromptNote() const { return engine_ == nullptr ? "" : engine_->prompt_note(); }

const ParameterSet& Policy::gradients() {
  RequireWeights();
  if (adapter_) throw Error(KGRPO_ERROR_INVALID, "the weights are frozen: the adapter trains");
  if (!gradients_.defined()) {
    const DeviceScope scope(device_);
    gradients_ = ParameterSet(config_, at::kFloat, device_);
  }
  return gradients_;
}

const TensorSet& Policy::TrainedGradients() {
  if (adapter_) return adapter_->gradients();
  return gradients();
}

void Policy::ZeroGradients() {
  const DeviceScope scope(device_);
  at::Tensor(TrainedGradients().buffer()).zero_();
}

void Policy::FreezeReference() {
  RequireWeights();
  const DeviceScope scope(device_);
  if (adapter_) {
    adapter_->FreezeReference();
    return;
  }
  if (!reference_.defined()) reference_ = ParameterSet(config_, dtype_, device_);
  at::Tensor(reference_.buffer()).copy_(current_.buffer());
}

void Policy::Save(Copy copy, const std::string& directory) {
  WeightsOf(copy);  // throws where there is no such copy
  const DeviceScope scope(device_);
  // The chat template in use, in place of the folder's. Readers take chat_template.jinja before tokenizer_config.json.
  std::map<std::string, std::string> files = files_;
  if (chat_template_) {
    for (const auto& [name, text] : chat_template_->Files()) files[name] = text;
  }
  for (const auto& [name, content] : files) {
    const bool is_config = name == "config.json";
    if (adapter_ && is_config) continue;  // the base has it
    const std::string text =
        is_config ? WithWeights(content, options_.bfloat16 ? "bfloat16" : "float32", config_.tied_head) : content;
    const size_t slash = name.find('/');  // additional_chat_templates/tool_use.jinja
    if (std::error_code error; slash != std::string::npos)
      std::filesystem::create_directory(directory + "/" + name.substr(0, slash),
                                        error);  // if not, the file cannot be opened
    WriteFileAtomically(directory + "/" + name, {text});
  }
  if (adapter_) {
    adapter_->Save(copy == Copy::kReference, directory);
  } else {
    (copy == Copy::kCurrent ? current_ : reference_).Write(directory + "/model.safetensors");  // without a tied head
  }
}

void Policy::Load(Copy copy, const std::string& directory) {
  RequireWeights();
  const std::string folder = SnapshotOf(directory);
  const DeviceScope scope(device_);
  if (adapter_) {
    adapter_->Load(copy == Copy::kReference, folder);
    return;
  }
  if (config_.tied_head && HasOwnHead(IsAdapterFolder(folder) ? BaseOfAdapter(folder) : folder)) {
    throw Error(KGRPO_ERROR_INVALID, folder +
                                         ": \"lm_head.weight\" differs from the embedding, to which the policy's "
                                         "model ties its head");
  }
  ParameterSet loaded(config_, dtype_, device_);
  ReadWeights(folder, loaded);
  if (copy == Copy::kCurrent) {
    at::Tensor(current_.buffer()).copy_(loaded.buffer());  // in place: others hold views
  } else {
    reference_ = std::move(loaded);
  }
}

}  // namespace kgrpo::policy
