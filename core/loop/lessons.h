// Memory across problems: the suggestions that made kernels of similar problems faster, for the prompt's variable
// `lessons`. Used by loop/rollout.cc, and by tools/optimize for a search.
//
// Sources are the rounds of this run, of the steps before the one that is played, and those of earlier runs
// (prompt.lessons_from). A problem never gets lessons from its own rounds, and held-out problems give none. All ranks
// get the leader's; a resumed run reads its own record, so that it has the same at each step.
//
// The similarity of two problems is half the equality of their families plus half the share of common traits (Jaccard).
// A suggestion's score is sum(similarity x log gain) / (1 + sum(similarity)) over its rounds on other problems. The
// gain is the new kernel's speedup over that of the round's first kernel; 1 if it gave no correct kernel.
#ifndef KGRPO_LOOP_LESSONS_H
#define KGRPO_LOOP_LESSONS_H

#include "config/pipeline.h"
#include "loop/problem_set.h"
#include "loop/rollout.h"
#include "prompt/state.h"
#include "store/database.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace kgrpo {

class Lessons {
 public:
  explicit Lessons(const PipelineConfig& config) : config_(config) {}

  // Begins a run, or continues it: reads the earlier runs, whose lessons are then kept in `database`, or what was kept
  // there. Fill follows the run's own rounds. The references outlive this. `heldout` may be null.
  void Begin(RunDatabase& database, const ProblemSet& problems, const ProblemSet* heldout);
  // Adds what the run of that resolved.yaml learned, for a command that plays its policy; without such a run those
  // that prompt.lessons_from names. `heldout`: as in Begin.
  void AddSourcesOf(const std::filesystem::path& pipeline, const ProblemSet* heldout);

  // Sets the lessons of the request's problems.
  void Fill(const ProblemSet& problems, RolloutRequest* request);
  // The best prompt.lessons ones for the problem, best first. With controls.shuffle_lessons the suggestions are drawn
  // from those of all other problems, keyed by purpose and step.
  std::vector<PromptLesson> For(const PromptProblem& problem, Purpose purpose, uint64_t step) const;

 private:
  struct Result {
    std::string suggestion;  // as it was first recorded
    uint64_t uses = 0;
    double log_gain = 0;  // sum
  };
  struct Source {
    std::string family;
    std::set<std::string> traits;
    std::map<std::string, Result> results;  // by SuggestionText
  };
  // Speedups of a run's kernels, by (problem, hash).
  using Speedups = std::map<std::pair<std::string, std::string>, double>;

  bool used() const;
  void LeaveOut(const ProblemSet* heldout);
  void AddRun(const std::filesystem::path& folder);
  void Add(const std::vector<PlayedRound>& rounds, Speedups* speedups);
  void Restore(const std::string& text);
  std::string Text() const;

  const PipelineConfig& config_;
  RunDatabase* database_ = nullptr;
  std::map<std::string, std::set<std::string>> traits_;  // of problems, by name
  std::set<std::string> left_out_;                       // names of held-out problems
  std::map<std::string, Source> sources_;                // by the problem's name
  Speedups speedups_;                                    // of this run
  uint64_t counted_ = 0;                                 // steps of this run
};

}  // namespace kgrpo
#endif
