// Timer::Summarise: combines the rounds, and checks whether the calls can really take the measured time.
#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <sstream>

#include "evaluator_cuda/placements.h"
#include "evaluator_cuda/rounds.h"
#include "evaluator_cuda/timer.h"

namespace kgrpo::evaluator_cuda {
namespace {

constexpr double kHiddenRatio = 1.5;     // the evaluator's clock over the worker's events
constexpr double kHiddenSeconds = 5e-6;  // below, a difference is launch overhead
// For longer calls, two batches of the reference differ by more than it takes to start one.
constexpr double kLongCall = 0.2e-3;

std::string MicrosecondsText(double seconds) {
  std::ostringstream text;
  text.precision(4);
  text << seconds * 1e6 << " us";
  return text.str();
}

}  // namespace

Trouble Timer::Summarise(const std::vector<Sample>& samples, uint64_t fewest_rounds, bool allocated,
                         Timing* timing) const {
  const auto throttled = static_cast<uint64_t>(
      std::count_if(samples.begin(), samples.end(), [](const Sample& sample) { return sample.throttled; }));
  // A device that is throttled all the time is throttled for both: then nothing is dropped.
  const bool drop = samples.size() - throttled >= fewest_rounds;
  timing->dropped_rounds = drop ? throttled : 0;
  timing->throttled_rounds = throttled;
  std::vector<double> ratios, candidates, references, events, clock_values;
  std::vector<double> starts;  // of the reference's batches
  std::vector<RoundRest> candidate_rests, reference_rests;
  for (const Sample& sample : samples) {
    if (drop && sample.throttled) continue;
    ++timing->rounds;
    if (sample.candidate > 0 && sample.reference > 0) ratios.push_back(sample.reference / sample.candidate);
    candidates.push_back(sample.candidate);
    references.push_back(sample.reference);
    events.push_back(sample.event);
    if (sample.candidate_rest.leading > 0) candidate_rests.push_back(sample.candidate_rest);
    starts.push_back(sample.reference_start);
    if (sample.reference_rest.leading > 0) reference_rests.push_back(sample.reference_rest);
    if (sample.megahertz > 0) clock_values.push_back(sample.megahertz);
  }
  // Noise can make the slope of very short calls negative now and then.
  const auto flat = [](const std::vector<double>& slopes) {
    return static_cast<size_t>(std::count_if(slopes.begin(), slopes.end(), [](double slope) { return slope <= 0; }));
  };
  switch (
      WhoseRoundsAreFlat(flat(candidates), flat(references), candidates.size() - ratios.size(), candidates.size())) {
    case FlatRounds::kFew: break;
    case FlatRounds::kOfCandidate:
      return {"hidden_work",
              "A batch of many calls takes no longer than one of few: the time is not spent in its calls."};
    case FlatRounds::kOfBoth:
      throw Error(KGRPO_ERROR_UNAVAILABLE,
                  "the calls are too short to be timed here: in most rounds noise exceeded the "
                  "time of the candidate's calls and of the reference's. If other programs use "
                  "the processor or the device, stop them; else take a larger timing size");
  }
  timing->ratio = MedianOf(ratios);
  timing->candidate = MedianOf(candidates);
  timing->reference = MedianOf(references);
  timing->candidate_event_seconds = MedianOf(events).value;
  const Rests rests = PairRests(candidate_rests);
  Rests of_reference = PairRests(reference_rests);
  timing->candidate_spread = PlacementSpread(rests.differences, timing->candidate.value);
  timing->reference_spread = PlacementSpread(of_reference.differences, timing->reference.value);
  // The reference's process is trusted, so its own events may tell what starting a batch takes.
  if (timing->reference.value > kLongCall) of_reference.seconds = starts;
  FirstCall first_call;
  if (!rests.seconds.empty() && !of_reference.seconds.empty())
    first_call = CompareFirstCalls(rests.seconds, of_reference.seconds, timing->candidate.value);
  timing->first_call_seconds = first_call.seconds;
  if (!clock_values.empty()) timing->clock_mhz = MedianOf(clock_values).value;
  const double seconds = timing->candidate.value, seen = timing->candidate_event_seconds;
  if (timing->gated && seen > kHiddenRatio * seconds && seen - seconds > kHiddenSeconds) {
    return {"hidden_work", "A call takes " + MicrosecondsText(seen) + " as the default stream sees it, but only " +
                               MicrosecondsText(seconds) +
                               " from the start of the clock: the kernel worked before the clock started."};
  }
  if (seconds > kHiddenRatio * seen && seconds - seen > kHiddenSeconds) {
    return {"hidden_work", "A call keeps the device busy for " + MicrosecondsText(seconds) +
                               ", but the default stream for only " + MicrosecondsText(seen) +
                               ": the default stream does not wait for all of its work."};
  }
  // A pool that gives its memory back at every synchronisation is filled again by the first call: that is honest.
  const bool allocates = std::any_of(samples.begin(), samples.end(), [](const Sample& s) { return s.allocates; });
  if (allocated && !problem_.allow_device_malloc) {
    return {"forbidden", "At the timing size the host code allocates device memory, which the problem does not allow."};
  }
  if (!allocates && first_call.does_others) {
    return {"hidden_work", "The first of several calls takes " + MicrosecondsText(timing->first_call_seconds) +
                               " longer than those after it, at " + MicrosecondsText(seconds) +
                               " each: it does work of the later calls, or the calls do not run one after another."};
  }
  return {};
}

}  // namespace kgrpo::evaluator_cuda
