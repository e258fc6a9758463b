#include "evaluator_cuda/layout.h"

#include <cstring>

namespace kgrpo::evaluator_cuda {
namespace {

uint64_t Aligned(uint64_t bytes) { return (bytes + Layout::kAlignment - 1) / Layout::kAlignment * Layout::kAlignment; }

}  // namespace

Layout::Layout(const evaluator::Problem& problem, const evaluator::Bindings& size, uint64_t guard) {
  uint64_t at = Aligned(guard);
  for (size_t i = 0; i < problem.parameters.size(); ++i) {
    const evaluator::Parameter& parameter = problem.parameters[i];
    Plan::Value value;
    if (parameter.IsTensor()) {
      const uint64_t bytes = parameter.MemoryBytes(size);
      tensors_.push_back({i, at, bytes, parameter.RowsAt(size).MemoryElements()});
      value = {1, at};
      at = Aligned(at + bytes + guard);
    } else {
      const evaluator::Argument argument = evaluator::ScalarArgument(parameter, size);
      std::memcpy(&value.value, argument.bytes.data(), argument.bytes.size());
    }
    values_.push_back(value);
  }
  for (const evaluator::Parameter& parameter : problem.parameters) {
    for (const int64_t extent : parameter.ShapeAt(size)) values_.push_back({0, static_cast<uint64_t>(extent)});
  }
  bytes_ = at;
}

std::vector<Plan::Value> Layout::Arguments(uint32_t memory, uint64_t base) const {
  std::vector<Plan::Value> values = values_;
  for (Plan::Value& value : values) {
    if (value.memory != 0) value = {memory, value.value + base};
  }
  return values;
}

}  // namespace kgrpo::evaluator_cuda
