#include "plugin/instances.h"

#include <kgrpo/sdk/error.h>
#include <kgrpo/sdk/text.h>

#include <cmath>
#include <condition_variable>
#include <istream>
#include <limits>
#include <mutex>
#include <ostream>
#include <string>
#include <type_traits>
#include <typeinfo>

namespace kgrpo {
namespace {

template <typename Interface>
struct Released;  // the size of an interface's first release, and its id
template <>
struct Released<kgrpo_policy_interface> {
  static constexpr size_t kSize = KGRPO_POLICY_INTERFACE_SIZE_1;
  static constexpr const char* kId = KGRPO_POLICY_INTERFACE;
};
template <>
struct Released<kgrpo_coder_interface> {
  static constexpr size_t kSize = KGRPO_CODER_INTERFACE_SIZE_1;
  static constexpr const char* kId = KGRPO_CODER_INTERFACE;
};
template <>
struct Released<kgrpo_evaluator_interface> {
  static constexpr size_t kSize = KGRPO_EVALUATOR_INTERFACE_SIZE_1;
  static constexpr const char* kId = KGRPO_EVALUATOR_INTERFACE;
};
template <>
struct Released<kgrpo_reward_interface> {
  static constexpr size_t kSize = KGRPO_REWARD_INTERFACE_SIZE_1;
  static constexpr const char* kId = KGRPO_REWARD_INTERFACE;
};
template <>
struct Released<kgrpo_trainer_interface> {
  static constexpr size_t kSize = KGRPO_TRAINER_INTERFACE_SIZE_1;
  static constexpr const char* kId = KGRPO_TRAINER_INTERFACE;
};

// Carries what a sink's receiver threw past the plugin's frames, through which no exception may pass.
class Carrier {
 public:
  template <typename Body>
  void Run(Body&& body) noexcept {
    if (thrown_ != nullptr) return;
    try {
      body();
    } catch (...) {
      thrown_ = std::current_exception();
    }
  }
  // To be called once the plugin returned; the receiver's failure comes before the plugin's own.
  void Finish(kgrpo_error* error) {
    if (thrown_ == nullptr) return Check(error);
    if (error != nullptr) error->release(error);
    std::rethrow_exception(thrown_);
  }

 private:
  std::exception_ptr thrown_;
};

// A sink that hands what is pushed to `receive`.
template <typename Receive>
struct Receiver {
  Carrier carrier;
  Receive receive;
};
template <typename Receive>
Receiver(Carrier, Receive) -> Receiver<Receive>;

template <typename R>
kgrpo_text_sink TextSink(R& receiver) {
  return {&receiver, [](void* context, kgrpo_str text) {
            auto* self = static_cast<R*>(context);
            self->carrier.Run([&] { self->receive(View(text)); });
          }};
}

template <typename R>
kgrpo_token_sink TokenSink(R& receiver) {
  return {&receiver, [](void* context, const int32_t* ids, size_t count) {
            auto* self = static_cast<R*>(context);
            self->carrier.Run([&] { self->receive(std::span(ids, count)); });
          }};
}

template <typename R>
kgrpo_evaluation_sink EvaluationSink(R& receiver) {
  return {&receiver, [](void* context, const kgrpo_evaluation* evaluation) {
            auto* self = static_cast<R*>(context);
            self->carrier.Run([&] { self->receive(*evaluation); });
          }};
}

// Calls `call(sink)` and returns all the text it pushed.
template <typename Call>
std::string CollectText(Call call) {
  std::string collected;
  Receiver receiver{Carrier(), [&](std::string_view text) { collected += text; }};
  receiver.carrier.Finish(call(TextSink(receiver)));
  return collected;
}

template <typename Call>
std::vector<int32_t> CollectTokens(Call call) {
  std::vector<int32_t> collected;
  Receiver receiver{Carrier(),
                    [&](std::span<const int32_t> ids) { collected.insert(collected.end(), ids.begin(), ids.end()); }};
  receiver.carrier.Finish(call(TokenSink(receiver)));
  return collected;
}

template <typename Call>
Evaluation CollectEvaluation(Call call) {
  std::optional<Evaluation> collected;
  Receiver receiver{Carrier(), [&](const kgrpo_evaluation& c) {
                      if (collected)
                        throw Error(KGRPO_ERROR_INTERNAL, "the evaluator delivered two evaluations of one kernel");
                      collected = Evaluation::FromC(c);
                    }};
  receiver.carrier.Finish(call(EvaluationSink(receiver)));
  if (!collected) throw Error(KGRPO_ERROR_INTERNAL, "the evaluator returned without an evaluation");
  return *std::move(collected);
}

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

std::vector<Metric> CopyMetrics(const kgrpo_metric* metrics, size_t count) {
  std::vector<Metric> copied;
  copied.reserve(count);
  for (size_t i = 0; i < count; ++i) copied.push_back({Copy(metrics[i].name), metrics[i].value});
  return copied;
}

}  // namespace

template <typename Interface, typename Object>
Instance<Interface, Object>::Instance(const Interface* api, const kgrpo_host* host, const nlohmann::json& options)
    : api_(api) {
  if (api->struct_size < Released<Interface>::kSize) {
    throw Error(KGRPO_ERROR_UNSUPPORTED,
                std::string("the table of ") + Released<Interface>::kId + " has struct_size " +
                    std::to_string(api->struct_size) + ", below " + std::to_string(Released<Interface>::kSize) +
                    ", that of its first release: rebuild the plugin with the headers of this host");
  }
  const std::string text = options.dump();
  Check(api_->create(host, Str(text), &raw_));
  if (raw_ == nullptr) {
    throw Error(KGRPO_ERROR_INTERNAL,
                std::string("create of ") + Released<Interface>::kId + " reported success but made no instance");
  }
}

template class Instance<kgrpo_policy_interface, kgrpo_policy>;
template class Instance<kgrpo_coder_interface, kgrpo_coder>;
template class Instance<kgrpo_evaluator_interface, kgrpo_evaluator>;
template class Instance<kgrpo_reward_interface, kgrpo_reward>;
template class Instance<kgrpo_trainer_interface, kgrpo_trainer>;

// ---- policy
// ----------------------------------------------------------------------------------------------------------

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

// ---- coder
// -----------------------------------------------------------------------------------------------------------

struct Coder::InFlight {
  std::mutex mutex;
  std::condition_variable none;
  size_t count = 0;

