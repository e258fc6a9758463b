// Policy of instances.h.
#include <kgrpo/sdk/error.h>
#include <kgrpo/sdk/tensor.h>
#include <kgrpo/sdk/text.h>

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "plugin/instances.h"
#include "plugin/sinks.h"

namespace kgrpo {
namespace {

void RequireReads(const std::string& json, const kgrpo_policy_info& info) {
  if (json.empty() || info.reads_chat_arguments != 0) return;
  throw Error(KGRPO_ERROR_UNSUPPORTED,
              "this policy takes only the roles and texts of a chat, and no tools, thoughts or other arguments of its "
              "chat template");
}

std::vector<kgrpo_message> ToC(std::span<const ChatMessage> messages, const kgrpo_policy_info& info) {
  std::vector<kgrpo_message> c;
  c.reserve(messages.size());
  for (const ChatMessage& message : messages) {
    RequireReads(message.members, info);
    c.push_back({Str(message.role), Str(message.content), Str(message.members)});
  }
  return c;
}

kgrpo_chat_options ToC(const ChatOptions& options, const kgrpo_policy_info& info) {
  RequireReads(options.arguments, info);
  kgrpo_chat_options c{};
  c.struct_size = sizeof(c);
  c.add_generation_prompt = options.add_generation_prompt;
  c.enable_thinking = options.enable_thinking ? static_cast<int32_t>(*options.enable_thinking) : -1;
  c.arguments = Str(options.arguments);
  return c;
}

}  // namespace

const kgrpo_policy_info& Policy::info() const { return *api()->info(raw()); }

std::vector<int32_t> Policy::EncodeChat(std::span<const ChatMessage> messages, const ChatOptions& options) const {
  const std::vector<kgrpo_message> c = ToC(messages, info());
  const kgrpo_chat_options chat = ToC(options, info());
  const PluginCall call = Calling("encode_chat");
  return CollectTokens(
      [&](kgrpo_token_sink sink) { return api()->encode_chat(raw(), c.data(), c.size(), &chat, sink); });
}

std::string Policy::RenderChat(std::span<const ChatMessage> messages, const ChatOptions& options) const {
  const std::vector<kgrpo_message> c = ToC(messages, info());
  const kgrpo_chat_options chat = ToC(options, info());
  const PluginCall call = Calling("render_chat");
  return CollectText([&](kgrpo_text_sink sink) { return api()->render_chat(raw(), c.data(), c.size(), &chat, sink); });
}

std::vector<int32_t> Policy::Encode(std::string_view text) const {
  const PluginCall call = Calling("encode");
  return CollectTokens([&](kgrpo_token_sink sink) { return api()->encode(raw(), Str(text), sink); });
}

std::vector<int32_t> Policy::EncodePrompt(std::string_view text) const {
  const kgrpo_policy_info& about = info();
  std::vector<int32_t> ids(about.prefix_ids, about.prefix_ids + about.prefix_id_count);
  const std::vector<int32_t> of_text = Encode(text);
  ids.insert(ids.end(), of_text.begin(), of_text.end());
  return ids;
}

std::vector<int32_t> Policy::EncodeCompletion(std::string_view text) const {
  if (info().end_id_count == 0) {
    throw Error(KGRPO_ERROR_INVALID,
                "the policy has no end token, which must end a completion that it does not sample: give its model one, "
                "such as \"eos_token_id\" in generation_config.json");
  }
  std::vector<int32_t> ids = Encode(text);
  ids.push_back(info().end_ids[0]);
  return ids;
}

std::string Policy::Decode(std::span<const int32_t> ids, bool skip_special) const {
  const PluginCall call = Calling("decode");
  return CollectText(
      [&](kgrpo_text_sink sink) { return api()->decode(raw(), ids.data(), ids.size(), skip_special, sink); });
}

namespace {

Completion TakeCompletion(const kgrpo_completion* completion, kgrpo_error* error) {
  if (error != nullptr && completion != nullptr) {
    error->release(error);
    throw Error(KGRPO_ERROR_INTERNAL, "the policy delivered both a completion and an error");
  }
  Check(error);
  if (completion == nullptr)
    throw Error(KGRPO_ERROR_INTERNAL, "the policy delivered neither a completion nor an error");
  return Completion::FromC(*completion);
}

}  // namespace

// The plugin's table with two functions that also count. They receive only the plugin's instance, and find the rest by
// it.
struct Policy::Lent {
  Lent(const kgrpo_policy_interface& plugins, const kgrpo_policy* policy) : own(plugins), instance(policy) {
    const size_t size = std::min<size_t>(own.struct_size, sizeof table);  // perhaps another revision
    std::memcpy(&table, &own, size);
    table.struct_size = static_cast<uint32_t>(size);
    table.freeze_reference = [](kgrpo_policy* self) noexcept {
      Lent& lent = Of(self);
      return lent.Count(lent.own.freeze_reference(self));
    };
    table.load = [](kgrpo_policy* self, uint32_t copy, kgrpo_str directory) noexcept {
      Lent& lent = Of(self);
      kgrpo_error* const error = lent.own.load(self, copy, directory);
      return copy == KGRPO_POLICY_REFERENCE ? lent.Count(error) : error;
    };
    const std::lock_guard lock(mutex);
    all[instance] = this;
  }
  ~Lent() {
    const std::lock_guard lock(mutex);
    all.erase(instance);
  }

  static Lent& Of(const kgrpo_policy* policy) {
    const std::lock_guard lock(mutex);
    return *all.find(policy)->second;
  }
  kgrpo_error* Count(kgrpo_error* error) {
    if (error == nullptr) ++reference_version;
    return error;
  }

