#include "optimize/confirm.h"

#include "base/keyed.h"
#include "loop/round_faults.h"

#include <kgrpo/sdk/error.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

namespace kgrpo {
namespace {

constexpr size_t kConfirmations = 16;  // thorough evaluations at most

}  // namespace

ConfirmedKernel Confirm(const PipelineConfig& config, PipelineParts& parts, const OpenProblem& problem,
                        const std::string& start, const std::vector<SearchCandidate>& candidates) {
  ConfirmedKernel confirmed;
  confirmed.seed = Keyed(config.seed, "thorough inputs/" + problem.name, {}, 0);
  confirmed.source = start;
  const auto evaluate = [&](const std::string& source) {
    Evaluation evaluation = EvaluateWithRetries(*parts.evaluator, problem.problem, source, confirmed.seed,
                                                /*thorough=*/true, parts.cancelled);
    evaluation.CompareWith(problem.baseline);
    return evaluation;
  };
  confirmed.start = evaluate(start);
  if (!confirmed.start.correct)
    throw Error(KGRPO_ERROR_INVALID, "the kernel to begin with is not correct when it is judged thoroughly (" +
                                         confirmed.start.verdict + "): " + confirmed.start.diagnosis);
  confirmed.evaluation = confirmed.start;
  std::vector<const SearchCandidate*> order;
  for (const SearchCandidate& candidate : candidates) {
    if (candidate.round.speedup > 0 && !candidate.repeated) order.push_back(&candidate);
  }
  std::ranges::stable_sort(order, std::ranges::greater(),
                           [](const SearchCandidate* candidate) { return candidate->round.speedup; });
  if (order.size() > kConfirmations) order.resize(kConfirmations);
  for (const SearchCandidate* candidate : order) {
    Evaluation evaluation;
    try {
      evaluation = evaluate(candidate->round.answer.source);
    } catch (const Error& error) {  // a kernel that cannot be judged is not delivered
      if (!IsLasting(error.code())) throw;
      spdlog::warn("a candidate cannot be confirmed: {}", error.what());
    }
    if (evaluation.correct && evaluation.seconds < confirmed.start.seconds) {
      confirmed.source = candidate->round.answer.source;
      confirmed.evaluation = std::move(evaluation);
      confirmed.suggestions = candidate->suggestions;
      break;
    }
    ++confirmed.refuted;
  }
  return confirmed;
}

}  // namespace kgrpo
