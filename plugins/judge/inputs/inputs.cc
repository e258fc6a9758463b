#include "judge/inputs/inputs.h"

#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <utility>

#include "judge/inputs/draw.h"
#include "judge/inputs/source_inputs.h"
#include "judge/problem/random.h"
#include "judge/process/torch_worker.h"

namespace kgrpo::evaluator {
namespace {

template <typename Value>
void Fill(DType dtype, std::vector<uint8_t>& bytes, int64_t elements, Value value) {
  const size_t stride = Info(dtype).size;
  if (dtype == DType::kFloat32) {  // by far the most common: without a call an element
    auto* data = reinterpret_cast<float*>(bytes.data());
    for (int64_t i = 0; i < elements; ++i) data[i] = static_cast<float>(value(static_cast<uint64_t>(i)));
    return;
  }
  for (int64_t i = 0; i < elements; ++i) {
    StoreDouble(dtype, static_cast<double>(value(static_cast<uint64_t>(i))),
                bytes.data() + static_cast<size_t>(i) * stride);
  }
}

void FillIntegers(const Parameter& parameter, const Distribution& distribution, const Bindings& size, uint64_t key,
                  Argument& argument) {
  const int64_t low = distribution.low->EvaluateInteger(size), high = distribution.high->EvaluateInteger(size);
  if (low > high) {
    throw Error(KGRPO_ERROR_INVALID, "parameter " + parameter.name + ": low " + std::to_string(low) +
                                         " is above high " + std::to_string(high));
  }
  const uint64_t range = static_cast<uint64_t>(high) - static_cast<uint64_t>(low) + 1;  // both bounds are drawn
  const size_t stride = Info(parameter.dtype).size;
  for (int64_t i = 0; i < argument.elements; ++i) {
    const uint64_t drawn = UniformBelow(RandomBits(key, static_cast<uint64_t>(i)), range);
    StoreInteger(parameter.dtype, low + static_cast<int64_t>(drawn),
                 argument.bytes.data() + static_cast<size_t>(i) * stride);
  }
}

void FillPermutation(const Parameter& parameter, uint64_t key, Argument& argument) {
  std::vector<int64_t> order(static_cast<size_t>(argument.elements));
  std::iota(order.begin(), order.end(), 0);
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[UniformBelow(RandomBits(key, i), i)]);
  const size_t stride = Info(parameter.dtype).size;
  for (size_t i = 0; i < order.size(); ++i) StoreInteger(parameter.dtype, order[i], argument.bytes.data() + i * stride);
}

// Non-decreasing from 0 to `high`: the row offsets of a compressed sparse matrix.
void FillOffsets(const Parameter& parameter, const Distribution& distribution, const Bindings& size, uint64_t key,
                 Argument& argument) {
  const int64_t high = distribution.high->EvaluateInteger(size);
  if (high < 0) throw Error(KGRPO_ERROR_INVALID, "parameter " + parameter.name + ": high must not be negative");
  std::vector<int64_t> cuts(static_cast<size_t>(argument.elements));
  for (size_t i = 0; i < cuts.size(); ++i) {
    cuts[i] = static_cast<int64_t>(UniformBelow(RandomBits(key, i), static_cast<uint64_t>(high) + 1));
  }
  cuts.front() = 0;
  if (cuts.size() > 1) cuts.back() = high;
  std::sort(cuts.begin(), cuts.end());
  const size_t stride = Info(parameter.dtype).size;
  for (size_t i = 0; i < cuts.size(); ++i) StoreInteger(parameter.dtype, cuts[i], argument.bytes.data() + i * stride);
}

// Draws by the recorded calls of PyTorch that belong to the size.
void FillByTape(const Parameter& parameter, const Distribution& distribution, const Bindings& size, uint64_t key,
                Argument& argument) {
  for (const auto& [bound, file] : distribution.tapes) {
    if (bound != size) continue;
    const std::vector<TorchTensor> drawn = TorchWorker::Shared().Replay(file, key);
    const std::optional<DType> dtype = drawn.size() == 1 ? DTypeFromName(drawn[0].dtype) : std::nullopt;
    const size_t elements = dtype ? drawn[0].bytes.size() / Info(*dtype).size : 0;
    if (elements != static_cast<size_t>(argument.elements)) {
      throw Error(KGRPO_ERROR_INVALID, file + ": draws no tensor of " + std::to_string(argument.elements) +
                                           " elements for " + parameter.name);
    }
    const auto* bytes = reinterpret_cast<const uint8_t*>(drawn[0].bytes.data());
    for (size_t i = 0; i < elements; ++i) {
      const uint8_t* from = bytes + i * Info(*dtype).size;
      uint8_t* to = argument.bytes.data() + i * Info(parameter.dtype).size;
      if (Info(*dtype).is_floating) {
        StoreDouble(parameter.dtype, LoadDouble(*dtype, from), to);
      } else {
        StoreInteger(parameter.dtype, LoadInteger(*dtype, from), to);
      }
    }
    return;
  }
  throw Error(KGRPO_ERROR_INVALID, "parameter " + parameter.name + ": no tape draws it at " + SizeText(size));
}

// Draws by the problem's own inputs.cc.
void FillBySource(const Parameter& parameter, const Distribution& distribution, const Bindings& size, uint64_t key,
                  Argument& argument) {
  if (distribution.source == nullptr)
    throw Error(KGRPO_ERROR_INTERNAL, "parameter " + parameter.name + ": inputs.cc was not compiled");
  const auto elements = static_cast<size_t>(argument.elements);
  const size_t stride = Info(parameter.dtype).size;
  if (Info(parameter.dtype).is_floating) {
    std::vector<double> values(elements);
    distribution.source->Fill(size, key, values.data(), sizeof values[0] * values.size());
    for (size_t i = 0; i < elements; ++i) StoreDouble(parameter.dtype, values[i], argument.bytes.data() + i * stride);
  } else {
    std::vector<int64_t> values(elements);
    distribution.source->Fill(size, key, values.data(), sizeof values[0] * values.size());
    for (size_t i = 0; i < elements; ++i) StoreInteger(parameter.dtype, values[i], argument.bytes.data() + i * stride);
  }
}

void FillTensor(const Parameter& parameter, const Distribution& distribution, const Bindings& size, uint64_t key,
                int variant, Argument& argument) {
  const FloatFormat format = {Info(parameter.dtype).digits, Info(parameter.dtype).least_exponent};
  const uint64_t repeats = distribution.by_row ? static_cast<uint64_t>(parameter.RowsAt(size).elements) : 1;
  const auto real = [&](auto value) {
    const double step = distribution.step;
    if (step == 0 && repeats == 1) return Fill(parameter.dtype, argument.bytes, argument.elements, value);
    Fill(parameter.dtype, argument.bytes, argument.elements, [=](uint64_t i) {
      const double drawn = value(i / repeats);
      return step == 0 ? drawn : step * std::nearbyint(drawn / step);
    });
  };
  switch (distribution.kind) {
    case Distribution::Kind::kNormal: {
      const bool given = distribution.mean || distribution.deviation;
      const bool shifted = variant % 2 == 1 && !given;
      const double mean = shifted ? 0.5 : distribution.mean.value_or(0);
      const double deviation = shifted ? 1.5 : distribution.deviation.value_or(1);
      return real([=](uint64_t i) { return mean + deviation * BellCurve(RandomBits(key, i)); });
    }
    case Distribution::Kind::kUniform: {
      const double low = distribution.low->Evaluate(size), high = distribution.high->Evaluate(size);
      if (!(low < high)) throw Error(KGRPO_ERROR_INVALID, "parameter " + parameter.name + ": low is not below high");
      return real([=](uint64_t i) { return low + (high - low) * UniformReal(RandomBits(key, i)); });
    }
    case Distribution::Kind::kLargeOffset: {
      const double offset = distribution.offset, deviation = distribution.deviation.value_or(1);
      return real([=](uint64_t i) { return offset + deviation * BellCurve(RandomBits(key, i)); });
    }
    case Distribution::Kind::kSparse: {
      const double density = distribution.density;
      const uint64_t chosen = SubKey(key, 1);
      return real([=](uint64_t i) {
        return UniformReal(RandomBits(chosen, i)) < density ? BellCurve(RandomBits(key, i)) : 0.0;
      });
    }
    case Distribution::Kind::kConstant: {
      const double value = distribution.value;
      return real([=](uint64_t) { return value; });
    }
    case Distribution::Kind::kDenormals: {
      const double ordinary = distribution.ordinary;
      const uint64_t chosen = SubKey(key, 1);
      return real([=](uint64_t i) {
        const uint64_t bits = RandomBits(key, i);
        return UniformReal(RandomBits(chosen, i)) < ordinary ? BellCurve(bits) : TinyValue(bits, format);
      });
    }
    case Distribution::Kind::kExtremes: {
      const bool infinities = distribution.infinities, nans = distribution.nans;
      return real([=](uint64_t i) { return ExtremeValue(RandomBits(key, i), format, infinities, nans); });
    }
    case Distribution::Kind::kIntegers: return FillIntegers(parameter, distribution, size, key, argument);
    case Distribution::Kind::kPermutation: return FillPermutation(parameter, key, argument);
    case Distribution::Kind::kOffsets: return FillOffsets(parameter, distribution, size, key, argument);
    case Distribution::Kind::kTorchScript: return FillByTape(parameter, distribution, size, key, argument);
    case Distribution::Kind::kSource: return FillBySource(parameter, distribution, size, key, argument);
  }
}

double PowerOfTwoBelow(double value) { return std::exp2(std::floor(std::log2(value))); }

// The distribution of an input in a case with other values than the listed ones. Those that have no such form stay.
Distribution DistributionIn(const CorrectnessCase& one, const Parameter& parameter, size_t index) {
  using Kind = Distribution::Kind;
  Distribution distribution = parameter.distribution;
  if (!Info(parameter.dtype).is_floating) return distribution;
  switch (one.values) {
    case InputValues::kListed: break;
    case InputValues::kWhole:
      if (distribution.kind == Kind::kUniform) {
        const double low = distribution.low->Evaluate(*one.size), high = distribution.high->Evaluate(*one.size);
        if (!(low < high)) break;
        // Strictly between the bounds, which the listed values hardly reach: a logarithm of 0 is not asked for.
        distribution.step = PowerOfTwoBelow((high - low) / 4);
        distribution.low = Expression(low + 0.51 * distribution.step);
        distribution.high = Expression(high - 0.51 * distribution.step);
      } else if (distribution.kind == Kind::kNormal || distribution.kind == Kind::kLargeOffset ||
                 distribution.kind == Kind::kSparse) {
        const double deviation = distribution.deviation.value_or(1);
        distribution.step = PowerOfTwoBelow(deviation);
        if (distribution.kind == Kind::kNormal) distribution.mean = distribution.mean.value_or(0);
        distribution.deviation = 2 * deviation;
      }
      break;
    case InputValues::kConstantRows: distribution.by_row = true; break;
    case InputValues::kLargeOffset:
      if (index != one.parameter) break;
      distribution.kind = Kind::kLargeOffset;
      distribution.offset = 100;
      break;
    case InputValues::kWideSpread:
      if (index == one.parameter) distribution.deviation = 64;
      break;
  }
  return distribution;
}

Argument EmptyTensor(const Parameter& parameter, const Bindings& size) {
  Argument argument;
  argument.elements = parameter.Elements(size);
  argument.bytes.resize(static_cast<size_t>(argument.elements) * Info(parameter.dtype).size);
  return argument;
}

}  // namespace

