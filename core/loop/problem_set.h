// The problems of a run, opened, with their baselines. Used by the loop and by the evaluation of policies.
#ifndef KGRPO_LOOP_PROBLEM_SET_H
#define KGRPO_LOOP_PROBLEM_SET_H

#include "base/worker_pool.h"
#include "config/findings.h"
#include "plugin/instances.h"
#include "prompt/state.h"
#include "store/database.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace kgrpo {

struct OpenProblem {
  Problem problem;
  std::string name, family;
  std::string source;  // the reference kernel
  PromptProblem prompt;
  Evaluation
      baseline;  // evaluation of the reference kernel; it is correct, and its time is the numerator of every speedup
  std::string directory;
};

// Immutable once made: any thread may read it. The evaluators must outlive it.
class ProblemSet {
 public:
  // Opens the folders and evaluates their reference kernels, on the pool. It is a fault if a folder is no problem, if
  // two problems have the same name, or if a reference kernel is not correct; with `skip_unusable` such a problem is
  // left out, and it is a fault if none is left. The set has the problems without a fault. `findings`: receives the
  // faults; null: the first is thrown. `opened_one` is called after each, from any thread, one call at a time.
  ProblemSet(Evaluator& evaluator, const std::vector<std::string>& directories, WorkerPool& pool, bool skip_unusable,
             const std::function<void()>& opened_one = {}, Findings* findings = nullptr);

  size_t size() const { return problems_.size(); }
  const OpenProblem& operator[](size_t index) const { return problems_[index]; }
  const std::vector<std::string>& families() const { return families_; }  // by index
  std::vector<ProblemRecord> Records() const;
  // The reason for each problem that was left out, in the order of the folders. Each reason names its problem.
  const std::vector<std::string>& skipped() const { return skipped_; }

 private:
  std::vector<OpenProblem> problems_;
  std::vector<std::string> families_;
  std::vector<std::string> skipped_;
};

}  // namespace kgrpo
#endif
