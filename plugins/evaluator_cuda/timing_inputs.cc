#include "evaluator_cuda/timing_inputs.h"

#include <algorithm>

#include "evaluator_cuda/placements.h"
#include "judge/inputs/inputs.h"
#include "judge/problem/random.h"

namespace kgrpo::evaluator_cuda {

using evaluator::Bindings;
using evaluator::Distribution;
using evaluator::Parameter;
using evaluator::Role;

namespace {

// Public, and the same in every evaluation by design: every kernel is timed in the same places, also by another
// evaluator.
constexpr uint64_t kPlaceKey = 0x3b97d04ca8e2615f;
constexpr uint64_t kVariants = 4;
constexpr uint64_t kMostHalvings = 10;  // of a tensor, for the piece that changes

// Bytes by which a tensor may move: some memory pages for large tensors, and a small part of the whole for small ones.
uint64_t SlackOf(const evaluator::Problem& problem) {
  return std::clamp<uint64_t>(Layout(problem, problem.timing, 0).bytes() / 8, 16 * Layout::kAlignment,
                              uint64_t{4} << 20);
}

bool DrawnByTheHost(const Parameter& parameter) {
  return parameter.distribution.kind == Distribution::Kind::kPermutation ||
         parameter.distribution.kind == Distribution::Kind::kOffsets ||
         parameter.distribution.kind == Distribution::Kind::kTorchScript ||
         parameter.distribution.kind == Distribution::Kind::kSource;
}

Draw DrawOf(const Parameter& parameter, const Bindings& size, uint64_t key) {
  const Distribution& distribution = parameter.distribution;
  Draw draw;
  draw.key = key;
  switch (distribution.kind) {
    case Distribution::Kind::kNormal:
      draw.a = distribution.mean.value_or(0);
      draw.b = distribution.deviation.value_or(1);
      break;
    case Distribution::Kind::kLargeOffset:
      draw.a = distribution.offset;
      draw.b = distribution.deviation.value_or(1);
      break;
    case Distribution::Kind::kUniform:
      draw.kind = Draw::Kind::kUniform;
      draw.a = distribution.low->Evaluate(size);
      draw.b = distribution.high->Evaluate(size);
      break;
    case Distribution::Kind::kSparse:
      draw.kind = Draw::Kind::kSparse;
      draw.a = distribution.density;
      draw.chosen = evaluator::SubKey(key, 1);
      break;
    case Distribution::Kind::kDenormals:
      draw.kind = Draw::Kind::kDenormals;
      draw.a = distribution.ordinary;
      draw.chosen = evaluator::SubKey(key, 1);
      break;
    case Distribution::Kind::kExtremes:
      draw.kind = Draw::Kind::kExtremes;
      draw.infinities = distribution.infinities;
      draw.nans = distribution.nans;
      break;
    case Distribution::Kind::kConstant:
      draw.kind = Draw::Kind::kConstant;
      draw.a = distribution.value;
      break;
    case Distribution::Kind::kIntegers:
      draw.kind = Draw::Kind::kWhole;
      draw.low = distribution.low->EvaluateInteger(size);
      draw.range = static_cast<uint64_t>(distribution.high->EvaluateInteger(size) - draw.low) + 1;
      break;
    case Distribution::Kind::kPermutation:
    case Distribution::Kind::kOffsets:
    case Distribution::Kind::kTorchScript:
    case Distribution::Kind::kSource: break;  // DrawnByTheHost
  }
  return draw;
}

}  // namespace

TimingInputs::TimingInputs(const Device& device, const evaluator::Problem& problem, uint64_t key)
    : problem_(problem), key_(key), slack_(SlackOf(problem)), layout_(problem, problem.timing, slack_) {
  for (const Layout::Tensor& tensor : layout_.tensors()) {
    const Parameter& parameter = problem.parameters[tensor.parameter];
    if (parameter.role == Role::kOutput || !DrawnByTheHost(parameter)) continue;
    drawn_.push_back({tensor.parameter, {}});
    for (uint64_t variant = 0; variant < kVariants; ++variant) {
      const evaluator::Argument argument = evaluator::DrawTensor(
          parameter, problem.timing, evaluator::SubKey(evaluator::SubKey(key, variant), tensor.parameter), 0);
      void* const memory = device.Allocate(tensor.bytes, "allocating memory for timing inputs");
      drawn_.back().variants.push_back(memory);
      const std::vector<uint8_t> bytes =
          evaluator::SpreadRows(parameter.RowsAt(problem.timing), parameter.dtype, argument.bytes, kPoison);
      device.Write(memory, bytes.data(), bytes.size());
    }
  }
}

TimingInputs::~TimingInputs() {
  for (const Drawn& drawn : drawn_) {
    for (void* memory : drawn.variants) cudaFree(memory);
  }
}

uint64_t TimingInputs::SetBytes(const evaluator::Problem& problem) {
  return Layout(problem, problem.timing, SlackOf(problem)).bytes();
}

uint64_t TimingInputs::KeyOf(uint64_t round, uint64_t set) const {
  return evaluator::SubKey(evaluator::SubKey(key_, round), set);
}

uint64_t TimingInputs::Offset(uint64_t round, uint64_t set, const Layout::Tensor& tensor) const {
  const uint64_t place = evaluator::SubKey(evaluator::SubKey(kPlaceKey, round), set);
  const uint64_t bits = evaluator::RandomBits(place, tensor.parameter);
  const uint64_t first = set * set_bytes() + tensor.offset;
  const uint64_t period =
      (first + kPlacementPeriod - 1) / kPlacementPeriod + evaluator::UniformBelow(bits, slack_ / kPlacementPeriod - 1);
  return kPlacementPeriod * period + kPlacementPeriod / kPlacements * PlacementOf(set + tensor.parameter);
}

std::vector<Plan::Value> TimingInputs::Arguments(uint32_t memory, uint64_t round, uint64_t set) const {
  std::vector<Plan::Value> values = layout_.Arguments(memory, 0);
  for (const Layout::Tensor& tensor : tensors()) values[tensor.parameter].value = Offset(round, set, tensor);
  return values;
}

void TimingInputs::Put(uint8_t* memory, uint64_t round, uint64_t set, uint64_t content,
                       std::vector<DrawTask>* tasks) const {
  const uint64_t key = evaluator::SubKey(KeyOf(round, set), content);
  for (const Layout::Tensor& tensor : layout_.tensors()) {
    const Parameter& parameter = problem_.parameters[tensor.parameter];
    DrawTask task;
    task.target = memory + Offset(round, set, tensor);
    task.elements = static_cast<int64_t>(tensor.bytes);
    if (parameter.role == Role::kOutput) {
      task.draw.kind = Draw::Kind::kByte;
      task.draw.low = kPoison;
    } else if (DrawnByTheHost(parameter)) {
      const auto drawn = std::find_if(drawn_.begin(), drawn_.end(),
                                      [&](const Drawn& one) { return one.parameter == tensor.parameter; });
      task.draw.kind = Draw::Kind::kCopy;
      task.draw.source = drawn->variants[key % kVariants];
    } else {
      task.draw = DrawOf(parameter, problem_.timing, evaluator::SubKey(key, tensor.parameter));
      task.dtype = parameter.dtype;
      task.elements = tensor.elements;
    }
    tasks->push_back(task);
  }
}

void TimingInputs::Change(uint8_t* memory, uint64_t round, uint64_t set, uint64_t content,
                          std::vector<DrawTask>* tasks) const {
  const uint64_t key = evaluator::SubKey(evaluator::SubKey(KeyOf(round, set), content), ~uint64_t{0});
  for (const Layout::Tensor& tensor : layout_.tensors()) {
    const Parameter& parameter = problem_.parameters[tensor.parameter];
    if (parameter.role == Role::kOutput || DrawnByTheHost(parameter)) continue;
    const uint64_t own = evaluator::SubKey(key, tensor.parameter), place = evaluator::SubKey(own, 2);
    const auto elements = static_cast<uint64_t>(tensor.elements);
    const uint64_t halvings = evaluator::UniformBelow(evaluator::RandomBits(place, 0), kMostHalvings + 1);
    const uint64_t count = std::max<uint64_t>(1, elements >> halvings);
    const uint64_t first = evaluator::UniformBelow(evaluator::RandomBits(place, 1), elements - count + 1);
    const uint64_t bytes = first * evaluator::Info(parameter.dtype).size;
    DrawTask task;
    task.draw = DrawOf(parameter, problem_.timing, own);
    task.dtype = parameter.dtype;
    task.target = memory + Offset(round, set, tensor) + bytes;
    task.elements = static_cast<int64_t>(count);
    tasks->push_back(task);
  }
}

}  // namespace kgrpo::evaluator_cuda
