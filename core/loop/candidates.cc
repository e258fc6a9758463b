#include "loop/candidates.h"

#include "loop/screen.h"

#include <algorithm>
#include <utility>

namespace kgrpo {

CandidateLog::CandidateLog(const OpenProblem& problem, const std::string& start, const Evaluation& start_evaluation,
                           const std::function<void(const SearchCandidate&)>& tell, SearchResult* result)
    : problem_(problem),
      tell_(tell),
      result_(result),
      seen_{start, problem.source},
      best_(problem.baseline.seconds / start_evaluation.seconds) {}

void CandidateLog::Add(const TrajectoryRecord& trajectory, const RoundRecord& round, uint64_t wave, uint64_t updates,
                       bool from_list, const std::optional<Evaluation>& screening, const Screen* screen) {
  SearchCandidate candidate;
  candidate.wave = wave;
  candidate.updates = updates;
  candidate.round = round.round;
  candidate.suggestion = round.suggestion;
  candidate.from_list = from_list;
  for (const RoundRecord& past : trajectory.rounds_done) {
    if (past.applied && past.round <= round.round) candidate.suggestions.push_back(past.suggestion);
  }
  if (round.evaluation) {
    candidate.source = round.answer.source;
    candidate.outcome = round.evaluation->verdict;
    candidate.evaluation = round.evaluation;
    candidate.evaluation_seed = round.evaluation_seed;
    candidate.repeated = !seen_.insert(candidate.source).second;
    if (!candidate.repeated) ++result_->evaluations;
    if (round.evaluation->correct) candidate.speedup = problem_.baseline.seconds / round.evaluation->seconds;
  } else if (round.failure) {
    candidate.source = round.answer.source;
    candidate.outcome = kEvaluatorFailed;
    candidate.message = round.failure->message;
  } else if (screening) {
    candidate.source = round.answer.source;
    candidate.outcome = kScreenedOut;
  } else {
    candidate.outcome = CoderOutcomeName(round.answer.outcome);
    candidate.message = round.answer.message;
  }
  if (screening && !round.failure) {
    candidate.screening = screening;
    candidate.screened_speedup = screen->Speedup(*screening);
    CountScreenedOut(&candidate);
  }
  candidate.screened_out = result_->screened_slow + result_->screened_wrong;
  best_ = std::max(best_, candidate.speedup);
  candidate.evaluations = result_->evaluations;
  candidate.best_speedup = best_;
  tell_(candidate);
  result_->candidates.push_back(std::move(candidate));
}

// A kernel that was screened out may be evaluated later, when the beam has changed; it then no longer counts as
// screened out.
void CandidateLog::CountScreenedOut(SearchCandidate* candidate) {
  const auto counter = [this](bool wrong) -> uint64_t& {
    return wrong ? result_->screened_wrong : result_->screened_slow;
  };
  const auto known = screened_out_.find(candidate->source);
  if (candidate->evaluation) {
    if (known == screened_out_.end()) return;
    --counter(known->second);
    screened_out_.erase(known);
    return;
  }
  candidate->repeated = known != screened_out_.end();
  if (candidate->repeated) return;
  const bool wrong = !candidate->screening->correct;
  screened_out_.emplace(candidate->source, wrong);
  ++counter(wrong);
}

}  // namespace kgrpo
