// Rounds that other runs recorded: what a suggestion for a kernel led to. A stage imitates the best of them
// (loop/stage.cc), and a rollout replays them without coder and evaluator (loop/rounds_in_flight.cc).
#ifndef KGRPO_LOOP_RECORDED_ROUNDS_H
#define KGRPO_LOOP_RECORDED_ROUNDS_H

#include "config/pipeline.h"
#include "loop/problem_set.h"
#include "plugin/instances.h"
#include "plugin/parts.h"
#include "store/records.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace kgrpo {

// Immutable once made: any thread may read it.
class RecordedRounds {
 public:
  // Reads the rounds of runs of any purpose (training, `eval policy`, `optimize`) on those problems, by their names.
  // Leaves out rounds whose coder or evaluator failed, and, by count, those of a problem, evaluator or device that is
  // another than the pipeline's: their times and verdicts say nothing here. The run in config.output_dir is read up to
  // the step `before`, which is excluded. `inputs`: PipelineParts'. Throws KGRPO_ERROR_INVALID if a folder has no
  // readable run, or if only rounds of others are left.
  RecordedRounds(const std::vector<std::string>& runs, const ProblemSet& problems, const PipelineConfig& config,
                 const std::map<std::string, std::string>& inputs, uint64_t before = 0);

  size_t size() const { return rounds_; }
  // "; left out: 40 of another softmax_long, 8 of another device"; "" if no round was.
  std::string LeftOut() const;

  // Returns the earliest recorded round with that suggestion for that kernel, with no cost of the coder; null if there
  // is none. Suggestions are compared by SuggestionText.
  const RoundRecord* Find(const std::string& problem, const std::string& kernel, const std::string& suggestion) const;

  // Returns each recorded state (prompt and kernels) with the suggestion that led from its kernel to the fastest one
  // and its result, if that is a gain of 5%. Token ids are empty, `problem` is this run's index. Throws
  // KGRPO_ERROR_INVALID if there is none.
  std::vector<TrajectoryRecord> ToImitate() const;

 private:
  // A kernel of a problem.
  struct Node {
    double speedup = 1;                    // over the reference; 1 if it is not known
    int exactness = 0;                     // how exact it is: 0 unknown, 1 modelled, 2 measured
    const RoundRecord* fastest = nullptr;  // the round from here with the fastest correct kernel
    std::map<std::string, const RoundRecord*> by_suggestion;
  };

  std::vector<TrajectoryRecord> trajectories_;
  std::map<std::string, Node> nodes_;  // by problem and kernel
  size_t rounds_ = 0;
  std::map<std::string, size_t> others_;  // rounds that are left out, by the reason
};

// Throws KGRPO_ERROR_INVALID if one of the runs cannot be read, or its prompts are made by other templates than this
// pipeline's.
void RequireSamePrompts(const std::vector<std::string>& runs, const PipelineConfig& config);

// The rounds that a stage imitates, encoded for this policy.
struct ImitatedRounds {
  std::vector<TrajectoryRecord> trajectories;
  size_t states = 0;     // rounds in `trajectories`
  size_t recorded = 0;   // rounds that the runs recorded on these problems
  std::string left_out;  // RecordedRounds::LeftOut
};

// Reads the runs of stage `stage`, whose first step is `first_step`. Leaves out prompts without room for a completion,
// and completions that this run's limit would have cut: the context may not hold both. Throws KGRPO_ERROR_INVALID if
// the runs cannot be imitated or nothing is left.
ImitatedRounds ReadImitatedRounds(const PipelineConfig& config, size_t stage, uint64_t first_step,
                                  const ProblemSet& problems, const PipelineParts& parts);

}  // namespace kgrpo
#endif
