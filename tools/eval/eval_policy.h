// `kgrpo-host eval FILE --policy ...`: plays policies on held-out problems and compares them. Used by
// main.cc.
#ifndef KGRPO_EVAL_EVAL_POLICY_H
#define KGRPO_EVAL_EVAL_POLICY_H

#include <cstdint>
#include <string>
#include <vector>

#include "cli/command.h"

namespace kgrpo::cli {

struct PolicyEvalOptions {
  std::string file;
  std::vector<std::string> settings;
  std::vector<std::string> policies;  // values of --policy
  std::string checkpoints;            // a run's folder; every checkpoint is a policy
  uint64_t episodes = 0;              // 0: evaluation.episodes of the file
  uint64_t repeats = 1;
  std::string kernels, out;
  bool json = false;

  // True if an option is given that applies to policies only.
  bool IsAskedFor() const { return episodes > 0 || repeats > 1 || !kernels.empty() || !out.empty(); }
};

void AddPolicyEvalOptions(CLI::App* command, PolicyEvalOptions* options);

int EvaluatePolicies(const Globals& globals, const PolicyEvalOptions& options);

}  // namespace kgrpo::cli
#endif
