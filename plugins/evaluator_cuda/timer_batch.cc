// Timer's single batches: puts their inputs into place, runs and times them, and checks their outputs.
#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "evaluator_cuda/timer.h"

namespace kgrpo::evaluator_cuda {

using Clock = std::chrono::steady_clock;
using evaluator::Parameter;

namespace {

constexpr double kQueueSlackSeconds = 1e-3;  // for a processor that was busy
constexpr int kQueueAttempts = 5;
constexpr size_t kMostChanged = 4;
constexpr size_t kMostCopies = 12;  // some 3 us each, beside a GiB's 0.8 ms

}  // namespace

// The copies that put a batch's sets into place: of each set by itself for a short batch, of all memory otherwise,
// since every copy is a launch.
std::vector<PlanCopy> Timer::StagedSets(const std::vector<uint64_t>& sets) const {
  const uint64_t bytes = inputs_.set_bytes(), all_sets = sets_ * bytes;
  if (sets.size() > kMostCopies) return {{0, all_sets, all_sets}};
  std::vector<PlanCopy> copies;
  copies.reserve(sets.size() + 1);
  for (const uint64_t set : sets) copies.push_back({set * bytes, all_sets + set * bytes, bytes});
  return copies;
}

Trouble Timer::RunOnce(const Side& side, const std::vector<uint64_t>& sets, const std::vector<uint64_t>& changed,
                       Batch* batch) {
  ++content_;
  *batch = {};
  // With gates, the memory behind the sets holds the staged inputs, and then memory to flush the cache with.
  const uint64_t all_sets = sets_ * inputs_.set_bytes(), junk = 2 * all_sets;
  Plan plan;
  plan.gated = side.gated;
  plan.copy_memory = side.number;
  for (const uint64_t set : sets) plan.calls.push_back(inputs_.Arguments(side.number, round_, set));
  if (side.gated) {
    plan.staged = StagedSets(sets);
    plan.staged.push_back({junk, junk + device_.flush_bytes(), device_.flush_bytes()});
  }
  // The plan goes first: when the worker has it there is nothing yet to compute with.
  if (Trouble trouble = side.worker.Prepare(plan)) return trouble;
  device_.PreparePeek(PlacesIn(side, sets, &batch->poisoned));
  std::vector<DrawTask> tasks;
  for (const uint64_t set : sets)
    inputs_.Put(side.memory.data() + (side.gated ? all_sets : 0), round_, set, content_, &tasks);
  device_.Draw(tasks);
  if (!side.gated) device_.FlushCache();
  device_.Wait();
  Done done;
  bool as_planned = true;
  auto begin = Clock::now();
  if (side.gated) {
    if (Trouble trouble = side.worker.Queue(&as_planned)) return trouble;
    batch->queue_seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    // The limit uses the launches of the first calls, not of this batch. The worker reports this batch's launches after
    // the gate, when a hijacked process could already know that it wants this batch thrown away.
    const double most = kQueueSlackSeconds + kLaunchSeconds * static_cast<double>(side.launches * plan.calls.size());
    as_planned = as_planned && side.worker.Stage() && batch->queue_seconds < most;
    if (as_planned && !changed.empty()) {
      batch->at_gate = device_.Peek();
      tasks.clear();
      for (const uint64_t set : changed) inputs_.Change(side.memory.data(), round_, set, content_, &tasks);
      device_.Draw(tasks);
      device_.Wait();
    }
    begin = Clock::now();
  }
  if (Trouble trouble = side.gated ? side.worker.Finish(&done) : side.worker.Run(&done)) return trouble;
  batch->peeked = device_.Peek();
  batch->seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  batch->event_seconds = done.event_seconds;
  batch->allocates = done.allocations > 0;
  batch->launches = done.launches;
  batch->as_planned = as_planned;
  return {};
}

// Runs a batch, again if it was not launched ahead as planned. Calls that wait for the device, or whose host code takes
// long, cannot be launched ahead: after kQueueAttempts the side loses its gates and is timed with its launches. A busy
// processor looks the same, but only now and then.
Trouble Timer::RunBatch(Side* side, const std::vector<uint64_t>& sets, Batch* batch,
                        const std::vector<uint64_t>& changed) {
  for (int attempt = 0;; ++attempt) {
    side->gated = side->gated && attempt < kQueueAttempts;
    if (Trouble trouble = RunOnce(*side, sets, changed, batch)) return trouble;
    side->allocated = side->allocated || batch->allocates;
    if (!side->gated || batch->as_planned) return {};
  }
}

// Runs the reference on the last batch's inputs, changed or not, in memory that no candidate can read.
void Timer::ComputeElsewhere(const Side& check, const std::vector<uint64_t>& sets, bool changed) {
  Plan plan;
  std::vector<DrawTask> tasks, changes;
  for (const uint64_t set : sets) {
    inputs_.Put(check.memory.data(), round_, set, content_, &tasks);
    if (changed) inputs_.Change(check.memory.data(), round_, set, content_, &changes);
    plan.calls.push_back(inputs_.Arguments(check.number, round_, set));
  }
  device_.Draw(tasks);
  device_.Draw(changes);
  device_.Wait();
  Done done;
  ThrowOfReference(check.worker.Prepare(plan));
  ThrowOfReference(check.worker.Run(&done));
}

// Gives a call's outputs to checker.cc, with the inputs in `check`, where the candidate cannot change them.
Trouble Timer::CheckByChecker(const Side& candidate, const Side& check, uint64_t set) {
  std::vector<evaluator::Argument> arguments(problem_.parameters.size());
  std::vector<std::vector<uint8_t>> outputs(arguments.size());
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (!problem_.parameters[i].IsTensor())
      arguments[i] = evaluator::ScalarArgument(problem_.parameters[i], problem_.timing);
  }
  for (const Layout::Tensor& tensor : inputs_.tensors()) {
    const Parameter& parameter = problem_.parameters[tensor.parameter];
    const uint8_t* const memory = (parameter.IsWritten() ? candidate : check).memory.data();
    std::vector<uint8_t> bytes(tensor.bytes);
    device_.Read(bytes.data(), memory + inputs_.Offset(round_, set, tensor), bytes.size());
    bytes = evaluator::GatherRows(parameter.RowsAt(problem_.timing), parameter.dtype, std::move(bytes));
    arguments[tensor.parameter].elements = parameter.Elements(problem_.timing);
    (parameter.IsWritten() ? outputs[tensor.parameter] : arguments[tensor.parameter].bytes) = std::move(bytes);
  }
  const evaluator::Checker::Result result = options_.checker->Check(problem_, arguments, outputs);
  return result.right ? Trouble{} : Trouble{"wrong", "At the timing size: " + result.sentence + "."};
}