Argument DrawTensor(const Parameter& parameter, const Bindings& size, uint64_t key, int variant) {
  Argument argument = EmptyTensor(parameter, size);
  FillTensor(parameter, parameter.distribution, size, key, variant, argument);
  return argument;
}

Argument ScalarArgument(const Parameter& parameter, const Bindings& size) {
  const DTypeInfo& info = Info(parameter.dtype);
  Argument argument;
  argument.bytes.resize(info.size);
  if (info.is_floating) {
    StoreDouble(parameter.dtype, parameter.value.Evaluate(size), argument.bytes.data());
    argument.real = LoadDouble(parameter.dtype, argument.bytes.data());  // the oracle sees the rounded value
    argument.whole = static_cast<int64_t>(argument.real);
  } else {
    argument.whole = parameter.value.EvaluateInteger(size);
    argument.real = static_cast<double>(argument.whole);
    StoreInteger(parameter.dtype, argument.whole, argument.bytes.data());
  }
  return argument;
}

namespace {

// Draws a scalar for a case in which it may have another value than the listed one.
Argument DrawnScalar(const Parameter& parameter, const CorrectnessCase& one, size_t index) {
  if (!parameter.HasSeveralValues()) return ScalarArgument(parameter, *one.size);
  Parameter drawn = parameter;
  if (!parameter.range) {
    drawn.value = Expression(one.scalars * parameter.value.Evaluate(*one.size));
  } else {
    const auto [low, high] = *parameter.range;
    const double share = UniformReal(RandomBits(SubKey(one.key, index), 0));
    const bool floating = Info(parameter.dtype).is_floating;
    drawn.value = Expression(floating ? low + (high - low) * share : std::floor(low + (high - low + 1) * share));
  }
  return ScalarArgument(drawn, *one.size);
}

}  // namespace

