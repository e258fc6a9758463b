// A compiled kernel beside an interpreted device: its host code in a sandboxed process, or a launch table in place of
// host code, and its kernels' PTX parsed. Made by an evaluator for one evaluation.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "interpreter/device_session.h"
#include "interpreter/tensors.h"  // Tensors
#include "interpreter/worker_pool.h"
#include "judge/compile/compiled_kernel.h"  // CompiledKernel
#include "judge/inputs/inputs.h"            // Argument
#include "judge/problem/cases.h"            // CorrectnessCase
#include "judge/problem/problem.h"          // Problem
#include "judge/verdict/comparison.h"       // Expected

namespace kgrpo::interpreter {

// Resources for interpreting the kernels of one evaluator. The objects that it refers to outlive the kernels.
struct Interpreter {
  const simt::Device& device;
  WorkerPool& workers;
  uint64_t warp_instructions;  // this and host_seconds: as in DeviceSession::Limits
  double host_seconds;
  std::function<bool()> cancelled = {};  // as in DeviceSession::Limits
};

// Parses the PTX of all kernels. Returns null, and the reason in `trouble`, if there are no kernels, the interpreter
// cannot run them, or their variables take more device memory than the problem allows.
std::shared_ptr<const simt::Module> ParsePtx(const evaluator::Problem& problem, const evaluator::CompiledKernel& kernel,
                                             Trouble* trouble);

// One thread at a time.
struct LoadedKernel {
  // `module` is made from `compiled` by ParsePtx. Call Start before anything else.
  LoadedKernel(const evaluator::Problem& problem, evaluator::CompiledKernel compiled,
               std::shared_ptr<const simt::Module> module, const Interpreter& interpreter);

  // Takes a fresh process, which loads the object, and ends the one before. The device's variables are as at a
  // program's start.
  Trouble Start();
  // Calls the launch function once, or makes the table's launches. `mode` and `choice` are how its kernels run.
  Trouble Call(const Tensors& tensors, simt::Mode mode, const BlockChoice& choice, CallRecord* record);
  // Restores the device's state as it was at session.KeepState: without tensors, in the same process if that can be.
  Trouble Restore() { return session.RestoreState() ? Trouble{} : Start(); }

  const evaluator::CompiledKernel kernel;
  WorkerPool& workers;
  DeviceSession session;
  std::unique_ptr<Worker> worker;  // null where there is no host code
};

// The outputs of a problem's compiled reference kernel for these inputs, by parameter: the expected ones if a problem
// has no oracle. Throws Error(KGRPO_ERROR_INVALID) where it does not run.
std::vector<evaluator::Expected> ReferenceOutputs(const evaluator::Problem& problem,
                                                  const evaluator::CompiledKernel& reference,
                                                  const Interpreter& interpreter, evaluator::CorrectnessCase one,
                                                  const std::vector<evaluator::Argument>& arguments);

}  // namespace kgrpo::interpreter
