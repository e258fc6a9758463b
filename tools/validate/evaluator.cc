// An evaluator describes its settings and reports mistakes in a folder. Judging needs a problem in the evaluator's own
// format, which the author names: then the reference is judged, twice and from two threads.
#include <kgrpo/sdk/text.h>

#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include <kgrpo/support/evaluation.h>
#include "plugin/sinks.h"
#include "validate/calls.h"

namespace kgrpo::validate {
namespace {

std::string OpenAbsent(const kgrpo_evaluator_interface& api, kgrpo_evaluator* evaluator, const std::string& folder) {
  kgrpo_problem* problem = nullptr;
  kgrpo_error* error = api.open_problem(evaluator, Str(folder), &problem);
  if (error == nullptr) {
    if (problem != nullptr) api.close_problem(evaluator, problem);
    Fail("it opened a problem in a folder that does not exist");
  }
  const std::string message = TakeMessage(error);
  if (problem != nullptr) Fail("it returned an error and yet set the problem");
  return message;
}

// The part of an evaluation that is kept.
struct Seen {
  bool correct = false;
  std::string verdict;
  double seconds = 0;
};

void RequireSense(const kgrpo_evaluation& one) {
  const std::string verdict = Copy(one.verdict);
  if (verdict.empty()) Fail("an evaluation without a verdict");
  if ((one.correct != 0) != (verdict == KGRPO_VERDICT_CORRECT))
    Fail("correct is " + std::to_string(one.correct) + " and the verdict \"" + verdict + "\"");
  if (one.correct != 0 && one.compiled == 0) Fail("a kernel that is correct did not compile");
  if (one.correct == 0) return;
  if (!std::isfinite(one.seconds) || one.seconds <= 0) Fail("a correct kernel takes " + Shown(one.seconds) + " s");
  if (!(one.seconds_low <= one.seconds && one.seconds <= one.seconds_high))
    Fail("the time " + Shown(one.seconds) + " s is not within its interval, " + Shown(one.seconds_low) + " to " +
         Shown(one.seconds_high));
}

// Runs a call that pushes one evaluation. Throws the call's error, and an error if it pushed none or several.
Seen Judged(const std::function<kgrpo_error*(kgrpo_evaluation_sink)>& call) {
  size_t pushed = 0;
  Seen seen;
  Receiver receiver{Carrier(), [&](const kgrpo_evaluation* one) {
                      ++pushed;
                      RequireSense(*one);
                      seen = {one->correct != 0, Copy(one->verdict), one->seconds};
                    }};
  kgrpo_error* const error = call(SinkOf(&kgrpo_evaluation_sink::put, receiver));
  if (error != nullptr) Fail(TakeMessage(error) + (pushed > 0 ? " (an error beside an evaluation)" : ""));
  receiver.carrier.Finish(nullptr);
  if (pushed != 1) Fail("it pushed " + std::to_string(pushed) + " evaluations: it is to push one");
  return seen;
}

// The evaluator's tools; all are NULL if it offers none.
const kgrpo_evaluator_tools& ToolsOf(const kgrpo_evaluator_interface& api, const kgrpo_evaluator* evaluator) {
  static constexpr kgrpo_evaluator_tools kNone = {};
  if (api.get_extension == nullptr) return kNone;
  if (api.get_extension(evaluator, KGRPO_LITERAL("no interface")) != nullptr)
    Fail("get_extension returns a table for every id: NULL is for those that it does not offer");
  const auto* tools = static_cast<const kgrpo_evaluator_tools*>(
      api.get_extension(evaluator, KGRPO_LITERAL(KGRPO_EVALUATOR_TOOLS_INTERFACE)));
  if (tools != nullptr && tools->struct_size < KGRPO_EVALUATOR_TOOLS_SIZE_1)
    Fail("kgrpo_evaluator_tools has struct_size " + std::to_string(tools->struct_size));
  return tools == nullptr ? kNone : *tools;
}

// An open problem; the destructor closes it.
class Opened {
 public:
  Opened(const kgrpo_evaluator_interface& api, kgrpo_evaluator* evaluator, const std::string& folder)
      : api_(api), tools_(ToolsOf(api, evaluator)), evaluator_(evaluator) {
    if (kgrpo_error* error = api.open_problem(evaluator, Str(folder), &problem_)) Fail(TakeMessage(error));
    if (problem_ == nullptr) Fail("it returned no error and set no problem");
  }
  ~Opened() { api_.close_problem(evaluator_, problem_); }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;

