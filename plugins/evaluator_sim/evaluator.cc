#include "evaluator_sim/evaluator.h"

#include <kgrpo/sdk/error.h>

#include <chrono>

#include "digest/sha256.h"
#include "evaluator_shared/random.h"

namespace kgrpo::evaluator_sim {

Evaluator::Evaluator(const Options& options, Report report)
    : options_(options), report_(report ? std::move(report) : [](const char*, double) {}), judge_(options.judge) {
  if (options_.cache)
    cache_ = std::make_unique<evaluator::JudgementCache>(options_.cache_directory + "/judgements.sqlite");
}

std::unique_ptr<OpenProblem> Evaluator::Open(const std::string& directory) const {
  return std::make_unique<OpenProblem>(directory, options_.cache_directory);
}

Judgement Evaluator::Baseline(const OpenProblem& open) {
  Judgement judgement = EvaluateCached(open, open.problem().reference_source);
  if (!judgement.correct) {
    throw Error(KGRPO_ERROR_INVALID, open.problem().directory + "/reference.cu: the reference kernel is not right (" +
                                         judgement.verdict + "): " + judgement.diagnosis);
  }
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
  std::promise<Judgement> promise;
  std::shared_future<Judgement> other;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = in_progress_.find(key);
    if (found != in_progress_.end()) {
      other = found->second;
    } else {
      in_progress_.emplace(key, promise.get_future().share());
    }
  }
  if (other.valid()) {
    report_("cached", 1);
    return other.get();
  }

  const auto finish = [this, &key] {
    const std::lock_guard<std::mutex> lock(mutex_);
    in_progress_.erase(key);
  };
  try {
    Judgement judgement;
    bool known = false;
    if (cache_) {
      if (const std::optional<std::string> kept = cache_->Find(key)) {
        try {
          judgement = Judgement::FromJson(*kept);
          known = true;
        } catch (const std::exception&) {
          known = false;  // of a later version: judged again
        }
      }
    }
    report_("cached", known ? 1 : 0);
    if (!known) {
      // The inputs are a function of seed, problem and source alone: a new version of the judge tries the same ones.
      const std::string inputs = Sha256OfParts({std::to_string(options_.seed), open.problem().digest, source});
      const auto begin = std::chrono::steady_clock::now();
      judgement = judge_.Evaluate(open, source, evaluator::KeyFromText(inputs), false);
      const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      report_("compile_seconds", judgement.compile_seconds);
      report_("judge_seconds", seconds - judgement.compile_seconds);
      // A limit of wall-clock time may be the machine's fault: such a verdict is not kept for later runs.
      if (cache_ && judgement.verdict != "timeout" && !judgement.transient) cache_->Keep(key, judgement.ToJson());
    }
    promise.set_value(judgement);
    finish();
    return judgement;
  } catch (...) {
    promise.set_exception(std::current_exception());
    finish();
    throw;
  }
}

}  // namespace kgrpo::evaluator_sim
