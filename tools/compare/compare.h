// Tells whether one configuration is better than another. Groups runs by configuration, and compares each group with
// the first one, measure by measure, seed by seed. Runs that repeat a seed are averaged first: they are not independent
// samples of the configuration. Used by `kgrpo-host compare` and by the report.
#ifndef KGRPO_COMPARE_COMPARE_H
#define KGRPO_COMPARE_COMPARE_H

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "compare/run_measures.h"

namespace kgrpo {

// Runs of one configuration, with different seeds or repeats of a seed.
struct RunGroup {
  std::string label;  // the variant's name, or the first run's folder
  std::vector<RunMeasures> runs;
};

// Groups in the order of their first runs.
std::vector<RunGroup> GroupRuns(std::vector<RunMeasures> runs);

// One entry a seed, in the order of the seeds: its run, or the mean `values` and `by_problem` of its repeats (geometric
// for ratios).
std::vector<RunMeasures> MeansBySeed(const RunGroup& group, const std::vector<Measure>& measures);

size_t CountSeeds(const RunGroup& group);  // distinct ones

// "3 seeds"; with repeats "2 seeds, 5 runs"; "" for a single run.
std::string SeedsText(const RunGroup& group);

// Differences between the groups' configurations: key -> each group's value, "-" where it has none.
std::map<std::string, std::vector<std::string>> Differences(const std::vector<RunGroup>& groups);

enum class Basis {
  kPairedSeeds,  // differences of runs with equal seeds, which drew the same problems: Student's t over seeds
  kSeeds,        // runs that drew different problems: Welch's t over seeds
  kEpisodes,     // evaluations with one seed: bootstrap of paired episodes, resampled within their problem; covers
                 // other episodes on these problems, not other problems
  kProblems,     // one seed: bootstrap of differences by problem; does not cover other seeds
  kNone,         // no interval: too few common seeds, and too few problems of one
};

// By how much `other` is above `first`: a difference, or for ratios (speedups) a quotient.
struct Comparison {
  const Measure* measure = nullptr;
  size_t other = 0;  // index of the group
  double effect = 0;
  double low = 0, high = 0;  // the interval; equal to effect for kNone
  Basis basis = Basis::kNone;
  size_t seeds = 0;            // number of units that the interval is based on
  size_t episodes = 0;         // episodes that both sides played with the same seed
  bool paired = false;         // runs of one seed drew the same problems, so common seeds count
  size_t common_problems = 0;  // problems that both sides measured with their common seed; set for kProblems and kNone

  bool differs() const;  // true if the interval excludes "no effect"
};

// Compares all groups with the first, for each measure that both have. The intervals of one measure hold together at
// 95%: with several comparisons each has level 1 - 0.05 / their number (Bonferroni). `measures` outlive the result.
std::vector<Comparison> Compare(const std::vector<RunGroup>& groups, const std::vector<Measure>& measures = Measures());

// True if the two groups' runs of one seed drew the same problems for their first trajectories.
bool ArePaired(const RunGroup& a, const RunGroup& b);

// True if a run of `a` and a run of `b` have the same seed.
bool ShareASeed(const RunGroup& a, const RunGroup& b);

// True if all runs have the same reward for all of their steps. Otherwise measures with own_scale cannot be compared.
bool SameReward(const std::vector<RunGroup>& groups);

// "held-out reward: log vs base +0.12 [0.05, 0.19], paired over 5 seeds: log beats base".
std::string InWords(const Comparison& comparison, const std::vector<RunGroup>& groups);

// For a sweep of several keys: a line for each measure of the comparisons and each key, "held-out reward by gamma
// (over 12 pairs of runs alike in all else): 0.9 vs 0.4 +0.12 [0.05, 0.19]". Empty unless each key that differs has
// pairs of groups that differ in it alone.
std::vector<std::string> WordsByKey(const std::vector<RunGroup>& groups, const std::vector<Comparison>& comparisons);

}  // namespace kgrpo

#endif  // KGRPO_COMPARE_COMPARE_H
