// The shared part of all instances, and Problem, Evaluator, Reward and Observer; the others have files of their own
// beside this one.
#include "plugin/instances.h"

#include <kgrpo/sdk/error.h>
#include <kgrpo/sdk/text.h>

#include <cmath>
#include <limits>
#include <string>

#include "base/role.h"
#include "plugin/sinks.h"

namespace kgrpo {
namespace {

template <typename Interface>
constexpr Role kRoleOf = Role::kPolicy;
template <>
constexpr Role kRoleOf<kgrpo_coder_interface> = Role::kCoder;
template <>
constexpr Role kRoleOf<kgrpo_evaluator_interface> = Role::kEvaluator;
template <>
constexpr Role kRoleOf<kgrpo_reward_interface> = Role::kReward;
template <>
constexpr Role kRoleOf<kgrpo_trainer_interface> = Role::kTrainer;
template <>
constexpr Role kRoleOf<kgrpo_observer_interface> = Role::kObserver;

// `whose` begins the message about an evaluation that breaks the contract: "evaluator_x: problem vector_add".
template <typename Call>
Evaluation CollectEvaluation(const std::string& whose, Call call) {
  std::optional<Evaluation> collected;
  Receiver receiver{Carrier(), [&](const kgrpo_evaluation* c) {
                      if (collected) throw Error(KGRPO_ERROR_INTERNAL, whose + ": two evaluations of one kernel");
                      try {
                        collected = Evaluation::FromC(*c);
                      } catch (const Error& error) {
                        throw Error(error.code(), whose + ": " + error.what());
                      }
                    }};
  receiver.carrier.Finish(call(SinkOf(&kgrpo_evaluation_sink::put, receiver)));
  if (!collected) throw Error(KGRPO_ERROR_INTERNAL, whose + ": success without an evaluation");
  return *std::move(collected);
}

}  // namespace

template <typename Interface, typename Object>
Instance<Interface, Object>::Instance(const Interface* api, const kgrpo_host* host, const nlohmann::json& options)
    : api_(api), plugin_(PluginOfTable(api, RoleName(kRoleOf<Interface>))) {
  constexpr Role kRole = kRoleOf<Interface>;
  if (api->struct_size < RoleInterfaceSize(kRole)) {
    throw Error(KGRPO_ERROR_UNSUPPORTED,
                std::string("the table of ") + RoleInterface(kRole) + " has struct_size " +
                    std::to_string(api->struct_size) + ", below " + std::to_string(RoleInterfaceSize(kRole)) +
                    ", that of its first release: rebuild the plugin with the headers of this host");
  }
  const std::string text = options.dump();
  const PluginCall call = Calling("create");
  Check(api_->create(host, Str(text), &raw_));
  if (raw_ == nullptr) {
    throw Error(KGRPO_ERROR_INTERNAL,
                std::string("create of ") + RoleInterface(kRole) + " reported success but made no instance");
  }
}

template <typename Interface, typename Object>
Instance<Interface, Object>::~Instance() {
  if (raw_ == nullptr) return;
  const PluginCall call = Calling("destroy");
  api_->destroy(raw_);
}

template class Instance<kgrpo_policy_interface, kgrpo_policy>;
template class Instance<kgrpo_coder_interface, kgrpo_coder>;
template class Instance<kgrpo_evaluator_interface, kgrpo_evaluator>;
template class Instance<kgrpo_reward_interface, kgrpo_reward>;
template class Instance<kgrpo_trainer_interface, kgrpo_trainer>;
template class Instance<kgrpo_observer_interface, kgrpo_observer>;

// ---- evaluator ----------------------------------------------------------------------------------

Problem::Problem(const kgrpo_evaluator_interface* api, kgrpo_evaluator* evaluator, const PluginName* plugin,
                 const std::string& directory)
    : api_(api), evaluator_(evaluator), plugin_(plugin), directory_(directory) {
  const PluginCall call(plugin_, "open_problem");
  Check(api_->open_problem(evaluator_, Str(directory), &raw_));
  if (raw_ == nullptr) throw Error(KGRPO_ERROR_INTERNAL, "the evaluator opened no problem in " + directory);
  info_ = api_->problem_info(raw_);
  if (info_ == nullptr || info_->struct_size < KGRPO_PROBLEM_INFO_SIZE_1) {
    api_->close_problem(evaluator_, raw_);
    throw Error(KGRPO_ERROR_INTERNAL, "the evaluator has no information on the problem in " + directory);
  }
}

Problem::~Problem() {
  if (raw_ == nullptr) return;
  const PluginCall call(plugin_, "close_problem");
  api_->close_problem(evaluator_, raw_);
}

std::string Problem::name() const { return Copy(info_->name); }

Evaluation Evaluator::Evaluate(const Problem& problem, const kgrpo_evaluate_request& request, const char* what) {
  const PluginCall call = Calling("evaluate");
  return CollectEvaluation(plugin_name() + ": problem " + problem.name() + what, [&](kgrpo_evaluation_sink sink) {
    return api()->evaluate(raw(), problem.raw(), &request, sink);
  });
}

Evaluation Evaluator::Evaluate(const Problem& problem, std::string_view source, uint64_t seed, bool thorough,
                               bool show_hidden) {
  return Evaluate(problem,
                  {.struct_size = sizeof(kgrpo_evaluate_request),
                   .source = Str(source),
                   .seed = seed,
                   .thorough = thorough,
                   .show_hidden = show_hidden,
                   .reference = 0},
                  "");
}

Evaluation Evaluator::Baseline(const Problem& problem, uint64_t seed, bool thorough, bool show_hidden) {
  Evaluation baseline = Evaluate(problem,
                                 {.struct_size = sizeof(kgrpo_evaluate_request),
                                  .source = problem.info().source,
                                  .seed = seed,
                                  .thorough = thorough,
                                  .show_hidden = show_hidden,
                                  .reference = 1},
                                 ", the reference kernel");
  if (!baseline.correct) {
    throw Error(KGRPO_ERROR_INVALID, "the reference kernel of problem " + problem.name() + " (" + problem.directory() +
                                         ") is not correct (" + baseline.verdict + "): " + baseline.diagnosis);
  }
  baseline.CompareWith(baseline);
  return baseline;
}

std::string Evaluator::Describe() const {
  const PluginCall call = Calling("describe");
  return Copy(api()->describe(raw()));
}

const kgrpo_evaluator_tools& Evaluator::Tools() const {
  static constexpr kgrpo_evaluator_tools kNone = {};
  const PluginCall call = Calling("get_extension");
  const void* tools = api()->get_extension == nullptr
                          ? nullptr
                          : api()->get_extension(raw(), KGRPO_LITERAL(KGRPO_EVALUATOR_TOOLS_INTERFACE));
  if (tools == nullptr) return kNone;
  const auto& table = *static_cast<const kgrpo_evaluator_tools*>(tools);
  RequireSize(table.struct_size, KGRPO_EVALUATOR_TOOLS_SIZE_1, "kgrpo_evaluator_tools");
  return table;
}

std::optional<std::string> Evaluator::Report(const Problem& problem, std::string_view source,
                                             std::string_view source_name, const Evaluation& candidate,
                                             const Evaluation& baseline) const {
  const kgrpo_evaluator_tools& tools = Tools();
  if (tools.report == nullptr) return std::nullopt;
  const EvaluationView candidate_view = candidate.ToC(), baseline_view = baseline.ToC();
  kgrpo_report_request request{};
  request.struct_size = sizeof(request);
  request.source = Str(source);
  request.source_name = Str(source_name);
  request.candidate = candidate_view.c();
  request.baseline = baseline_view.c();
  const PluginCall call = Calling("report");
  return CollectText([&](kgrpo_text_sink sink) { return tools.report(raw(), problem.raw(), &request, sink); });
}

std::optional<Evaluator::BoundComparison> Evaluator::ExplainBound(const Problem& problem,
                                                                  const Evaluation& candidate) const {
  const kgrpo_evaluator_tools& tools = Tools();
  if (tools.explain_bound == nullptr) return std::nullopt;
  BoundComparison comparison;
  const EvaluationView view = candidate.ToC();
  const PluginCall call = Calling("explain_bound");
  comparison.json = CollectText([&](kgrpo_text_sink json) {
    Receiver receiver{Carrier(), [&](kgrpo_str text) { comparison.text += View(text); }};
    kgrpo_error* error =
        tools.explain_bound(raw(), problem.raw(), view.c(), SinkOf(&kgrpo_text_sink::put, receiver), json);
    receiver.carrier.Finish(error);
    return static_cast<kgrpo_error*>(nullptr);
  });
  if (comparison.json.empty() && comparison.text.empty()) return std::nullopt;
  if (comparison.text.empty() || !nlohmann::json::parse(comparison.json, nullptr, false).is_object())
    throw Error(KGRPO_ERROR_INTERNAL, plugin_name() + ": explain_bound must push a text and a JSON object, or neither");
  return comparison;
}

std::optional<std::vector<ProblemFinding>> Evaluator::CheckProblem(const Problem& problem) {
  const kgrpo_evaluator_tools& tools = Tools();
  if (tools.check_problem == nullptr) return std::nullopt;
  std::vector<ProblemFinding> findings;
  Receiver receiver{Carrier(), [&](const kgrpo_problem_finding* finding) {
                      RequireSize(finding->struct_size, KGRPO_PROBLEM_FINDING_SIZE_1, "kgrpo_problem_finding");
                      findings.push_back({Copy(finding->code), Copy(finding->sentence), Copy(finding->advice)});
                    }};
  const PluginCall call = Calling("check_problem");
  receiver.carrier.Finish(
      tools.check_problem(raw(), problem.raw(), SinkOf(&kgrpo_problem_finding_sink::put, receiver)));
  return findings;
}

// ---- reward -------------------------------------------------------------------------------------

namespace {

// "reward_x: the score is nan: it must be set and finite".
double RequireFinite(double score, const std::string& plugin, const char* what) {
  if (std::isfinite(score)) return score;
  throw Error(KGRPO_ERROR_INTERNAL,
              plugin + ": the " + what + " is " + std::to_string(score) + ": it must be set and finite");
}

}  // namespace

Reward::Scored Reward::Score(const kgrpo_reward_request& request) const {
  Scored scored;
  Receiver receiver{Carrier(), [&](kgrpo_metric part) { scored.parts.push_back(Metric::FromC(part)); }};
  double score = std::numeric_limits<double>::quiet_NaN();  // so that a reward that sets nothing is detected
  const PluginCall call = Calling("score");
  receiver.carrier.Finish(api()->score(raw(), &request, SinkOf(&kgrpo_metric_sink::add, receiver), &score));
  scored.score = RequireFinite(score, plugin_name(), "score");
  return scored;
}

double Reward::Idle(const kgrpo_reward_request& request) const {
  if (api()->idle == nullptr) return 0;
  double score = std::numeric_limits<double>::quiet_NaN();
  const PluginCall call = Calling("idle");
  Check(api()->idle(raw(), &request, &score));
  return RequireFinite(score, plugin_name(), "idle score");
}

// ---- observer -----------------------------------------------------------------------------------

void Observer::Begin(const kgrpo_run_info& run) {
  const PluginCall call = Calling("begin");
  if (api()->begin != nullptr) Check(api()->begin(raw(), &run));
}
void Observer::Round(const kgrpo_round_event& event) {
  const PluginCall call = Calling("round");
  if (api()->round != nullptr) Check(api()->round(raw(), &event));
}
void Observer::Step(const kgrpo_step_event& event) {
  const PluginCall call = Calling("step");
  if (api()->step != nullptr) Check(api()->step(raw(), &event));
}
void Observer::Checkpoint(const kgrpo_checkpoint_event& event) {
  const PluginCall call = Calling("checkpoint");
  if (api()->checkpoint != nullptr) Check(api()->checkpoint(raw(), &event));
}
void Observer::End(std::string_view outcome) {
  const PluginCall call = Calling("end");
  if (api()->end != nullptr) Check(api()->end(raw(), Str(outcome)));
}

}  // namespace kgrpo