  const kgrpo_problem_info& Info() const {
    const kgrpo_problem_info* const info = api_.problem_info(problem_);
    if (info == nullptr) Fail("problem_info is NULL");
    if (info->struct_size < KGRPO_PROBLEM_INFO_SIZE_1)
      Fail("problem_info has struct_size " + std::to_string(info->struct_size));
    if (info->name.size == 0 || info->source.size == 0) Fail("it names neither problem nor reference");
    return *info;
  }
  Seen Evaluate(kgrpo_str source, bool reference = false) const {
    kgrpo_evaluate_request request{};
    request.struct_size = sizeof(request);
    request.source = source;
    request.seed = 1;
    request.reference = reference ? 1 : 0;
    return Judged([&](kgrpo_evaluation_sink sink) { return api_.evaluate(evaluator_, problem_, &request, sink); });
  }
  size_t Findings() const {
    size_t count = 0;
    Receiver receiver{Carrier(), [&](const kgrpo_problem_finding* one) {
                        if (one->struct_size < KGRPO_PROBLEM_FINDING_SIZE_1)
                          Fail("a finding's struct_size is " + std::to_string(one->struct_size));
                        if (one->code.size == 0 || one->sentence.size == 0) Fail("a finding without code or sentence");
                        ++count;
                      }};
    if (kgrpo_error* error =
            tools_.check_problem(evaluator_, problem_, SinkOf(&kgrpo_problem_finding_sink::put, receiver)))
      Fail(TakeMessage(error));
    receiver.carrier.Finish(nullptr);
    return count;
  }
  // Evaluates the reference and compares its counted work with the stated one.
  std::string Bound() const {
    std::optional<Evaluation> candidate;
    kgrpo_evaluate_request request{};
    request.struct_size = sizeof(request);
    request.source = Info().source;
    Receiver evaluation{Carrier(), [&](const kgrpo_evaluation* one) { candidate = Evaluation::FromC(*one); }};
    if (kgrpo_error* error =
            api_.evaluate(evaluator_, problem_, &request, SinkOf(&kgrpo_evaluation_sink::put, evaluation)))
      Fail(TakeMessage(error));
    evaluation.carrier.Finish(nullptr);
    if (!candidate) Fail("evaluate pushed no evaluation");
    std::string text, json;
    Receiver text_receiver{Carrier(), [&](kgrpo_str one) { text += View(one); }};
    Receiver json_receiver{Carrier(), [&](kgrpo_str one) { json += View(one); }};
    if (kgrpo_error* error = tools_.explain_bound(evaluator_, problem_, candidate->ToC().c(),
                                                  SinkOf(&kgrpo_text_sink::put, text_receiver),
                                                  SinkOf(&kgrpo_text_sink::put, json_receiver)))
      Fail(TakeMessage(error));
    text_receiver.carrier.Finish(nullptr);
    json_receiver.carrier.Finish(nullptr);
    if (text.empty() && json.empty()) return "nothing: it was not counted";
    if (text.empty() || text.back() != '\n') Fail("the text is not lines, each ended");
    if (!nlohmann::json::parse(json, nullptr, false).is_object()) Fail("what it pushes into json is no JSON object");
    return text.substr(0, text.find('\n'));
  }

 private:
  const kgrpo_evaluator_interface& api_;
  const kgrpo_evaluator_tools& tools_;
  kgrpo_evaluator* evaluator_;
  kgrpo_problem* problem_ = nullptr;
};

void CheckJudging(Session& session, const kgrpo_evaluator_interface& api, kgrpo_evaluator* evaluator,
                  const std::string& folder) {
  session.Check("evaluator: the problem opens", [&] {
    if (folder.empty()) Skip("name a problem's folder with --problem DIR");
    return Copy(Opened(api, evaluator, folder).Info().name);
  });
  if (folder.empty()) return;
  session.Check("evaluator: evaluate measures the reference, twice with the same result", [&] {
    const Opened problem(api, evaluator, folder);
    const kgrpo_str source = problem.Info().source;
    const Seen first = problem.Evaluate(source, true), second = problem.Evaluate(source, true);
    if (!first.correct || !second.correct) Fail("the reference is " + (first.correct ? second : first).verdict);
    return Shown(first.seconds) + " s";
  });
  session.Check("evaluator: evaluate finds the reference correct, from two threads too", [&] {
    const Opened problem(api, evaluator, folder);
    const kgrpo_str source = problem.Info().source;
    OnTwoThreads([&] {
      if (const Seen seen = problem.Evaluate(source); !seen.correct) Fail("the reference is " + seen.verdict);
    });
    return std::string();
  });
  session.Check("evaluator: evaluate rejects a kernel that does not compile", [&] {
    const Seen seen = Opened(api, evaluator, folder).Evaluate(KGRPO_LITERAL("#error this is no kernel\n"));
    if (seen.correct) Fail("a file of one #error is correct");
    return seen.verdict;
  });
  const kgrpo_evaluator_tools* tools = nullptr;
  session.Check("evaluator: get_extension offers what it has", [&] {
    tools = &ToolsOf(api, evaluator);
    return tools->struct_size == 0 ? std::string("no tools") : std::string(KGRPO_EVALUATOR_TOOLS_INTERFACE);
  });
  if (tools == nullptr) return;
  if (tools->check_problem != nullptr) {
    session.Check("evaluator: check_problem says what it found",
                  [&] { return std::to_string(Opened(api, evaluator, folder).Findings()) + " findings"; });
  }
  if (tools->explain_bound != nullptr) {
    session.Check("evaluator: explain_bound compares the reference with the problem's needs",
                  [&] { return Opened(api, evaluator, folder).Bound(); });
  }
}

}  // namespace

void CheckEvaluator(Session& session, const kgrpo_evaluator_interface& api, kgrpo_evaluator* evaluator,
                    const CallContext& context) {
  session.Check("evaluator: describe is the same each time", [&] {
    const std::string first = Copy(api.describe(evaluator));
    if (first.empty()) Fail("describe returned an empty text");
    OnTwoThreads([&] {
      if (View(api.describe(evaluator)) != first) Fail("another call gave another text");
    });
    return first.substr(0, first.find('\n'));
  });
  session.Check("evaluator: open_problem refuses a folder that is absent", [&] {
    const std::string folder = (context.directory / "absent").string();
    const std::string first = OpenAbsent(api, evaluator, folder);
    OnTwoThreads([&] { OpenAbsent(api, evaluator, folder); });
    return "refused: " + first;
  });
  session.Check("evaluator: close_problem takes NULL", [&] {
    api.close_problem(evaluator, nullptr);
    return std::string();
  });
  CheckJudging(session, api, evaluator, context.options.problem);
}

}  // namespace kgrpo::validate
