// An evaluator says what is in force and what is wrong with a folder. Judging kernels needs problems of its own kind,
// which only its author has: `kgrpo-host problems check` goes on from here.
#include <kgrpo/sdk/text.h>

#include "plugin/validate_calls.h"

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

}  // namespace

void CheckEvaluator(Session& session, const kgrpo_evaluator_interface& api, kgrpo_evaluator* evaluator,
                    const CallContext& context) {
  session.Check("evaluator: describe is the same each time", [&] {
    const std::string first = Copy(api.describe(evaluator));
    if (first.empty()) Fail("it says nothing");
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
}

}  // namespace kgrpo::validate
