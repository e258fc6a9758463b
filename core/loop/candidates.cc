#include "loop/candidates.h"

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
                       bool from_list) {
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
  } else {
    candidate.outcome = CoderOutcomeName(round.answer.outcome);
    candidate.message = round.answer.message;
  }
  best_ = std::max(best_, candidate.speedup);
  candidate.evaluations = result_->evaluations;
  candidate.best_speedup = best_;
  tell_(candidate);
  result_->candidates.push_back(std::move(candidate));
}

}  // namespace kgrpo
