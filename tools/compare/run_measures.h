// The results of a finished or unfinished run, read from its folder: its configuration, and each measure as one number
// and by problem. Read only. Used by compare.h.
#ifndef KGRPO_COMPARE_RUN_MEASURES_H
#define KGRPO_COMPARE_RUN_MEASURES_H

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "store/inputs.h"
#include "store/records.h"

namespace kgrpo {

// One trajectory's figures.
struct Episode {
  uint64_t step = 0;
  uint64_t number = 0;   // among the step's episodes on this problem, from 0
  uint64_t problem = 0;  // index into the run's problems
  std::string problem_name;
  double reward = 0;        // mean over its rounds
  double best_correct = 0;  // speedup of the best correct kernel; 0 without one
  double correct = 0;       // share of its rounds
  bool complete = true;     // false: it was dropped after some rounds

  double best_speedup() const { return std::max(best_correct, 1.0); }  // the reference itself counts
};

// The mean of a value over episodes and by problem: arithmetic, geometric for ratios.
struct EpisodeMean {
  enum class Over { kNothing, kTraining, kHeldout };
  Over over = Over::kNothing;
  double (*value)(const Episode&) = nullptr;
};

struct Measure {
  std::string name;       // "heldout_reward": in JSON
  std::string label;      // "held-out reward": for people
  bool is_ratio;          // compared by the quotient, as speedups are
  bool own_scale;         // in units of the run's own reward: comparable only between equal rewards
  bool is_outcome;        // verdicts cover it; false: shown as a fact only
  bool is_share = false;  // from 0 to 1, so that no difference is beyond -1 or 1
  EpisodeMean mean = {};  // how it is computed; over nothing: ReadMeasures has code of its own
};

// Every measure, in the order of reports. Training measures are over the last tenth of the steps with rollouts, unless
// their label says otherwise. "By problem": the geometric mean over problems of the best speedup on each, at least 1,
// in all episodes of the last held-out measurement, or among the kernels that training confirmed. fast_1: the share of
// episodes whose best kernel is correct and faster than the reference.
const std::vector<Measure>& Measures();

// A tenth of a run's steps with rollouts, at least one.
size_t TenthOf(size_t steps);

struct RunMeasures {
  std::filesystem::path folder;
  std::string variant;  // variant of an experiment; empty for any other run
  uint64_t seed = 0;
  bool finished = false;
  std::string times;   // the source of its kernels' times: "MODELLED, no device ran: ..." or "measured: ..."
  uint64_t steps = 0;  // done
  std::vector<uint64_t> heldout_steps;  // steps of the last held-out measurement: one, or each repeat of an evaluation
  // Episodes of an evaluation (`eval policy`), in order; empty for other runs.
  std::vector<Episode> episodes;
  std::map<std::string, std::string> configuration;  // "loop.rounds" -> "4"; without seed, name and output_dir
  InputDigests inputs;                               // digests of what it read; empty: an older record has none
  std::vector<SettingChange> changes;                // by `resume`, on the way: `configuration` is the last one
  std::map<std::string, double> values;              // by measure; absent where there is nothing to measure
  std::map<std::string, std::map<std::string, double>> by_problem;  // by measure, then by problem
  std::vector<double> rewards;                                      // mean reward of each step with rollouts
  std::vector<std::string> drawn;  // problems of the first steps' trajectories, in order

  Purpose heldout_purpose() const { return episodes.empty() ? Purpose::kHeldout : Purpose::kEvaluation; }
  std::filesystem::path database() const { return folder / "run.sqlite"; }
  // True if its recorded rewards are on several scales.
  bool changed_its_reward() const { return RewardChangedAfter(changes) > 0; }
};

// Throws kgrpo::Error naming the file if the folder has no run, or one that cannot be read. `look`: kFirst checks the
// whole run.sqlite for damage first; kWhereReadingFails misses damage outside the data of the measures.
enum class LookForDamage { kWhereReadingFails, kFirst };
RunMeasures ReadMeasures(const std::filesystem::path& folder, const std::string& variant,
                         LookForDamage look = LookForDamage::kWhereReadingFails);

// The runs of the given folders, each a run's or an experiment's (then all of its runs that have begun). A run that
// cannot be read is left out: *left_out receives a sentence for each. Throws as ReadMeasures does if no run is left,
// and KGRPO_ERROR_INVALID for an experiment whose list of runs is damaged.
std::vector<RunMeasures> ReadRuns(const std::vector<std::string>& folders, std::vector<std::string>* left_out,
                                  LookForDamage look = LookForDamage::kWhereReadingFails);

}  // namespace kgrpo

#endif  // KGRPO_COMPARE_RUN_MEASURES_H