  inline static std::mutex mutex;
  inline static std::map<const kgrpo_policy*, Lent*> all;

  const kgrpo_policy_interface& own;
  const kgrpo_policy* instance;
  kgrpo_policy_interface table{};
  uint64_t reference_version = 0;
};

Policy::Policy(const kgrpo_policy_interface* api, const kgrpo_host* host, const nlohmann::json& options)
    : Instance(api, host, options),
      in_flight_(InFlight<kgrpo_completion>::Make(plugin_name())),
      lent_(std::make_shared<Lent>(*api, raw())) {
  const kgrpo_policy_info* info = api->info(raw());
  if (info == nullptr) throw Error(KGRPO_ERROR_INTERNAL, "the policy has no info");
  RequireSize(info->struct_size, KGRPO_POLICY_INFO_SIZE_1, "kgrpo_policy_info");
}

Policy::~Policy() {
  if (raw() == nullptr || !in_flight_->any()) return;  // moved from, or idle
  Cancel();
  in_flight_->WaitForNone();
}

void Policy::Submit(std::span<const GenerateRequest> requests, const kgrpo_sampling& sampling, Done done) {
  if (requests.empty()) return;
  in_flight_->ThrowFault();
  const auto shared_done = std::make_shared<const Done>(std::move(done));
  std::vector<kgrpo_generate_request> c(requests.size());
  std::vector<const kgrpo_generate_request*> pointers(requests.size());
  for (size_t i = 0; i < requests.size(); ++i) {
    void* context = in_flight_->Add([shared_done, i](const kgrpo_completion* result, kgrpo_error* error) {
      std::optional<Completion> completion;
      std::exception_ptr failure;
      try {
        completion = TakeCompletion(result, error);
        completion->request = i;
      } catch (...) {
        failure = std::current_exception();
      }
      (*shared_done)(i, std::move(completion), failure);
    });
    c[i].struct_size = sizeof(c[i]);
    c[i].prompt_ids = requests[i].prompt.data();
    c[i].prompt_size = requests[i].prompt.size();
    c[i].seed = requests[i].seed;
    c[i].sampling = &sampling;
    c[i].done = {context, InFlight<kgrpo_completion>::Deliver};
    pointers[i] = &c[i];
  }
  const PluginCall call = Calling("generate");
  kgrpo_error* error = api()->generate(raw(), pointers.data(), pointers.size());
  if (error == nullptr) return;
  bool none_ended = true;
  for (const kgrpo_generate_request& request : c) none_ended = in_flight_->Drop(request.done.context) && none_ended;
  if (none_ended) return Check(error);
  error->release(error);
  in_flight_->ThrowFault();
}

void Policy::Cancel() {
  const PluginCall call = Calling("cancel");
  api()->cancel(raw());
}

std::vector<Completion> Policy::Generate(std::span<const GenerateRequest> requests, const kgrpo_sampling& sampling) {
  std::vector<Completion> completions(requests.size());
  std::mutex mutex;
  std::condition_variable all;
  size_t left = requests.size();
  std::exception_ptr failure;
  Submit(requests, sampling, [&](size_t request, std::optional<Completion> completion, std::exception_ptr error) {
    const std::lock_guard lock(mutex);  // notified under the lock: all of this lives on the waiter's stack
    if (completion) completions[request] = *std::move(completion);
    if (error && !failure) failure = std::move(error);
    if (--left == 0) all.notify_one();
  });
  std::unique_lock lock(mutex);
  all.wait(lock, [&] { return left == 0; });
  if (failure) std::rethrow_exception(failure);
  return completions;
}

std::vector<float> Policy::LogProbabilities(std::span<const kgrpo_sequence> sequences, double temperature,
                                            kgrpo_policy_copy copy, std::vector<float>* entropies) {
  size_t tokens = 0;
  for (const kgrpo_sequence& sequence : sequences) tokens += sequence.completion_size;
  std::vector<float> logprobs(tokens);
  if (entropies != nullptr) entropies->resize(tokens);
  kgrpo_forward_request request{};
  request.struct_size = sizeof(request);
  request.sequences = sequences.data();
  request.sequence_count = sequences.size();
  request.copy = copy;
  request.temperature = temperature;
  const FloatTensor result(logprobs.data(), tokens);
  const FloatTensor entropy(entropies != nullptr ? entropies->data() : nullptr, tokens);
  const PluginCall call = Calling("forward");
  Check(api()->forward(raw(), &request, result.c(), entropies != nullptr ? entropy.c() : nullptr, nullptr));
  const auto bad = std::ranges::find_if_not(logprobs, [](float logprob) { return std::isfinite(logprob); });
  if (bad != logprobs.end()) {
    throw Error(KGRPO_ERROR_NOT_FINITE, "the policy's log-probability of a completion token is " +
                                            std::to_string(*bad) +
                                            ": the model's logits are not finite. Its weights have diverged, or its "
                                            "values are too large for the policy's dtype (with bfloat16, try float32)");
  }
  return logprobs;
}

void Policy::FreezeReference() {
  const PluginCall call = Calling("freeze_reference");
  Check(trainer_api()->freeze_reference(raw()));
}
void Policy::Save(kgrpo_policy_copy copy, const std::string& directory) {
  const PluginCall call = Calling("save");
  Check(api()->save(raw(), copy, Str(directory)));
}
void Policy::Load(kgrpo_policy_copy copy, const std::string& directory) {
  const PluginCall call = Calling("load");
  Check(trainer_api()->load(raw(), copy, Str(directory)));
}

const kgrpo_policy_interface* Policy::trainer_api() const { return &lent_->table; }
uint64_t Policy::reference_version() const { return lent_->reference_version; }

}  // namespace kgrpo
