#include "interpreter/tensors.h"

#include <kgrpo/sdk/error.h>

#include <cstring>
#include <utility>

#include "judge/problem/random.h"

namespace kgrpo::interpreter {

using evaluator::Argument;
using evaluator::Parameter;
using evaluator::Problem;
using evaluator::Role;

namespace {

// Fills the gaps between rows, which belong to no tensor. If `gap` is poison, they count as never written.
void FillGaps(simt::Allocation* allocation, const evaluator::Rows& rows, evaluator::DType dtype, uint8_t gap) {
  const auto size = static_cast<int64_t>(evaluator::Info(dtype).size);
  for (int64_t row = 0; row < rows.count; ++row) {
    std::memset(allocation->data() + (row * rows.pitch + rows.elements) * size, gap,
                static_cast<size_t>((rows.pitch - rows.elements) * size));
  }
}

}  // namespace

void Tensors::AppendExtents() {
  for (const Parameter& parameter : problem_.parameters) {
    if (!parameter.IsTensor()) continue;
    for (const int64_t extent : parameter.ShapeAt(size_)) values_.push_back(static_cast<uint64_t>(extent));
  }
}

Tensors::Tensors(simt::DeviceMemory& memory, const Problem& problem, const evaluator::CorrectnessCase& one,
                 const std::vector<Argument>& arguments, Tensors* before)
    : memory_(memory),
      problem_(problem),
      arguments_(arguments),
      size_(*one.size),
      key_(one.key),
      aliased_(one.aliased),
      values_(arguments.size()) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Parameter& parameter = problem.parameters[i];
    uint64_t& value = values_[i];
    gaps_.push_back(one.GapByte(parameter.role));
    if (!parameter.IsTensor()) {
      std::memcpy(&value, arguments[i].bytes.data(), arguments[i].bytes.size());
      continue;
    }
    if (SharesMemory(i)) continue;
    const evaluator::Rows rows = parameter.RowsAt(size_);
    value = before != nullptr ? std::exchange(before->values_[i], 0)
                              : memory.Allocate(parameter.MemoryBytes(size_), parameter.name);
    if (value == 0) throw Error(KGRPO_ERROR_INVALID, "the problem's tensors do not fit the device memory limit");
    if (parameter.role == Role::kOutput) {
      memory.Poison(value, Poison(i));
      if (rows.HasGaps()) FillGaps(memory.Find(value), rows, parameter.dtype, gaps_[i]);
    } else if (rows.HasGaps()) {
      const std::vector<uint8_t> bytes = evaluator::SpreadRows(rows, parameter.dtype, arguments[i].bytes, gaps_[i]);
      memory.Write(value, bytes.data(), bytes.size());
    } else {
      memory.Write(value, arguments[i].bytes.data(), arguments[i].bytes.size());
    }
  }
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (SharesMemory(i)) values_[i] = values_[*problem.parameters[i].may_alias];
  }
  AppendExtents();
}

Tensors::Tensors(simt::DeviceMemory& memory, const Problem& problem, const MappedArguments& inputs, uint64_t key)
    : memory_(memory), problem_(problem), arguments_(inputs.arguments), size_(problem.timing), key_(key) {
  for (size_t i = 0; i < arguments_.size(); ++i) {
    const Parameter& parameter = problem.parameters[i];
    uint64_t value = 0;
    if (!parameter.IsTensor()) {
      std::memcpy(&value, arguments_[i].bytes.data(), arguments_[i].bytes.size());
    } else if (inputs.files[i].get() >= 0) {
      value = memory.AllocateCopy(inputs.files[i].get(), inputs.bytes[i], parameter.name);
    } else {
      value = memory.Allocate(inputs.bytes[i], parameter.name);
    }
    if (parameter.IsTensor() && value == 0)
      throw Error(KGRPO_ERROR_INVALID, "the problem's tensors do not fit the device memory limit");
    values_.push_back(value);
  }
  AppendExtents();
}

Tensors::~Tensors() {
  for (size_t i = 0; i < arguments_.size(); ++i) {
    if (problem_.parameters[i].IsTensor() && !SharesMemory(i)) memory_.Free(values_[i]);
  }
}

uint8_t Tensors::Poison(size_t i) const {
  return evaluator::PoisonByte(problem_.parameters[i], evaluator::SubKey(key_, i));
}

std::vector<uint8_t> Tensors::Memory(size_t i) const {
  std::vector<uint8_t> bytes(memory_.Find(values_[i])->bytes());
  memory_.Read(values_[i], bytes.data(), bytes.size());
  return bytes;
}

std::vector<uint8_t> Tensors::Read(size_t i) const {
  const Parameter& parameter = problem_.parameters[i];
  return evaluator::GatherRows(parameter.RowsAt(size_), parameter.dtype, Memory(i));
}

std::vector<bool> Tensors::Unwritten(size_t i) const {
  const Parameter& parameter = problem_.parameters[i];
  const simt::Allocation& memory = *memory_.Find(values_[i]);
  if (SharesMemory(i) || memory.WrittenBytes() == memory.bytes()) return {};
  const evaluator::Rows rows = parameter.RowsAt(size_);
  const auto size = static_cast<uint64_t>(evaluator::Info(parameter.dtype).size);
  std::vector<bool> unwritten(static_cast<size_t>(rows.count * rows.elements));
  for (uint64_t begin = memory.NextUnwritten(0), end = 0; begin < memory.bytes(); begin = memory.NextUnwritten(end)) {
    end = memory.NextWritten(begin);
    for (uint64_t element = begin / size; element * size < end; ++element) {
      const auto row = static_cast<int64_t>(element) / rows.pitch, column = static_cast<int64_t>(element) % rows.pitch;
      if (column < rows.elements) unwritten[static_cast<size_t>(row * rows.elements + column)] = true;
    }
  }
  return unwritten;
}

std::string Tensors::ModifiedInput() const {
  for (size_t i = 0; i < arguments_.size(); ++i) {
    const Parameter& parameter = problem_.parameters[i];
    if (parameter.role != Role::kInput) continue;
    bool shared = false;
    for (size_t output = 0; output < arguments_.size(); ++output)
      shared = shared || (SharesMemory(output) && problem_.parameters[output].may_alias == i);
    if (!shared && Read(i) != arguments_[i].bytes) return parameter.name;
  }
  return "";
}

std::string Tensors::WrittenBetweenRows() const {
  for (size_t i = 0; i < arguments_.size(); ++i) {
    const Parameter& parameter = problem_.parameters[i];
    if (!parameter.pitch || SharesMemory(i)) continue;
    if (!evaluator::GapsHold(parameter.RowsAt(size_), parameter.dtype, Memory(i), gaps_[i])) return parameter.name;
  }
  return "";
}

}  // namespace kgrpo::interpreter
