// One kernel under evaluation: the values that KernelEvaluator's functions pass to each other. Private to
// kernel_evaluator*.cc.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "evaluator_sim/kernel_evaluator.h"
#include "interpreter/loaded_kernel.h"
#include "interpreter/tensors.h"
#include "interpreter/timing_calls.h"
#include "judge/verdict/comparison.h"  // WorstErrors

namespace kgrpo::evaluator_sim {

struct KernelEvaluator::Run : interpreter::LoadedKernel {
  Run(const OpenProblem& open_problem, evaluator::CompiledKernel compiled, std::shared_ptr<const simt::Module> module,
      const interpreter::Interpreter& interpreter)
      : LoadedKernel(open_problem.problem, std::move(compiled), std::move(module), interpreter), open(open_problem) {}
  const OpenProblem& open;
  evaluator::WorstErrors worst;
  uint64_t key = 0;     // secret
  uint64_t blocks = 0;  // secret: chooses blocks, the same for all kernels of a problem; 0: the first of a sequence
  bool thorough = false;
  bool of_triton = false;  // recorded from a candidate in Triton
  // All blocks must run: none represents others, or outputs are final only at the end. Set by the correctness cases, or
  // by the call at the timing size.
  bool runs_whole = false;
};

// The record and results of the call at the timing size.
struct KernelEvaluator::TimedCall {
  std::shared_ptr<const TimingInputs> inputs;
  std::optional<interpreter::TimingCalls> calls;  // with the last call's tensors
  CallRecord record;
};

}  // namespace kgrpo::evaluator_sim
