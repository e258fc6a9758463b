#include "evaluator_cuda/timer.h"

#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "evaluator_shared/random.h"

namespace kgrpo::evaluator_cuda {

using evaluator::Parameter;

namespace {

constexpr uint64_t kMostSets = 96;
constexpr uint64_t kFewestSets = 4;
constexpr double kBatchSeconds = 2e-3;  // a long batch, where the sets suffice: host noise is microseconds
constexpr uint64_t kFewestRounds = 8;   // fewer give no 95% interval worth the name
constexpr uint64_t kMostRounds = 400;
constexpr uint64_t kPeekBytes = 256;
constexpr double kHiddenRatio = 1.5;     // the judge's clock over the worker's events
constexpr double kHiddenSeconds = 5e-6;  // below, a difference is launch overhead

}  // namespace

Timer::Timer(const Device& device, Clocks& clocks, const evaluator::Problem& problem, const TimingInputs& inputs,
             std::vector<evaluator::ErrorBound> bounds, const TimingOptions& options, uint64_t key)
    : device_(device),
      clocks_(clocks),
      problem_(problem),
      inputs_(inputs),
      bounds_(std::move(bounds)),
      options_(options),
      key_(key),
      sets_(std::clamp(options.memory_bytes / inputs.set_bytes(), kFewestSets, kMostSets)) {}

uint64_t Timer::Random(uint64_t bound) {
  return evaluator::UniformBelow(evaluator::RandomBits(key_, drawn_++), bound);
}

std::vector<uint64_t> Timer::Shuffled(uint64_t count) {
  std::vector<uint64_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  for (uint64_t i = count; i > 1; --i) std::swap(order[i - 1], order[Random(i)]);
  return order;
}

void Timer::ThrowOfBaseline(const Trouble& trouble) const {
  if (!trouble) return;
  throw Error(KGRPO_ERROR_INVALID,
              problem_.directory + "/reference.cu: at the timing size: " + trouble.code + ": " + trouble.sentence);
}

Trouble Timer::RunBatch(const Side& side, const std::vector<uint64_t>& sets, Batch* batch) {
  ++content_;
  Plan plan;
  for (const uint64_t set : sets) {
    inputs_.Put(side.memory.data(), round_, set, content_);
    plan.calls.push_back(inputs_.Arguments(side.number, round_, set));
  }
  if (Trouble trouble = side.worker.Prepare(plan)) return trouble;
  device_.FlushCache();
  device_.Wait();
  Done done;
  if (Trouble trouble = side.worker.Run(&done, &batch->seconds)) return trouble;
  batch->event_seconds = done.event_seconds;
  return {};
}

// Seconds of a call, roughly; the first calls at this size are made here too.
Trouble Timer::Estimate(const Side& side, double* seconds) {
  Batch one, four;
  for (int i = 0; i < 2; ++i) {
    if (Trouble trouble = RunBatch(side, {0}, &one)) return trouble;
    if (Trouble trouble = RunBatch(side, {0, 1, 2, 3}, &four)) return trouble;
  }
  *seconds = std::max(1e-6, (four.seconds - one.seconds) / 3);
  return {};
}

// Compares the candidate's outputs with what the baseline makes of the same inputs, untimed and elsewhere.
Trouble Timer::CheckOutputs(const Side& candidate, const Side& check, const std::vector<uint64_t>& sets,
                            uint64_t content) {
  Plan plan;
  for (const uint64_t set : sets) {
    inputs_.Put(check.memory.data(), round_, set, content);
    plan.calls.push_back(inputs_.Arguments(check.number, round_, set));
  }
  device_.Wait();
  Done done;
  double seconds = 0;
  ThrowOfBaseline(check.worker.Prepare(plan));
  ThrowOfBaseline(check.worker.Run(&done, &seconds));
  for (const uint64_t set : sets) {
    size_t output = 0;
    for (const Layout::Tensor& tensor : inputs_.tensors()) {
      const Parameter& parameter = problem_.parameters[tensor.parameter];
      if (!parameter.IsWritten()) continue;
      const evaluator::ErrorBound& bound = bounds_[output++];
      const uint64_t offset = inputs_.Offset(round_, set, tensor);
      const uint64_t wrong =
          device_.Mismatches(parameter.dtype, candidate.memory.data() + offset, check.memory.data() + offset,
                             tensor.elements, 2 * bound.relative, 2 * bound.absolute);
      if (wrong == 0) continue;
      return {"wrong", "At the timing size, in a call that was timed, " + std::to_string(wrong) + " of " +
                           std::to_string(tensor.elements) + " elements of " + parameter.name +
                           " differ from what the reference kernel makes of the same inputs."};
    }
  }
  return {};
}

// A batch of the candidate's. Right after its worker says that it is done a few bytes of the last call's outputs are
// read: they must not change any more. Then the last call and one at random are looked at.
Trouble Timer::RunAndCheck(const Side& candidate, const Side& check, const std::vector<uint64_t>& sets, Batch* batch) {
  if (Trouble trouble = RunBatch(candidate, sets, batch)) return trouble;
  std::vector<const Layout::Tensor*> written;
  for (const Layout::Tensor& tensor : inputs_.tensors()) {
    if (problem_.parameters[tensor.parameter].IsWritten()) written.push_back(&tensor);
  }
  const Layout::Tensor& tensor = *written[Random(written.size())];
  const uint64_t bytes = std::min(kPeekBytes, tensor.bytes);
  const uint8_t* const at =
      candidate.memory.data() + inputs_.Offset(round_, sets.back(), tensor) + Random(tensor.bytes - bytes + 1);
  std::vector<uint8_t> early(bytes), late(bytes);
  device_.Read(early.data(), at, bytes);
  std::vector<uint64_t> looked_at = {sets.back()};
  if (const uint64_t other = sets[Random(sets.size())]; other != sets.back()) looked_at.push_back(other);
  if (Trouble trouble = CheckOutputs(candidate, check, looked_at, content_)) return trouble;
  device_.Read(late.data(), at, bytes);
  if (early == late) return {};
  return {"unfinished", "An output changed after the launch function's work was said to be done."};
}

Trouble Timer::Measure(Side candidate, Side baseline, Side check, Timing* timing) {
  double candidate_seconds = 0, baseline_seconds = 0;
  ThrowOfBaseline(Estimate(baseline, &baseline_seconds));
  if (Trouble trouble = Estimate(candidate, &candidate_seconds)) return trouble;

  // Long and short batches of a round share no set: a quarter of them is for the short ones.
  const uint64_t short_most = std::max<uint64_t>(1, sets_ / 4), long_most = sets_ - short_most;
  const auto long_calls = [&](double seconds) {
    return std::clamp<uint64_t>(static_cast<uint64_t>(std::ceil(kBatchSeconds / seconds)), 3, long_most);
  };
  const uint64_t candidate_long = long_calls(candidate_seconds), baseline_long = long_calls(baseline_seconds);
  // How many calls a batch has is drawn for each, so that nobody can know which one is its last.
  const auto draw_long = [&](uint64_t most) { return most - Random(most / 4 + 1); };
  const auto draw_short = [&](uint64_t most) { return 1 + Random(std::clamp<uint64_t>(most / 4, 1, short_most)); };

  std::vector<double> ratios, candidates, baselines, events, clock_values;
  double used = 0;
  while (timing->rounds + timing->dropped_rounds < kMostRounds) {
    ++round_;
    const std::vector<uint64_t> order = Shuffled(sets_);
    const auto sets_of = [&](uint64_t calls, bool is_long) {
      const auto begin = order.begin() + static_cast<std::ptrdiff_t>(is_long ? 0 : long_most);
      return std::vector<uint64_t>(begin, begin + static_cast<std::ptrdiff_t>(calls));
    };
    const uint64_t calls[2][2] = {{draw_short(candidate_long), draw_long(candidate_long)},
                                  {draw_short(baseline_long), draw_long(baseline_long)}};
    Batch batches[2][2];
    for (const uint64_t turn : Shuffled(4)) {
      const bool is_baseline = turn / 2 == 1, is_long = turn % 2 == 1;
      const std::vector<uint64_t> sets = sets_of(calls[turn / 2][turn % 2], is_long);
      Batch& batch = batches[turn / 2][turn % 2];
      if (is_baseline) {
        ThrowOfBaseline(RunBatch(baseline, sets, &batch));
      } else if (Trouble trouble = RunAndCheck(candidate, check, sets, &batch)) {
        return trouble;
      }
      used += batch.seconds;
    }

    const auto slope = [&](int side, double Batch::*clock) {
      return (batches[side][1].*clock - batches[side][0].*clock) / static_cast<double>(calls[side][1] - calls[side][0]);
    };
    const Clocks::Reading reading = clocks_.Read();
    if (reading.throttled) {
      ++timing->dropped_rounds;
    } else {
      ++timing->rounds;
      timing->calls += calls[0][0] + calls[0][1];
      if (reading.known) clock_values.push_back(reading.megahertz);
      const double c = slope(0, &Batch::seconds), b = slope(1, &Batch::seconds);
      // Noise can make a slope of very short calls negative; such a round says nothing of the ratio but that they are
      // short.
      if (c > 0 && b > 0) ratios.push_back(b / c);
      candidates.push_back(c);
      baselines.push_back(b);
      events.push_back(slope(0, &Batch::event_seconds));
    }
    const bool enough = ratios.size() >= kFewestRounds && MedianOf(ratios).RelativeError() <= options_.relative_error;
    if (enough || (used > options_.budget_seconds && ratios.size() >= kFewestRounds)) break;
    if (used > 10 * options_.budget_seconds) break;
  }
  if (ratios.empty()) {
    throw Error(KGRPO_ERROR_UNAVAILABLE, "the device was throttled in all of " +
                                             std::to_string(timing->dropped_rounds) +
                                             " rounds of timing: see to its cooling and power");
  }
  timing->ratio = MedianOf(ratios);
  timing->candidate = MedianOf(candidates);
  timing->baseline = MedianOf(baselines);
  timing->candidate_event_seconds = MedianOf(events).value;
  timing->sets = sets_;
  if (!clock_values.empty()) timing->clock_mhz = MedianOf(clock_values).value;
  const double seconds = timing->candidate.value, seen = timing->candidate_event_seconds;
  if (seconds > kHiddenRatio * seen && seconds - seen > kHiddenSeconds) {
    return {"hidden_work",
            "A call takes " + std::to_string(seconds * 1e6) + " us until its device has nothing left to do, but only " +
                std::to_string(seen * 1e6) +
                " us as the default stream sees it: there is work that the default stream does not wait for."};
  }
  return {};
}

}  // namespace kgrpo::evaluator_cuda
