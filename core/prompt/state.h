// The data of a prompt: the state of one trajectory at the start of a round. Filled by the loop
// (loop/trajectory.cc), rendered by prompt/template.h; docs/prompts.md describes each variable for users.
#ifndef KGRPO_PROMPT_STATE_H
#define KGRPO_PROMPT_STATE_H

#include <kgrpo/support/evaluation.h>
#include <kgrpo/support/metric_registry.h>
#include <kgrpo/support/prompt_problem.h>

#include <cstdint>
#include <string>
#include <vector>

namespace kgrpo {

// A round that is over.
struct PromptRound {
  uint32_t round = 0;  // from 1
  std::string suggestion;
  std::string summary;   // the coder's words for what it did; may be empty
  std::string outcome;   // "correct", another verdict, "not applicable", "unclear", "no kernel" or "coder failed"
  bool applied = false;  // it led to a new kernel that became the current one
  double speedup = 0;    // over the reference; 0 unless correct
  std::string diagnosis;
  std::string kernel = {};     // empty: the coder wrote none
  Evaluation evaluation = {};  // evaluation of the kernel; empty without one
};

struct PromptState {
  PromptProblem problem;
  std::string reference;        // the reference kernel
  std::string code_a;           // the kernel before the current one
  std::string code_b;           // the current kernel
  std::string last_suggestion;  // the suggestion that led from A to B
  uint32_t round = 1;           // from 1
  uint32_t rounds = 1;
  std::vector<PromptRound> history;         // oldest first
  size_t history_from = 0;                  // rounds of it that `history` leaves out, from the oldest
  size_t best_rounds = 3;                   // rounds that `best` has, at most
  Evaluation current;                       // evaluation of code_b
  const MetricRegistry* metrics = nullptr;  // declarations of the metrics; null: none
};

}  // namespace kgrpo
#endif
