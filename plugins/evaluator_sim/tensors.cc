#include "evaluator_sim/tensors.h"

#include <kgrpo/sdk/error.h>

#include <cstring>

#include "evaluator_shared/random.h"

namespace kgrpo::evaluator_sim {

using evaluator::Argument;
using evaluator::Parameter;
using evaluator::Problem;
using evaluator::Role;

Tensors::Tensors(simt::DeviceMemory& memory, const Problem& problem, const std::vector<Argument>& arguments,
                 uint64_t key)
    : memory_(memory), problem_(problem), arguments_(arguments), key_(key) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Parameter& parameter = problem.parameters[i];
    uint64_t value = 0;
    if (parameter.IsTensor()) {
      value = memory.Allocate(arguments[i].bytes.size(), parameter.name);
      if (value == 0) throw Error(KGRPO_ERROR_INVALID, "the problem's tensors do not fit the device memory limit");
      if (parameter.role == Role::kOutput) {
        memory.Poison(value, Poison(i));
      } else {
        memory.Write(value, arguments[i].bytes.data(), arguments[i].bytes.size());
      }
    } else {
      std::memcpy(&value, arguments[i].bytes.data(), arguments[i].bytes.size());
    }
    values_.push_back(value);
  }
}

Tensors::Tensors(simt::DeviceMemory& memory, const Problem& problem, const TimingInputs& inputs, uint64_t key,
                 bool poisoned)
    : memory_(memory), problem_(problem), arguments_(inputs.arguments), key_(key) {
  for (size_t i = 0; i < arguments_.size(); ++i) {
    const Parameter& parameter = problem.parameters[i];
    uint64_t value = 0;
    if (!parameter.IsTensor()) {
      std::memcpy(&value, arguments_[i].bytes.data(), arguments_[i].bytes.size());
    } else if (inputs.files[i].get() >= 0) {
      value = memory.AllocateCopy(inputs.files[i].get(), inputs.bytes[i], parameter.name);
    } else {
      value = memory.Allocate(inputs.bytes[i], parameter.name);
      if (poisoned && value != 0) memory.Poison(value, Poison(i));
    }
    if (parameter.IsTensor() && value == 0)
      throw Error(KGRPO_ERROR_INVALID, "the problem's tensors do not fit the device memory limit");
    values_.push_back(value);
  }
}

Tensors::~Tensors() {
  for (size_t i = 0; i < values_.size(); ++i) {
    if (problem_.parameters[i].IsTensor()) memory_.Free(values_[i]);
  }
}

uint8_t Tensors::Poison(size_t i) const {
  return evaluator::PoisonByte(problem_.parameters[i], evaluator::SubKey(key_, i));
}

std::vector<uint8_t> Tensors::Read(size_t i) const {
  std::vector<uint8_t> bytes(memory_.Find(values_[i])->bytes());
  memory_.Read(values_[i], bytes.data(), bytes.size());
  return bytes;
}

std::string Tensors::ModifiedInput() const {
  for (size_t i = 0; i < values_.size(); ++i) {
    if (problem_.parameters[i].role != Role::kInput) continue;
    const simt::Allocation* allocation = memory_.Find(values_[i]);
    if (std::memcmp(allocation->data(), arguments_[i].bytes.data(), arguments_[i].bytes.size()) != 0)
      return problem_.parameters[i].name;
  }
  return "";
}

}  // namespace kgrpo::evaluator_sim
