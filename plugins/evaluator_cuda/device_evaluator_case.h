// The values that DeviceEvaluator's functions pass to each other. Private to device_evaluator*.cc.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "evaluator_cuda/device_evaluator.h"
#include "judge/inputs/inputs.h"       // Argument
#include "judge/problem/cases.h"       // CorrectnessCase
#include "judge/verdict/comparison.h"  // Expected

namespace kgrpo::evaluator_cuda {

constexpr uint64_t kGuardBytes = 4096;  // before, between and after the tensors of a correctness case
constexpr uint8_t kUnused = 0xff;       // fills the lent memory behind them

// One call at a correctness size.
struct DeviceEvaluator::Case : evaluator::CorrectnessCase {
  std::vector<evaluator::Argument> arguments;
  std::vector<evaluator::Expected>
      expected;  // by parameter; empty where the reference kernel is the oracle, until it has run
  const evaluator::Checker* checker = nullptr;  // decides in place of expected values
  uint8_t guard = 0, poison = 0;
  bool thorough = false;      // the reference, too, is compiled by the route of thorough evaluations
  bool is_reference = false;  // the kernel judged is the reference
  bool left_out = false;      // a drawn size at which the reference fails
};

// How a correct kernel is timed.
struct DeviceEvaluator::Look {
  uint64_t key;            // of inputs and order
  bool thorough, quick;    // as Evaluate has them
  bool suspected = false;  // an earlier process gave a suspicious time: run more rounds to confirm or clear it
};

// A worker that holds a problem's reference kernel.
struct DeviceEvaluator::ReferenceProcess {
  std::string digest;  // of the problem
  bool thorough;       // compiled by the route of thorough evaluations
  size_t which;        // its index among the processes that hold this kernel
  std::unique_ptr<Worker> worker;
};

}  // namespace kgrpo::evaluator_cuda
