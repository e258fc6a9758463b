// Tracks the suggestions of the coder's list that were not tried yet on each kernel of a search. Used by
// loop/optimize.cc once a policy suggests nothing new.
#ifndef KGRPO_LOOP_UNTRIED_H
#define KGRPO_LOOP_UNTRIED_H

#include "loop/trajectory.h"
#include "store/records.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace kgrpo {

class Untried {
 public:
  // `start`: a trajectory before its first round.
  Untried(std::vector<std::string> list, const Trajectory& start);

  // Adds a round that has an outcome. `after`: the trajectory after it.
  void Add(const RoundRecord& round, const Trajectory& after);

  struct Choice {
    const Trajectory* from;  // valid until the next Add
    std::string suggestion;
  };
  // Returns at most `most` choices to try next: on the start alone until all were tried there, then on the `beam`
  // fastest kernels, at most `samples` on each. Their order is drawn by (seed, wave). Empty where nothing is left.
  std::vector<Choice> Next(uint64_t most, uint64_t beam, uint64_t samples, uint64_t seed, uint64_t wave) const;

 private:
  struct Kernel {
    Trajectory trajectory;  // with applied rounds only: those without effect do not count
    std::set<std::string> tried;
  };

  std::vector<std::string> list_;
  std::deque<Kernel> kernels_;  // the start first
  std::map<std::string, Kernel*> by_source_;
};

}  // namespace kgrpo
#endif
