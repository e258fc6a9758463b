// The tensors of one call of the launch function in the interpreted device's memory. Used by the evaluators.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "judge/inputs/inputs.h"
#include "judge/problem/cases.h"
#include "judge/problem/problem.h"
#include "process/subprocess.h"  // Descriptor
#include "simt/state/memory.h"

namespace kgrpo::interpreter {

// The arguments of a large call, tensors in files (memfd) that device memory maps without copying.
struct MappedArguments {
  static constexpr uint8_t kGapByte = 0xff;    // between the rows of a tensor with a pitch
  std::vector<evaluator::Argument> arguments;  // tensors without their bytes
  std::vector<uint64_t> bytes;                 // of each tensor, 0 for scalars
  std::vector<process::Descriptor> files;      // of inputs and inouts; closed (-1) for the others
};

// The tensors of one call. The destructor frees them, so that a pointer kept beyond the call is caught.
class Tensors {
 public:
  // In a correctness case: inputs written, outputs poisoned by bytes drawn from its key, unless they lie in an input's
  // memory. `before`, unless null, are the tensors of a call at the same size: these take over their memory, and
  // `before` is only to be destroyed. Throws Error where they do not fit. All references outlive this.
  Tensors(simt::DeviceMemory& memory, const evaluator::Problem& problem, const evaluator::CorrectnessCase& one,
          const std::vector<evaluator::Argument>& arguments, Tensors* before = nullptr);
  // At the timing size: inputs mapped, outputs not filled with anything.
  Tensors(simt::DeviceMemory& memory, const evaluator::Problem& problem, const MappedArguments& inputs, uint64_t key);
  ~Tensors();
  Tensors(const Tensors&) = delete;
  Tensors& operator=(const Tensors&) = delete;

  // By parameter: a tensor's device address, a scalar's bytes. Then each tensor's extents, for candidates that take
  // tensors (judge/compile/candidate_form.h).
  const std::vector<uint64_t>& values() const { return values_; }
  const evaluator::Problem& problem() const { return problem_; }
  const evaluator::Bindings& size() const { return size_; }
  // The byte that output `i` was filled with.
  uint8_t Poison(size_t i) const;
  // The contents of tensor `i`, without the gaps between its rows.
  std::vector<uint8_t> Read(size_t i) const;
  // For each element of output `i`, without gaps, whether the call never stored to it; empty where it stored to all.
  std::vector<bool> Unwritten(size_t i) const;
  // Returns the name of an input whose contents changed, or "" (correctness cases).
  std::string ModifiedInput() const;
  // Returns the name of a tensor with writes in the gaps between its rows, or "" (correctness cases).
  std::string WrittenBetweenRows() const;

 private:
  bool SharesMemory(size_t output) const { return aliased_ && problem_.parameters[output].may_alias.has_value(); }
  std::vector<uint8_t> Memory(size_t i) const;
  void AppendExtents();

  simt::DeviceMemory& memory_;
  const evaluator::Problem& problem_;
  const std::vector<evaluator::Argument>& arguments_;
  const evaluator::Bindings& size_;
  const uint64_t key_;
  const bool aliased_ = false;
  std::vector<uint64_t> values_;
  std::vector<uint8_t> gaps_;  // by parameter, what fills the gaps between its rows (correctness cases)
};
}  // namespace kgrpo::interpreter
