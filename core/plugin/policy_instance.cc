// Policy of instances.h.
#include <kgrpo/sdk/error.h>
#include <kgrpo/sdk/text.h>

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

std::vector<int32_t> Policy::EncodeChat(std::span<const ChatMessage> messages, const ChatOptions& options) {
  const std::vector<kgrpo_message> c = ToC(messages);
  const kgrpo_chat_options chat = ToC(options);
  return CollectTokens(
      [&](kgrpo_token_sink sink) { return api()->encode_chat(raw(), c.data(), c.size(), &chat, sink); });
}

std::string Policy::RenderChat(std::span<const ChatMessage> messages, const ChatOptions& options) {
  const std::vector<kgrpo_message> c = ToC(messages);
  const kgrpo_chat_options chat = ToC(options);
  return CollectText([&](kgrpo_text_sink sink) { return api()->render_chat(raw(), c.data(), c.size(), &chat, sink); });
}

std::vector<int32_t> Policy::Encode(std::string_view text) {
  return CollectTokens([&](kgrpo_token_sink sink) { return api()->encode(raw(), Str(text), sink); });
}

std::string Policy::Decode(std::span<const int32_t> ids, bool skip_special) {
  return CollectText(
      [&](kgrpo_text_sink sink) { return api()->decode(raw(), ids.data(), ids.size(), skip_special, sink); });
}

void Policy::Generate(std::span<const kgrpo_generate_request> requests, const kgrpo_sampling& sampling,
                      const std::function<void(Completion)>& done) {
  std::vector<bool> seen(requests.size(), false);
  size_t finished = 0;
  Receiver receiver{Carrier(), [&](const kgrpo_completion& c) {
                      Completion completion = Completion::FromC(c);
                      if (completion.request >= requests.size() || seen[completion.request]) {
                        throw Error(KGRPO_ERROR_INTERNAL,
                                    "the policy delivered request " + std::to_string(completion.request) +
                                        (completion.request < requests.size() ? " twice" : ", which was not asked"));
                      }
                      seen[completion.request] = true;
                      ++finished;
                      done(std::move(completion));
                    }};
  using R = decltype(receiver);
  const kgrpo_completion_sink sink = {&receiver, [](void* context, const kgrpo_completion* completion) {
                                        auto* self = static_cast<R*>(context);
                                        self->carrier.Run([&] { self->receive(*completion); });
                                      }};
  receiver.carrier.Finish(api()->generate(raw(), requests.data(), requests.size(), &sampling, sink));
  if (finished != requests.size()) {
    throw Error(KGRPO_ERROR_INTERNAL, "the policy delivered " + std::to_string(finished) + " completions of " +
                                          std::to_string(requests.size()));
  }
}

std::vector<Completion> Policy::Generate(std::span<const kgrpo_generate_request> requests,
                                         const kgrpo_sampling& sampling) {
  std::vector<Completion> completions(requests.size());
  Generate(requests, sampling, [&](Completion completion) {
    const size_t request = completion.request;
    completions[request] = std::move(completion);
  });
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
  Check(api()->forward(raw(), &request, logprobs.data(), entropies != nullptr ? entropies->data() : nullptr, nullptr));
  return logprobs;
}

std::span<const kgrpo_parameter> Policy::Parameters() {
  size_t count = 0;
  const kgrpo_parameter* parameters = api()->parameters(raw(), &count);
  return {parameters, count};
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
