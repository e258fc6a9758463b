#include "evaluator_sim/evaluator.h"

#include "digest/sha256.h"
#include "evaluator_shared/random.h"

namespace kgrpo::evaluator_sim {

Evaluator::Evaluator(const Options& options, Report report)
    : options_(options),
      judge_(options.judge),
      memory_(options.cache ? options.cache_directory + "/judgements.sqlite" : "", std::move(report)) {}

std::unique_ptr<OpenProblem> Evaluator::Open(const std::string& directory) const {
  return std::make_unique<OpenProblem>(directory, options_.cache_directory);
}

Judgement Evaluator::Baseline(const OpenProblem& open) {
  Judgement judgement = EvaluateCached(open, open.problem().reference_source);
  evaluator::RequireRightReference(judgement, open.problem());
  return judgement;
}

Judgement Evaluator::Evaluate(const OpenProblem& open, const std::string& source, uint64_t seed, bool thorough) {
  if (!thorough) return EvaluateCached(open, source);
  const std::string digest =
      Sha256OfParts({std::to_string(options_.seed), std::to_string(seed), open.problem().digest, source});
  return judge_.Evaluate(open, source, evaluator::KeyFromText(digest), true);
}

Judgement Evaluator::EvaluateCached(const OpenProblem& open, const std::string& source) {
  const std::string key =
      Sha256OfParts({judge_.Version(), std::to_string(options_.seed), open.problem().digest, source});
  return memory_.Get(key, [&] {
    // The inputs are a function of seed, problem and source alone: a new version of the judge tries the same ones.
    const std::string inputs = Sha256OfParts({std::to_string(options_.seed), open.problem().digest, source});
    return judge_.Evaluate(open, source, evaluator::KeyFromText(inputs), false);
  });
}

}  // namespace kgrpo::evaluator_sim
