// One kernel under judgement: what Judge's functions hand on to each other. Private to judge*.cc.
#ifndef KGRPO_EVALUATOR_SIM_JUDGE_RUN_H
#define KGRPO_EVALUATOR_SIM_JUDGE_RUN_H

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "evaluator_shared/comparison.h"  // WorstErrors
#include "evaluator_sim/judge.h"
#include "evaluator_sim/tensors.h"

namespace kgrpo::evaluator_sim {

struct Judge::Run {
  Run(const OpenProblem& open_problem, evaluator::CompiledKernel compiled, std::shared_ptr<const simt::Module> module,
      const simt::Device& device, const DeviceSession::Limits& limits)
      : open(open_problem), kernel(std::move(compiled)), session(std::move(module), kernel.usage, device, limits) {}
  const OpenProblem& open;
  evaluator::CompiledKernel kernel;
  DeviceSession session;
  std::unique_ptr<Worker> worker;
  evaluator::WorstErrors worst;
  uint64_t key = 0;                         // secret
  std::optional<uint8_t> unwritten_shared;  // simt::LaunchConfig's
  bool may_be_unused = false;               // simt::Finding's, of the trouble that a case ended with
  bool thorough = false;
  // By what the cases did: all blocks must run, or none stand for the others, or what they write is not final.
  bool runs_whole = false;
  uint64_t warp_instructions = 0;
  std::vector<std::string> notes;                   // CallRecord's, of the checked cases
  double oracle_seconds = 0;                        // at correctness sizes
  std::vector<std::vector<uint8_t>> first_outputs;  // of the first case, for the repetition
};

// What the call at the timing size did and left.
struct Judge::TimedCall {
  std::shared_ptr<const TimingInputs> inputs;
  std::unique_ptr<Tensors> tensors;
  CallRecord record;
};

}  // namespace kgrpo::evaluator_sim

#endif
