// Policy of instances.h.
#include <kgrpo/sdk/error.h>
#include <kgrpo/sdk/tensor.h>
#include <kgrpo/sdk/text.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>
#include <utility>

#include "plugin/instances.h"
#include "plugin/sinks.h"

namespace kgrpo {
namespace {

std::vector<kgrpo_message> ToC(std::span<const ChatMessage> messages) {
  std::vector<kgrpo_message> c;
  c.reserve(messages.size());
  for (const ChatMessage& message : messages) c.push_back({Str(message.role), Str(message.content)});
  return c;
}

kgrpo_chat_options ToC(const ChatOptions& options) {
  kgrpo_chat_options c{};
  c.struct_size = sizeof(c);
  c.add_generation_prompt = options.add_generation_prompt;
  c.enable_thinking = options.enable_thinking ? static_cast<int32_t>(*options.enable_thinking) : -1;
  return c;
}

}  // namespace

const kgrpo_policy_info& Policy::info() const {
  return *api()->info(raw());
}

std::vector<int32_t> Policy::EncodeChat(std::span<const ChatMessage> messages, const ChatOptions& options) const {
  const std::vector<kgrpo_message> c = ToC(messages);
  const kgrpo_chat_options chat = ToC(options);
  return CollectTokens(
      [&](kgrpo_token_sink sink) { return api()->encode_chat(raw(), c.data(), c.size(), &chat, sink); });
}

std::string Policy::RenderChat(std::span<const ChatMessage> messages, const ChatOptions& options) const {
  const std::vector<kgrpo_message> c = ToC(messages);
  const kgrpo_chat_options chat = ToC(options);
  return CollectText([&](kgrpo_text_sink sink) { return api()->render_chat(raw(), c.data(), c.size(), &chat, sink); });
}

std::vector<int32_t> Policy::Encode(std::string_view text) const {
  return CollectTokens([&](kgrpo_token_sink sink) { return api()->encode(raw(), Str(text), sink); });
}

std::string Policy::Decode(std::span<const int32_t> ids, bool skip_special) const {
  return CollectText(
      [&](kgrpo_text_sink sink) { return api()->decode(raw(), ids.data(), ids.size(), skip_special, sink); });
}

namespace {

// A submission in flight: freed when the last of its requests has ended.
struct Submission {
  std::shared_ptr<InFlight> in_flight;
  Policy::Done done;
  struct Pending {
    Submission* submission;
    size_t request;
  };
  std::vector<Pending> pending;
  std::atomic<size_t> left;
};

// The callback that plugins call.
void DeliverCompletion(void* context, const kgrpo_completion* c, kgrpo_error* error) {
  auto* pending = static_cast<Submission::Pending*>(context);
  Submission* submission = pending->submission;
  std::optional<Completion> completion;
  std::exception_ptr failure;
  try {
    Check(error);
    if (c == nullptr) throw Error(KGRPO_ERROR_INTERNAL, "the policy delivered neither a completion nor an error");
    completion = Completion::FromC(*c);
    completion->request = pending->request;
  } catch (...) {
    failure = std::current_exception();
  }
  submission->done(pending->request, std::move(completion), failure);
  const std::shared_ptr<InFlight> in_flight = submission->in_flight;
  if (--submission->left == 0) delete submission;
  in_flight->Remove(1);
}

}  // namespace

Policy::Policy(const kgrpo_policy_interface* api, const kgrpo_host* host, const nlohmann::json& options)
    : Instance(api, host, options), in_flight_(std::make_shared<InFlight>()) {}

Policy::~Policy() {
  if (raw() == nullptr || !in_flight_->any()) return;  // moved from, or idle
  Cancel();
  in_flight_->WaitForNone();
}

void Policy::Submit(std::span<const GenerateRequest> requests, const kgrpo_sampling& sampling, Done done) {
  if (requests.empty()) return;
  auto submission = std::make_unique<Submission>();
  submission->in_flight = in_flight_;
  submission->done = std::move(done);
  submission->left = requests.size();
  submission->pending.reserve(requests.size());
  std::vector<kgrpo_generate_request> c(requests.size());
  std::vector<const kgrpo_generate_request*> pointers(requests.size());
  for (size_t i = 0; i < requests.size(); ++i) {
    Submission::Pending& pending = submission->pending.emplace_back(Submission::Pending{submission.get(), i});
    c[i].struct_size = sizeof(c[i]);
    c[i].prompt_ids = requests[i].prompt.data();
    c[i].prompt_size = requests[i].prompt.size();
    c[i].seed = requests[i].seed;
    c[i].sampling = &sampling;
    c[i].done = {&pending, DeliverCompletion};
    pointers[i] = &c[i];
  }
  in_flight_->Add(requests.size());
  kgrpo_error* error = api()->generate(raw(), pointers.data(), pointers.size());
  if (error == nullptr) {
    submission.release();  // NOLINT(bugprone-unused-return-value): its last DeliverCompletion frees it, perhaps before
    return;
  }
  in_flight_->Remove(requests.size());
  Check(error);
}

void Policy::Cancel() {
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
  Check(api()->forward(raw(), &request, result.c(), entropies != nullptr ? entropy.c() : nullptr, nullptr));
  return logprobs;
}

std::span<const kgrpo_parameter_group* const> Policy::Parameters() {
  const kgrpo_parameter_group* const* groups = nullptr;
  size_t count = 0;
  Check(api()->parameters(raw(), &groups, &count));
  return {groups, count};
}

void Policy::FreezeReference() {
  Check(api()->freeze_reference(raw()));
}
void Policy::Save(kgrpo_policy_copy copy, const std::string& directory) {
  Check(api()->save(raw(), copy, Str(directory)));
}
void Policy::Load(kgrpo_policy_copy copy, const std::string& directory) {
  Check(api()->load(raw(), copy, Str(directory)));
}

}  // namespace kgrpo