// An output with too many elements that differ from the reference's by more than `bound`.
Trouble Timer::Mismatch(const Layout::Tensor& tensor, const CompareTask& task, evaluator::ErrorBound bound,
                        uint64_t wrong) const {
  const Parameter& parameter = problem_.parameters[tensor.parameter];
  const evaluator::DTypeInfo& info = evaluator::Info(parameter.dtype);
  const evaluator::Rows rows = parameter.RowsAt(problem_.timing);
  const int64_t worst = device_.Worst(task);
  if (worst % rows.pitch >= rows.elements)
    return {"out_of_bounds", "At the timing size it writes between the rows of " + parameter.name + "."};
  const uint64_t at = static_cast<uint64_t>(worst) * info.size;
  uint8_t value[8] = {}, expected[8] = {};
  device_.Read(value, static_cast<const uint8_t*>(task.got) + at, info.size);
  device_.Read(expected, static_cast<const uint8_t*>(task.want) + at, info.size);
  const double error = evaluator::ElementError(parameter, value, expected, parameter.dtype, bound);
  const std::string name = evaluator::ElementName(parameter, parameter.ShapeAt(problem_.timing),
                                                  worst / rows.pitch * rows.elements + worst % rows.pitch);
  const std::string text = "At the timing size " + std::to_string(wrong) + " of " +
                           std::to_string(rows.count * rows.elements) + " elements of " + parameter.name +
                           " differ from what the reference kernel makes of the same inputs; ";
  if (std::all_of(value, value + info.size, [](uint8_t byte) { return byte == TimingInputs::kPoison; }))
    return {"wrong", text + name + " was never written."};
  return {"wrong",
          text +
              evaluator::WorstText(parameter, name, evaluator::LoadDouble(parameter.dtype, value),
                                   evaluator::LoadDouble(parameter.dtype, expected), error, bound,
                                   problem_.tolerance.Differing(tensor.elements)) +
              ".",
          info.is_floating ? evaluator::WrongOutput{parameter.name, error} : evaluator::WrongOutput()};
}

