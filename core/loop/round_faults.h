// Counts the rounds in which the coder, the evaluator or the reward failed, and finds out whether a completed run has
// learned anything. If every answer of one part fails, step after step, a run would go through to its end and learn
// nothing. Used by loop/stage.cc, by loop/rounds_in_flight.cc in an evaluation or a search, and at the end of a run.
#ifndef KGRPO_LOOP_ROUND_FAULTS_H
#define KGRPO_LOOP_ROUND_FAULTS_H

#include "store/database.h"
#include "store/records.h"

#include <kgrpo/sdk/error.h>

#include <array>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kgrpo {

// An evaluation or a search ends where the first kMostFaults answers of a part in a rollout or wave all failed. After
// one useful answer the limit no longer applies.
inline constexpr size_t kMostFaults = 32;

// True for an error that the same request would get again: of a kernel, a problem or a plugin's options.
bool IsLasting(kgrpo_error_code code);

// True if an evaluator's or a reward's error leaves one round without a score. An evaluator's always does: a kernel may
// have caused it. A reward's does unless no retry can fix it, or a limit is reached.
bool FailsOneRound(RoundPart part, kgrpo_error_code code);

// Call where `part`, an evaluator or a reward, threw `error`. Throws it if it ends the run, and KGRPO_ERROR_CANCELLED
// if the user asked to stop, since the call may have failed for that.
void RequireFailsOneRound(RoundPart part, const Error& error, bool cancelled);

// Evaluates where no round would take the failure: an evaluation whose error is not lasting is repeated, after 0.5, 1
// and 2 seconds. Throws the last error. [any thread, blocking]
Evaluation EvaluateWithRetries(Evaluator& evaluator, const Problem& problem, const std::string& source, uint64_t seed,
                               bool thorough, const std::function<bool()>& cancelled);

// Why a round has no score.
struct RoundFault {
  RoundPart part = RoundPart::kCoder;
  std::string kind;  // the coder's outcome, or that the reward gave no score (kNoScoreKind); empty for the others
  std::string message;
};
inline constexpr const char* kNoScoreKind = "no score";
RoundFault FaultOf(const RoundFailure& failure);
// Returns the fault of the coder, the evaluator or the reward in that round; nothing where none failed.
std::optional<RoundFault> FaultOf(const RoundRecord& round);

// Answers that the loop asked of a part, and those among them that failed.
struct PartCounts {
  size_t asked = 0, failed = 0;
};
std::array<PartCounts, kRoundParts.size()> CountParts(const std::vector<TrajectoryRecord>& trajectories);

// The faults of one part.
class PartFaults {
 public:
  explicit PartFaults(RoundPart part) : part_(part) {}

  RoundPart part() const { return part_; }
  size_t count() const { return count_; }
  void Count(const std::string& kind, const std::string& message, size_t times = 1);
  // "failed", "gave no score" or "failed or gave no score".
  std::string Verb() const;
  // "the commonest, 8 times, is truncated: the answer was cut off"; empty where none was counted.
  std::string Commonest() const;
  // "the coder's `which` 8 answers all failed; the commonest, ...".
  std::string AllFailed(const std::string& which) const;
  // Throws KGRPO_ERROR_UNAVAILABLE with that text and advice.
  [[noreturn]] void Throw(const std::string& which) const;

 private:
  RoundPart part_;
  size_t count_ = 0;
  std::map<std::string, std::map<std::string, size_t>> faults_;  // by kind and message
};

// Returns one for each part, by RoundPart.
std::array<PartFaults, kRoundParts.size()> NoFaults();

class RoundFaults {
 public:
  // Takes the rounds of a whole step. Returns a message for the user, who had none for the step before: all answers of
  // a part failed, or some of the evaluator or the reward, or none of the coder's was a new kernel; else "". Throws
  // KGRPO_ERROR_UNAVAILABLE, with the commonest fault and its commonest message, at the `enough`-th step in a row in
  // which all answers of a part failed.
  std::string Add(const std::vector<TrajectoryRecord>& trajectories, size_t enough);

 private:
  struct Series {
    size_t steps = 0;      // in a row, in which all answers failed
    bool failing = false;  // in the last step some failed
  };

  std::array<PartFaults, kRoundParts.size()> faults_ = NoFaults();
  std::array<Series, kRoundParts.size()> series_;
  bool without_kernel_ = false;  // the last step had no new kernel
};

// Returns the faults of each part in the run.
std::array<PartFaults, kRoundParts.size()> FaultsOf(RunDatabase& database);
// "of the coder's failures the commonest, 8 times, ...", of the part that failed most often; empty without faults.
std::string CommonestFault(RunDatabase& database);

// Returns "nothing was learned: ..." for a run with a stage whose updates all had nothing to learn from: no sample, or
// only advantages of 0. Names the stage if there are several. Otherwise returns "". Demonstrations and a trainer's own
// data count as something to learn from.
std::string NothingLearned(RunDatabase& database);

}  // namespace kgrpo
#endif