std::vector<Argument> DrawArguments(const Problem& problem, const Bindings& size, uint64_t key, int variant) {
  CorrectnessCase one;
  one.size = &size;
  one.key = key;
  one.variant = variant;
  return DrawArguments(problem, one);
}

std::vector<Argument> DrawScalars(const Problem& problem, const CorrectnessCase& one) {
  std::vector<Argument> arguments(problem.parameters.size());
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Parameter& parameter = problem.parameters[i];
    if (!parameter.IsTensor())
      arguments[i] = one.further ? DrawnScalar(parameter, one, i) : ScalarArgument(parameter, *one.size);
  }
  return arguments;
}

std::vector<Argument> DrawArguments(const Problem& problem, const CorrectnessCase& one) {
  std::vector<Argument> arguments = DrawScalars(problem, one);
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Parameter& parameter = problem.parameters[i];
    if (!parameter.IsTensor()) continue;
    arguments[i] = EmptyTensor(parameter, *one.size);
    if (parameter.role == Role::kOutput) continue;
    const bool otherwise = one.alternative && one.alternative->parameter == i;
    FillTensor(parameter, otherwise ? parameter.also[one.alternative->index] : DistributionIn(one, parameter, i),
               *one.size, SubKey(one.key, i), one.variant, arguments[i]);
  }
  return arguments;
}