// Compares the candidate's outputs, and with `inputs_too` its inputs, with the memory of `check`.
Trouble Timer::CheckOutputs(const Side& candidate, const Side& check, const std::vector<uint64_t>& sets,
                            bool inputs_too) {
  std::vector<CompareTask> tasks;
  std::vector<std::pair<const Layout::Tensor*, evaluator::ErrorBound>> compared;  // of each task
  for (const uint64_t set : sets) {
    if (options_.checker != nullptr) {
      if (Trouble trouble = CheckByChecker(candidate, check, set)) return trouble;
    }
    size_t output = 0;
    for (const Layout::Tensor& tensor : inputs_.tensors()) {
      const Parameter& parameter = problem_.parameters[tensor.parameter];
      const evaluator::ErrorBound bound = parameter.IsWritten() ? bounds_[output++] : evaluator::ErrorBound{};
      if (parameter.IsWritten() ? options_.checker != nullptr : !inputs_too) continue;
      const uint64_t offset = inputs_.Offset(round_, set, tensor);
      tasks.push_back({parameter.dtype, candidate.memory.data() + offset, check.memory.data() + offset, tensor.elements,
                       bound.relative, bound.absolute});
      compared.emplace_back(&tensor, bound);
    }
  }
  const std::vector<unsigned long long> mismatches = device_.Mismatches(tasks);
  for (size_t i = 0; i < mismatches.size(); ++i) {
    const auto& [tensor, bound] = compared[i];
    const Parameter& parameter = problem_.parameters[tensor->parameter];
    const int64_t differing = parameter.IsWritten() ? problem_.tolerance.Differing(tensor->elements) : 0;
    if (mismatches[i] <= static_cast<uint64_t>(differing)) continue;
    if (!parameter.IsWritten())
      return {"input_modified", "At the timing size the input " + parameter.name + " was overwritten."};
    return Mismatch(*tensor, tasks[i], bound, mismatches[i]);
  }
  return {};
}

Trouble Timer::CheckTrials(Side candidate, const Side& check, uint64_t trials) {
  for (uint64_t trial = 0; trial < trials; ++trial) {
    ++round_;
    const std::vector<uint64_t> sets = {trial % sets_};
    Batch batch;
    if (Trouble trouble = RunBatch(&candidate, sets, &batch)) return trouble;
    ComputeElsewhere(check, sets, false);
    if (Trouble trouble = CheckOutputs(candidate, check, sets, false)) return trouble;
  }
  return {};
}

// A few bytes of an output of every set.
std::vector<Place> Timer::PlacesIn(const Side& side, const std::vector<uint64_t>& sets,
                                   std::vector<uint64_t>* poisoned) {
  std::vector<const Layout::Tensor*> written;
  for (const Layout::Tensor& tensor : inputs_.tensors()) {
    if (problem_.parameters[tensor.parameter].IsWritten()) written.push_back(&tensor);
  }
  std::vector<Place> places;
  for (const uint64_t set : sets) {
    const Layout::Tensor& tensor = *written[Random(written.size())];
    const uint64_t bytes = std::min<uint64_t>(kPeekBytes, tensor.bytes);
    places.push_back(
        {side.memory.data() + inputs_.Offset(round_, set, tensor) + Random(tensor.bytes - bytes + 1), bytes});
    poisoned->push_back(problem_.parameters[tensor.parameter].role == evaluator::Role::kOutput ? bytes : 0);
  }
  return places;
}

