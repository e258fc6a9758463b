// What all instances share, and Problem, Evaluator, Reward and Observer; the others have files of their own beside this
// one.
#include "plugin/instances.h"

#include <kgrpo/sdk/error.h>
#include <kgrpo/sdk/text.h>

#include <cmath>
#include <limits>
#include <string>

#include "plugin/sinks.h"

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

template <>
struct Released<kgrpo_observer_interface> {
  static constexpr size_t kSize = KGRPO_OBSERVER_INTERFACE_SIZE_1;
  static constexpr const char* kId = KGRPO_OBSERVER_INTERFACE;
};

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
template class Instance<kgrpo_observer_interface, kgrpo_observer>;

// ---- evaluator ----------------------------------------------------------------------------------

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

Evaluation Evaluator::Evaluate(const Problem& problem, std::string_view source, uint64_t seed, bool thorough,
                               bool show_hidden) {
  kgrpo_evaluate_request request{};
  request.struct_size = sizeof(request);
  request.source = Str(source);
  request.seed = seed;
  request.thorough = thorough;
  request.show_hidden = show_hidden;
  return CollectEvaluation(
      [&](kgrpo_evaluation_sink sink) { return api()->evaluate(raw(), problem.raw(), &request, sink); });
}

std::string Evaluator::Describe() const {
  return Copy(api()->describe(raw()));
}

std::optional<std::string> Evaluator::Report(const Problem& problem, std::string_view source,
                                             std::string_view source_name, const Evaluation& candidate,
                                             const Evaluation& baseline) const {
  if (api()->report == nullptr) return std::nullopt;
  const EvaluationView candidate_view = candidate.ToC(), baseline_view = baseline.ToC();
  kgrpo_report_request request{};
  request.struct_size = sizeof(request);
  request.source = Str(source);
  request.source_name = Str(source_name);
  request.candidate = candidate_view.c();
  request.baseline = baseline_view.c();
  return CollectText([&](kgrpo_text_sink sink) { return api()->report(raw(), problem.raw(), &request, sink); });
}

// ---- reward -------------------------------------------------------------------------------------

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

// ---- observer -----------------------------------------------------------------------------------

void Observer::Begin(const kgrpo_run_info& run) {
  if (api()->begin != nullptr) Check(api()->begin(raw(), &run));
}
void Observer::Round(const kgrpo_round_event& event) {
  if (api()->round != nullptr) Check(api()->round(raw(), &event));
}
void Observer::Step(const kgrpo_step_event& event) {
  if (api()->step != nullptr) Check(api()->step(raw(), &event));
}
void Observer::Checkpoint(const kgrpo_checkpoint_event& event) {
  if (api()->checkpoint != nullptr) Check(api()->checkpoint(raw(), &event));
}
void Observer::End(std::string_view outcome) {
  if (api()->end != nullptr) Check(api()->end(raw(), Str(outcome)));
}

}  // namespace kgrpo
