// The tensors of one call of the launch function in the interpreted device's memory. Used by the judge.
#ifndef KGRPO_EVALUATOR_SIM_TENSORS_H
#define KGRPO_EVALUATOR_SIM_TENSORS_H

#include <cstdint>
#include <string>
#include <vector>

#include "evaluator_shared/inputs.h"
#include "evaluator_shared/problem.h"
#include "evaluator_sim/open_problem.h"
#include "evaluator_sim/simt/memory.h"

namespace kgrpo::evaluator_sim {

// Freed at the end, so that a pointer kept beyond the call is caught.
class Tensors {
 public:
  // At a correctness size: inputs written, outputs poisoned by bytes drawn from `key`. Throws Error where they do not
  // fit. All references outlive this.
  Tensors(simt::DeviceMemory& memory, const evaluator::Problem& problem,
          const std::vector<evaluator::Argument>& arguments, uint64_t key);
  // At the timing size: inputs mapped, outputs filled with poison only when somebody looks at them afterwards.
  Tensors(simt::DeviceMemory& memory, const evaluator::Problem& problem, const TimingInputs& inputs, uint64_t key,
          bool poisoned);
  ~Tensors();
  Tensors(const Tensors&) = delete;
  Tensors& operator=(const Tensors&) = delete;

  // By parameter: a tensor's device address, a scalar's bytes.
  const std::vector<uint64_t>& values() const { return values_; }
  // The byte that output `i` was filled with.
  uint8_t Poison(size_t i) const;
  // What tensor `i` holds now.
  std::vector<uint8_t> Read(size_t i) const;
  // The name of an input that no longer holds what it held, or "".
  std::string ModifiedInput() const;

 private:
  simt::DeviceMemory& memory_;
  const evaluator::Problem& problem_;
  const std::vector<evaluator::Argument>& arguments_;
  const uint64_t key_;
  std::vector<uint64_t> values_;
};
}  // namespace kgrpo::evaluator_sim

#endif