// Chooses the calls whose outputs are compared: the last one, a random one, and some whose peeked bytes still hold
// poison. If the reference is slow, which computes them again, it takes only one of the first two.
std::vector<uint64_t> Timer::LookedAt(const std::vector<uint64_t>& sets, const std::vector<uint8_t>& early) {
  std::vector<uint64_t> looked_at;
  const auto add = [&](uint64_t set) {
    if (std::find(looked_at.begin(), looked_at.end(), set) == looked_at.end()) looked_at.push_back(set);
  };
  const uint64_t any = sets[Random(sets.size())];
  const bool last = !slow_reference_ || Random(2) == 0;
  if (last) add(sets.back());
  if (!last || !slow_reference_) add(any);
  for (size_t i = 0; i < sets.size() && looked_at.size() < 4; ++i) {
    const auto begin = early.begin() + static_cast<std::ptrdiff_t>(i * kPeekBytes);
    if (*begin == TimingInputs::kPoison && std::count(begin, begin + kPeekBytes, TimingInputs::kPoison) >= 4)
      add(sets[i]);
  }
  return looked_at;
}

// Runs a batch of the candidate's. The bytes read when the clock stopped must not change afterwards. The outputs and
// inputs of some calls are compared as a whole.
Trouble Timer::RunAndCheck(Side* candidate, const Side& check, const std::vector<uint64_t>& sets, Batch* batch) {
  if (Trouble trouble = RunBatch(candidate, sets, batch)) return trouble;
  const std::vector<uint64_t> looked_at = LookedAt(sets, batch->peeked);
  ComputeElsewhere(check, looked_at, false);
  if (Trouble trouble = CheckOutputs(*candidate, check, looked_at, true)) return trouble;
  if (device_.Peek() == batch->peeked) return {};
  return {"unfinished", "An output still changed after the worker reported that the device was idle."};
}

// Runs a batch that looks like a timed one until its device stands at the gate. Nothing may be written by then. Then
// pieces of some inputs change: a candidate that computed early used the old values, wherever it put the results. The
// size of the pieces is not known to it, so reading a few elements again does not reveal the change.
Trouble Timer::CheckNothingIsEarly(Side* candidate, const Side& check, const std::vector<uint64_t>& sets,
                                   Timing* timing) {
  std::vector<uint64_t> changed = {sets.back()};
  while (changed.size() < std::min(kMostChanged, sets.size())) {
    const uint64_t set = sets[Random(sets.size())];
    if (std::find(changed.begin(), changed.end(), set) == changed.end()) changed.push_back(set);
  }
  Batch batch;
  if (Trouble trouble = RunBatch(candidate, sets, &batch, changed)) return trouble;
  if (!candidate->gated) return {};
  ++timing->early_checks;
  for (size_t i = 0; i < batch.poisoned.size(); ++i) {
    const auto begin = batch.at_gate.begin() + static_cast<std::ptrdiff_t>(i * kPeekBytes);
    if (std::all_of(begin, begin + static_cast<std::ptrdiff_t>(batch.poisoned[i]),
                    [](uint8_t byte) { return byte == TimingInputs::kPoison; }))
      continue;
    return {"unsynchronised",
            "At the timing size an output was written before the default stream had come to the first call: the work "
            "does not wait for the default stream."};
  }
  ComputeElsewhere(check, changed, true);
  const Trouble trouble = CheckOutputs(*candidate, check, changed, true);
  if (trouble.code != "wrong") return trouble;
  ComputeElsewhere(check, changed, false);
  if (CheckOutputs(*candidate, check, changed, false)) return trouble;
  return {"unsynchronised",
          "At the timing size, where inputs change just before the default stream comes to the first call, it computes "
          "with what was there before: the work does not wait for the default stream."};
}

}  // namespace kgrpo::evaluator_cuda
