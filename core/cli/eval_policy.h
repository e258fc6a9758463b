// `kgrpo-host eval FILE --policy ...`: plays policies on held-out problems and compares them. Used by
// eval_command.cc.
#ifndef KGRPO_CLI_EVAL_POLICY_H
#define KGRPO_CLI_EVAL_POLICY_H

#include <cstdint>
#include <string>
#include <vector>

#include "cli/command.h"

namespace kgrpo::cli {

struct PolicyEvalOptions {
  std::string file;
  std::vector<std::string> settings;
  std::vector<std::string> policies;  // as --policy names them
  std::string checkpoints;            // a run's folder, all of whose checkpoints are policies
  uint64_t episodes = 0;              // 0: evaluation.episodes of the file
  uint64_t repeats = 1;
  std::string kernels;
  bool json = false;

  // True if something is given that only policies take.
  bool IsAskedFor() const { return episodes > 0 || repeats > 1 || !kernels.empty(); }
};

void AddPolicyEvalOptions(CLI::App* command, PolicyEvalOptions* options);

int EvaluatePolicies(const Globals& globals, const PolicyEvalOptions& options);

}  // namespace kgrpo::cli
#endif
