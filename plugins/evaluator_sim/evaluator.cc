#include "evaluator_sim/evaluator.h"

#include <kgrpo/support/sha256.h>
#include "evaluator_shared/random.h"

namespace kgrpo::evaluator_sim {

Evaluator::Evaluator(const Options& options, Report report)
    : options_(options),
      judge_(options.judge),
      memory_(options.cache ? options.cache_directory + "/judgements.sqlite" : "", std::move(report)) {}

std::unique_ptr<OpenProblem> Evaluator::Open(const std::string& directory) const {
  return std::make_unique<OpenProblem>(directory, options_.cache_directory, options_.cache);
}

Judgement Evaluator::Baseline(const OpenProblem& open) {
  const std::string& source = open.problem().reference_source;
  Judgement judgement = EvaluateCached(open, source);
  // What is said of a reference that is not correct is for the problem's author.
  if (!judgement.correct) judgement = judge_.Evaluate(open, source, KeyOf(open, source), false, true);
  evaluator::RequireCorrectReference(judgement, open.problem());
  return judgement;
}

Judgement Evaluator::Evaluate(const OpenProblem& open, const std::string& source, const Request& request) {
  if (!request.thorough && !request.show_hidden) return EvaluateCached(open, source);
  if (!request.thorough) return judge_.Evaluate(open, source, KeyOf(open, source), false, true);
  const std::string inputs =
      Sha256OfParts({std::to_string(options_.seed), std::to_string(request.seed), open.problem().digest, source});
  const auto judged = [&] {
    return judge_.Evaluate(open, source, evaluator::KeyFromText(inputs), true, request.show_hidden);
  };
  // What every kernel of the problem is held against is kept.
  if (request.show_hidden || source != open.problem().reference_source) return judged();
  return memory_.Get(Sha256OfParts({judge_.Version(), "thorough", inputs}), judged);
}

// The inputs are a function of seed, problem and source alone: a new version of the judge tries the same ones.
uint64_t Evaluator::KeyOf(const OpenProblem& open, const std::string& source) const {
  return evaluator::KeyFromText(Sha256OfParts({std::to_string(options_.seed), open.problem().digest, source}));
}

Judgement Evaluator::EvaluateCached(const OpenProblem& open, const std::string& source) {
  const std::string key =
      Sha256OfParts({judge_.Version(), std::to_string(options_.seed), open.problem().digest, source});
  return memory_.Get(key, [&] { return judge_.Evaluate(open, source, KeyOf(open, source), false); });
}

}  // namespace kgrpo::evaluator_sim