std::vector<uint8_t> SpreadRows(const Rows& rows, DType dtype, std::vector<uint8_t> dense, uint8_t gap) {
  if (!rows.HasGaps()) return dense;
  const size_t size = Info(dtype).size, row = static_cast<size_t>(rows.elements) * size,
               pitch = static_cast<size_t>(rows.pitch) * size;
  std::vector<uint8_t> memory(static_cast<size_t>(rows.count) * pitch, gap);
  for (size_t r = 0; r < static_cast<size_t>(rows.count); ++r)
    std::memcpy(memory.data() + r * pitch, dense.data() + r * row, row);
  return memory;
}

std::vector<uint8_t> GatherRows(const Rows& rows, DType dtype, std::vector<uint8_t> memory) {
  if (!rows.HasGaps()) return memory;
  const size_t size = Info(dtype).size, row = static_cast<size_t>(rows.elements) * size,
               pitch = static_cast<size_t>(rows.pitch) * size;
  std::vector<uint8_t> dense(static_cast<size_t>(rows.count) * row);
  for (size_t r = 0; r < static_cast<size_t>(rows.count); ++r)
    std::memcpy(dense.data() + r * row, memory.data() + r * pitch, row);
  return dense;
}

bool GapsHold(const Rows& rows, DType dtype, const std::vector<uint8_t>& memory, uint8_t gap) {
  const auto size = static_cast<int64_t>(Info(dtype).size);
  for (int64_t r = 0; rows.HasGaps() && r < rows.count; ++r) {
    const auto begin = memory.begin() + (r * rows.pitch + rows.elements) * size,
               end = memory.begin() + (r + 1) * rows.pitch * size;
    if (!std::all_of(begin, end, [gap](uint8_t byte) { return byte == gap; })) return false;
  }
  return true;
}

uint8_t PoisonByte(const Parameter& parameter, uint64_t key) {
  return Info(parameter.dtype).is_floating ? 0xff : static_cast<uint8_t>(0x80 | RandomBits(key, 0));
}

}  // namespace kgrpo::evaluator