  void Add() {
    std::lock_guard lock(mutex);
    ++count;
  }
  void Remove() {
    std::lock_guard lock(mutex);
    if (--count == 0) none.notify_all();
  }
};

namespace {

struct PendingAnswer {
  std::shared_ptr<Coder::InFlight> in_flight;
  Coder::Done done;
};

// The callback that plugins call. It owns the PendingAnswer from then on.
void DeliverAnswer(void* context, const kgrpo_coder_answer* answer, kgrpo_error* error) {
  std::unique_ptr<PendingAnswer> pending(static_cast<PendingAnswer*>(context));
  std::optional<CoderAnswer> copied;
  std::exception_ptr failure;
  try {
    Check(error);
    if (answer == nullptr) throw Error(KGRPO_ERROR_INTERNAL, "the coder delivered neither an answer nor an error");
    copied = CoderAnswer::FromC(*answer);
  } catch (...) {
    failure = std::current_exception();
  }
  pending->done(std::move(copied), failure);
  pending->in_flight->Remove();
}

}  // namespace

Coder::Coder(const kgrpo_coder_interface* api, const kgrpo_host* host, const nlohmann::json& options)
    : Instance(api, host, options), in_flight_(std::make_shared<InFlight>()) {}

Coder::~Coder() {
  if (raw() == nullptr) return;  // moved from
  std::unique_lock lock(in_flight_->mutex);
  if (in_flight_->count == 0) return;
  lock.unlock();
  Cancel();
  lock.lock();
  in_flight_->none.wait(lock, [&] { return in_flight_->count == 0; });
}

void Coder::Implement(const kgrpo_coder_request& request, Done done) {
  auto pending = std::make_unique<PendingAnswer>(PendingAnswer{in_flight_, std::move(done)});
  in_flight_->Add();
  kgrpo_error* error = api()->implement(raw(), &request, {pending.get(), DeliverAnswer});
  if (error == nullptr) {
    pending.release();  // NOLINT(bugprone-unused-return-value): DeliverAnswer owns it, and may have freed it already
    return;
  }
  in_flight_->Remove();
  Check(error);
}

void Coder::Cancel() {
  api()->cancel(raw());
}

std::vector<std::string> Coder::Suggestions() const {
  std::vector<std::string> suggestions;
  if (!has_suggestions()) return suggestions;
  Receiver receiver{Carrier(), [&](std::string_view text) { suggestions.emplace_back(text); }};
  receiver.carrier.Finish(api()->suggestions(raw(), TextSink(receiver)));
  return suggestions;
}

// ---- evaluator
// -------------------------------------------------------------------------------------------------------

Problem::Problem(const kgrpo_evaluator_interface* api, kgrpo_evaluator* evaluator, const std::string& directory)
    : api_(api), evaluator_(evaluator) {
  Check(api_->open_problem(evaluator_, Str(directory), &raw_));
  if (raw_ == nullptr) throw Error(KGRPO_ERROR_INTERNAL, "the evaluator opened no problem in " + directory);
  info_ = api_->problem_info(raw_);
  if (info_ == nullptr || info_->struct_size < KGRPO_PROBLEM_INFO_SIZE_1) {
    api_->close_problem(evaluator_, raw_);
    throw Error(KGRPO_ERROR_INTERNAL, "the evaluator has no information on the problem in " + directory);
  }
}

std::string Problem::name() const {
  return Copy(info_->name);
}

Evaluation Evaluator::Baseline(const Problem& problem) {
  return CollectEvaluation([&](kgrpo_evaluation_sink sink) { return api()->baseline(raw(), problem.raw(), sink); });
}

Evaluation Evaluator::Evaluate(const Problem& problem, std::string_view source, uint64_t seed, bool thorough) {
  kgrpo_evaluate_request request{};
  request.struct_size = sizeof(request);
  request.source = Str(source);
  request.seed = seed;
  request.thorough = thorough;
  return CollectEvaluation(
      [&](kgrpo_evaluation_sink sink) { return api()->evaluate(raw(), problem.raw(), &request, sink); });
}

std::string Evaluator::Describe() const {
  return Copy(api()->describe(raw()));
}

// ---- reward
// ----------------------------------------------------------------------------------------------------------

namespace {

double RequireFinite(double score, const char* what) {
  if (std::isfinite(score)) return score;
  throw Error(KGRPO_ERROR_INTERNAL,
              std::string("the reward's ") + what + " is not a finite number: " + std::to_string(score));
}

}  // namespace

Reward::Scored Reward::Score(const kgrpo_reward_request& request) const {
  Scored scored;
  Receiver receiver{Carrier(), [&](kgrpo_metric part) { scored.parts.push_back({Copy(part.name), part.value}); }};
  using R = decltype(receiver);
  const kgrpo_metric_sink sink = {&receiver, [](void* context, kgrpo_metric part) {
                                    auto* self = static_cast<R*>(context);
                                    self->carrier.Run([&] { self->receive(part); });
                                  }};
  double score = std::numeric_limits<double>::quiet_NaN();  // so that a reward that sets nothing is found out
  receiver.carrier.Finish(api()->score(raw(), &request, sink, &score));
  scored.score = RequireFinite(score, "score");
  return scored;
}

double Reward::Idle(const kgrpo_reward_request& request) const {
  if (api()->idle == nullptr) return 0;
  double score = std::numeric_limits<double>::quiet_NaN();
  Check(api()->idle(raw(), &request, &score));
  return RequireFinite(score, "idle score");
}

// ---- trainer
// ---------------------------------------------------------------------------------------------------------

kgrpo_trainer_source Trainer::source() const {
  const uint32_t source = api()->source(raw());
  if (source > KGRPO_TRAINER_DEMONSTRATIONS) {
    throw Error(KGRPO_ERROR_UNSUPPORTED, "the trainer learns from source " + std::to_string(source) +
                                             ", which this host does not know: it needs a newer host");
  }
  return static_cast<kgrpo_trainer_source>(source);
}

bool Trainer::needs_reference() const {
  return api()->needs_reference(raw()) != 0;
}

void Trainer::Begin(Policy& policy, const kgrpo_trainer_plan& plan) {
  Check(api()->begin(raw(), policy.api(), policy.raw(), &plan));
}

Trainer::Update Trainer::Train(std::span<const kgrpo_sample> samples) {
  struct Context {
    Carrier carrier;
    Update update;
  } context;
  const kgrpo_update_sink sink = {
      &context,
      [](void* opaque, kgrpo_metric metric) {
        auto* self = static_cast<Context*>(opaque);
        self->carrier.Run([&] { self->update.metrics.push_back({Copy(metric.name), metric.value}); });
      },
      [](void* opaque, const kgrpo_metric* row, size_t count) {
        auto* self = static_cast<Context*>(opaque);
        self->carrier.Run([&] { self->update.optimizer_steps.push_back(CopyMetrics(row, count)); });
      }};
  context.carrier.Finish(api()->update(raw(), samples.data(), samples.size(), sink));
  return std::move(context.update);
}

void Trainer::SaveState(std::ostream& out) {
  const kgrpo_writer writer = {&out, [](void* context, const void* data, size_t size) {
                                 return Guard([&] {
                                   auto* stream = static_cast<std::ostream*>(context);
                                   stream->write(static_cast<const char*>(data), static_cast<std::streamsize>(size));
                                   if (!*stream)
                                     throw Error(KGRPO_ERROR_UNAVAILABLE, "the trainer's state could not be written");
                                 });
                               }};
  Check(api()->save_state(raw(), writer));
}

void Trainer::LoadState(std::istream& in) {
  const kgrpo_reader reader = {&in, [](void* context, void* data, size_t size, size_t* got) {
                                 return Guard([&] {
                                   auto* stream = static_cast<std::istream*>(context);
                                   stream->read(static_cast<char*>(data), static_cast<std::streamsize>(size));
                                   if (stream->bad())
                                     throw Error(KGRPO_ERROR_UNAVAILABLE, "the trainer's state could not be read");
                                   *got = static_cast<size_t>(stream->gcount());
                                 });
                               }};
  Check(api()->load_state(raw(), reader));
}

}  // namespace kgrpo
