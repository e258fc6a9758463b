// The problems of a run, opened, with their baselines. Used by the loop and by the evaluation of policies.
#ifndef KGRPO_LOOP_PROBLEM_SET_H
#define KGRPO_LOOP_PROBLEM_SET_H

#include "loop/worker_pool.h"
#include "plugin/instances.h"
#include "prompt/state.h"
#include "store/database.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace kgrpo {

struct OpenProblem {
  Problem problem;
  std::string name, family;
  std::string source;  // the reference kernel
  PromptProblem prompt;
  Evaluation baseline;  // of the reference kernel: correct, and its time is every speedup's numerator
  std::string directory;
};

// The problem's variables for prompts.
PromptProblem MakePromptProblem(const kgrpo_problem_info& info);

// Immutable once made: any thread may read it. The evaluator must outlive it.
class ProblemSet {
 public:
  // Opens the folders and judges their reference kernels, on the pool. Throws when a folder is no problem, or when two
  // have one name. A problem without a correct reference kernel is left out where `skip_unusable`, unless that leaves
  // none; else it is thrown. `opened_one` is called after each, from any thread, one call at a time.
  ProblemSet(Evaluator& evaluator, const std::vector<std::string>& directories, WorkerPool& pool, bool skip_unusable,
             const std::function<void()>& opened_one = {});

  size_t size() const { return problems_.size(); }
  const OpenProblem& operator[](size_t index) const { return problems_[index]; }
  const std::vector<std::string>& families() const { return families_; }  // by index
  std::vector<ProblemRecord> Records() const;
  // Of each problem that was left out, why, in the order of the folders. The reasons name the problems.
  const std::vector<std::string>& skipped() const { return skipped_; }

 private:
  std::vector<OpenProblem> problems_;
  std::vector<std::string> families_;
  std::vector<std::string> skipped_;
};

}  // namespace kgrpo
#endif
