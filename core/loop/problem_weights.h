// How much a policy can learn from each training problem, by its recent rounds: loop.problem_weights. Used by
// loop/batch.cc to draw a step's problems.
#ifndef KGRPO_LOOP_PROBLEM_WEIGHTS_H
#define KGRPO_LOOP_PROBLEM_WEIGHTS_H

#include "config/pipeline.h"
#include "store/records.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace kgrpo {

class ProblemWeights {
 public:
  ProblemWeights(ProblemWeighting by, size_t problems) : by_(by), visits_(problems) {}

  // Takes the rounds of whole steps, in order. Demonstrations are not the policy's and do not count.
  void Add(std::span<const PlayedRound> rounds);

  // By problem, from 0.1 to 1; of a problem without enough rounds 1. Over the rounds of a problem's last 4 steps:
  //   solve_rate     1 - 2 |p - 0.5|, where p is the share of rounds with a correct kernel faster than the reference
  //   reward_spread  the rewards' standard deviation around the mean of their round number, over the largest of a
  //                  problem
  std::vector<double> Get() const;

 private:
  ProblemWeighting by_;
  std::vector<std::map<uint64_t, std::vector<PlayedRound>>> visits_;  // of each problem: its last steps
};

}  // namespace kgrpo
#endif
