#include "evaluator_cuda/timer.h"

#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <utility>

#include "judge/problem/random.h"

namespace kgrpo::evaluator_cuda {

using Clock = std::chrono::steady_clock;

namespace {

constexpr uint64_t kMostSets = 96;
constexpr uint64_t kLargeSet = uint64_t{2} << 30;  // bytes, which take a millisecond to read
constexpr double kBatchSeconds = 2e-3;             // a long batch, where the sets suffice: host noise is microseconds
constexpr uint64_t kMostRounds = 400;
constexpr uint64_t kEarlyChecks = 4;            // expected in the fewest rounds; later checks are rarer
constexpr uint64_t kApart = uint64_t{1} << 32;  // between the round number of such a check and those of timed rounds
constexpr uint64_t kMostLaunches = 600;         // that may wait for the device; the driver takes some 1,000
constexpr uint64_t kFewestGatedSets = 16;
constexpr double kPatience = 10;  // budgets; after them, throttled rounds are accepted

// Gives gates to all pairs or to none. Candidates keep theirs only if the references do.
void LevelGates(std::vector<Pair>* pairs) {
  const bool references =
      std::all_of(pairs->begin(), pairs->end(), [](const Pair& pair) { return pair.reference.gated; });
  const bool candidates =
      references && std::all_of(pairs->begin(), pairs->end(), [](const Pair& pair) { return pair.candidate.gated; });
  for (Pair& pair : *pairs) {
    pair.reference.gated = references;
    pair.candidate.gated = candidates;
  }
}

}  // namespace

Timer::Timer(Device& device, Clocks& clocks, const evaluator::Problem& problem, const TimingInputs& inputs,
             std::vector<evaluator::ErrorBound> bounds, const TimingOptions& options, uint64_t key, uint64_t order_key)
    : device_(device),
      clocks_(clocks),
      problem_(problem),
      inputs_(inputs),
      bounds_(std::move(bounds)),
      options_(options),
      key_(key),
      order_key_(order_key),
      sets_(std::clamp(options.memory_bytes / inputs.set_bytes(), FewestSets(inputs.set_bytes()), kMostSets)) {}

uint64_t Timer::FewestSets(uint64_t set_bytes) { return set_bytes < kLargeSet ? kUsualSets : kPlacements; }

uint64_t Timer::Random(uint64_t bound) { return evaluator::UniformBelow(evaluator::RandomBits(key_, drawn_++), bound); }

std::vector<uint64_t> Timer::Shuffled(uint64_t count) {
  std::vector<uint64_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  for (uint64_t i = count; i > 1; --i) std::swap(order[i - 1], order[Random(i)]);
  return order;
}

void Timer::ThrowOfReference(const Trouble& trouble) const {
  if (!trouble) return;
  throw Error(KGRPO_ERROR_INVALID,
              problem_.directory + "/reference.cu: at the timing size: " + trouble.code + ": " + trouble.sentence);
}

// Estimates seconds and launches of a call, by the first calls at this size.
Trouble Timer::Estimate(Side* side, Rough* rough) {
  Batch one, four;
  // The minimum of several runs: an estimate that is too high makes batches too short to measure well, one that is too
  // low only costs a little time.
  double least_one = 0, least_four = 0;
  for (int i = 0; i < 3; ++i) {
    if (Trouble trouble = RunBatch(side, {0}, &one)) return trouble;
    least_one = i == 0 ? one.seconds : std::min(least_one, one.seconds);
    *rough = {least_one, std::max<uint64_t>(1, one.launches)};
    if (i > 0 && IsSlow(*rough)) break;  // the first call also loads its code
    if (IsSlow(*rough)) continue;
    if (Trouble trouble = RunBatch(side, {0, 1, 2, 3}, &four)) return trouble;
    least_four = least_four == 0 ? four.seconds : std::min(least_four, four.seconds);
    *rough = {std::max(1e-6, (least_four - least_one) / 3), std::max<uint64_t>(1, four.launches / 4)};
  }
  side->launches = rough->launches;
  return {};
}

// Uses gates where a call of either side seems to take no longer than its launches, if gates work and memory has room
// for the sets. The reference has them even where the candidate cannot, so that no candidate chooses what it is
// compared with. The candidate has them only if the reference does. A side that makes streams has none: a gate holds up
// the default stream only.
Trouble Timer::DecideGates(Side* candidate, const Rough& of_candidate, Side* reference, const Rough& of_reference) {
  const auto launch_bound = [](const Rough& rough) {
    return rough.seconds < kLaunchSeconds * static_cast<double>(rough.launches);
  };
  const auto fits = [](const Side& side, const Rough& rough) {
    return side.worker.no_gates().empty() && side.worker.connections() == kFewConnections &&
           rough.launches <= kMostLaunches / 8;
  };
  const uint64_t memory = std::min(candidate->memory.bytes(), reference->memory.bytes());
  const uint64_t flush = 2 * device_.flush_bytes();
  const uint64_t sets = memory > flush ? (memory - flush) / 2 / inputs_.set_bytes() : 0;
  if (sets < kFewestGatedSets || !fits(*reference, of_reference) ||
      !(launch_bound(of_candidate) || launch_bound(of_reference)))
    return {};
  const uint64_t all_sets = std::exchange(sets_, std::min(sets_, sets));
  Batch tried;
  reference->gated = true;
  ThrowOfReference(RunBatch(reference, {0, 1, 2, 3}, &tried));
  if (!reference->gated) {
    sets_ = all_sets;
    return {};
  }
  candidate->gated = fits(*candidate, of_candidate);
  return RunBatch(candidate, {0, 1, 2, 3}, &tried);
}

// The launches of one process cost the device up to 3% more or less than those of another, for its whole life. It
// depends on where the driver placed its data (notes/). If launches are a large part of a call, several processes
// of either side take turns: as many as there is room for, gated as the first pair.
Trouble Timer::AddPairs(const Rough& of_candidate, const Rough& of_reference, const AddPair& add_pair,
                        std::vector<Pair>* pairs) {
  const auto share = [](const Side& side, const Rough& rough) {
    return side.worker.launch_seconds() * static_cast<double>(rough.launches) / rough.seconds;
  };
  const Pair& first = pairs->front();
  if (!first.candidate.gated ||
      std::max(share(first.candidate, of_candidate), share(first.reference, of_reference)) < kLaunchShare)
    return {};
  while (pairs->size() < options_.most_pairs) {
    const size_t before = pairs->size();
    if (Trouble trouble = add_pair(pairs)) return trouble;
    if (pairs->size() == before) return {};
    Pair& pair = pairs->back();
    // As in the first pair, calls are launched ahead only after some have run without gates.
    Rough rough;
    Batch tried;
    ThrowOfReference(Estimate(&pair.reference, &rough));
    if (Trouble trouble = Estimate(&pair.candidate, &rough)) return trouble;
    pair.candidate.gated = pair.candidate.worker.no_gates().empty();
    pair.reference.gated = pair.reference.worker.no_gates().empty();
    ThrowOfReference(RunBatch(&pair.reference, {0, 1, 2, 3}, &tried));
    if (Trouble trouble = RunBatch(&pair.candidate, {0, 1, 2, 3}, &tried)) return trouble;
    if (!pair.candidate.gated || !pair.reference.gated) {
      pairs->pop_back();
      return {};
    }
  }
  return {};
}

// Returns the number of calls in a long batch.
uint64_t Timer::LongCalls(const Rough& rough, uint64_t most) const {
  const auto calls = static_cast<uint64_t>(std::ceil(kBatchSeconds / rough.seconds));
  return std::clamp<uint64_t>(std::min(calls, kMostLaunches / rough.launches), 3, most);
}

// Draws the numbers of calls in the two batches of a round. They are random, so that no call can know that it is the
// last one. The long batch has equally many more calls than the short one at each placement.
Timer::Calls Timer::DrawCalls(const Rough& rough) {
  if (IsVerySlow(rough)) return {0, 1};
  if (IsSlow(rough)) return {0, kPlacements};
  const uint64_t short_most = std::max<uint64_t>(1, sets_ / 4), most = LongCalls(rough, sets_ - short_most);
  const uint64_t few = 1 + Random(std::clamp<uint64_t>(most / 4, 1, short_most));
  const uint64_t more = (most - Random(most / 4 + 1) - few) / kPlacements * kPlacements;
  return {few, few + std::max(more, kPlacements)};
}

// Returns the sets of one of a round's batches. The placement of the short batch, with which the long one begins,
// alternates by round. The order depends on the evaluator's secret and on the round: an evaluator times every kernel in
// the same places, and no kernel knows which of them comes next.
std::vector<uint64_t> Timer::TakeSets(const Calls& calls, bool is_long) const {
  const uint64_t key = evaluator::SubKey(order_key_, round_);
  std::vector<uint64_t> sets(sets_);
  std::iota(sets.begin(), sets.end(), 0);
  for (uint64_t i = sets_; i > 1; --i)
    std::swap(sets[i - 1], sets[evaluator::UniformBelow(evaluator::RandomBits(key, i), i)]);
  sets = OrderByPlacement(sets, calls.few, round_ % kPlacements);
  sets.resize(is_long ? calls.many : calls.few);
  return sets;
}

Trouble Timer::Measure(const Pair& first, const Side& check, const AddPair& add_pair, Timing* timing) {
  std::vector<Pair> pairs = {first};
  Rough of_candidate, of_reference;
  ThrowOfReference(Estimate(&pairs[0].reference, &of_reference));
  if (Trouble trouble = Estimate(&pairs[0].candidate, &of_candidate)) return trouble;
  if (Trouble trouble = DecideGates(&pairs[0].candidate, of_candidate, &pairs[0].reference, of_reference))
    return trouble;
  if (Trouble trouble = AddPairs(of_candidate, of_reference, add_pair, &pairs)) return trouble;
  LevelGates(&pairs);

  slow_reference_ = IsSlow(of_reference);
  const bool slow = IsSlow(of_candidate) || slow_reference_, very_slow = IsVerySlow(of_reference);
  const uint64_t fewest_rounds = options_.fewest_rounds / (very_slow ? 4 : slow ? 2 : 1);
  std::vector<Sample> samples;
  std::vector<double> ratios;  // of rounds that were not throttled
  double used = 0;
  while (samples.size() < kMostRounds) {
    ++round_;
    auto& [candidate, reference] = pairs[samples.size() % pairs.size()];
    const bool gated = candidate.gated, reference_gated = reference.gated;
    // A batch's time beside its calls can be compared only if both sides are launched alike.
    Side alike = reference;
    alike.gated = gated;
    Side* const references[2] = {&reference, &alike};
    const uint64_t sides = gated == reference_gated ? 2 : 3;
    Calls calls[3] = {DrawCalls(of_candidate)};
    for (uint64_t side = 1; side < sides; ++side) calls[side] = DrawCalls(of_reference);
    Batch batches[3][2];
    // One of a candidate's long batches checks whether it waits for the gate at all; the candidate cannot know which.
    const bool looks = gated && Random(std::max(fewest_rounds, round_)) < kEarlyChecks;
    for (const uint64_t turn : Shuffled(2 * sides + (looks ? 1 : 0))) {
      const uint64_t side = turn / 2;
      const bool is_long = turn % 2 == 1;
      if (side == sides) {
        const uint64_t round = std::exchange(round_, round_ + kApart);
        const Trouble trouble = CheckNothingIsEarly(&candidate, check, TakeSets(DrawCalls(of_candidate), true), timing);
        round_ = round;
        if (trouble) return trouble;
        continue;
      }
      if (!is_long && calls[side].few == 0) continue;
      const std::vector<uint64_t> sets = TakeSets(calls[side], is_long);
      Batch& batch = batches[side][turn % 2];
      if (side > 0) {
        ThrowOfReference(RunBatch(references[side - 1], sets, &batch));
      } else if (Trouble trouble = RunAndCheck(&candidate, check, sets, &batch)) {
        return trouble;
      }
      used += batch.queue_seconds + batch.seconds;
    }
    LevelGates(&pairs);
    if (gated != candidate.gated || reference_gated != reference.gated) {
      // Samples measured behind gates cannot be compared with those that follow.
      samples.clear();
      ratios.clear();
      continue;
    }
    // A missing short batch counts as one of no calls that takes no time.
    const auto slope = [&](uint64_t side, double Batch::*clock) {
      return (batches[side][1].*clock - batches[side][0].*clock) /
             static_cast<double>(calls[side].many - calls[side].few);
    };
    const auto rest = [&](uint64_t side) -> RoundRest {
      const double beside =
          batches[side][1].seconds - slope(side, &Batch::seconds) * static_cast<double>(calls[side].many);
      return {calls[side].few, round_ % kPlacements, beside};
    };
    const Clocks::Reading reading = clocks_.Read();
    samples.push_back({slope(0, &Batch::seconds), slope(1, &Batch::seconds), slope(0, &Batch::event_seconds), rest(0),
                       rest(sides - 1), batches[sides - 1][1].seconds - batches[sides - 1][1].event_seconds,
                       reading.throttled, reading.known ? reading.megahertz : 0, batches[0][1].allocates});
    timing->calls += calls[0].few + calls[0].many;
    const Sample& last = samples.back();
    if (!last.throttled && last.candidate > 0 && last.reference > 0) ratios.push_back(last.reference / last.candidate);
    if (IsPrecise(ratios, options_.precision, fewest_rounds)) break;
    if (ratios.size() >= fewest_rounds && used > options_.budget_seconds) break;
    if (used > kPatience * options_.budget_seconds && samples.size() >= fewest_rounds) break;
  }
  timing->sets = sets_;
  timing->pairs = pairs.size();
  timing->gated = pairs[0].candidate.gated;
  timing->reference_gated = pairs[0].reference.gated;
  timing->launch_seconds = first.candidate.worker.launch_seconds();
  timing->reference_launch_seconds = first.reference.worker.launch_seconds();
  timing->reference_launches = of_reference.launches;
  const bool allocated =
      std::any_of(pairs.begin(), pairs.end(), [](const Pair& pair) { return pair.candidate.allocated; });
  return Summarise(samples, fewest_rounds, allocated, timing);
}

double Timer::MeasureAlone(Side reference, const Timing& timing) {
  reference.gated = timing.reference_gated;
  const Rough rough = {timing.reference.value, timing.reference_launches};
  std::vector<double> seconds;
  round_ = 0;  // the places of the first rounds that were timed
  for (int i = 0; i < (IsVerySlow(rough) ? 1 : IsSlow(rough) ? 3 : 6); ++i) {
    ++round_;
    const Calls calls = DrawCalls(rough);
    Batch few, many;
    if (calls.few > 0) ThrowOfReference(RunBatch(&reference, TakeSets(calls, false), &few));
    ThrowOfReference(RunBatch(&reference, TakeSets(calls, true), &many));
    seconds.push_back((many.seconds - few.seconds) / static_cast<double>(calls.many - calls.few));
  }
  return MedianOf(seconds).value;
}

}  // namespace kgrpo::evaluator_cuda
