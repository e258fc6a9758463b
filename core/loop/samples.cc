#include "loop/samples.h"

#include <kgrpo/sdk/error.h>

#include <set>
#include <utility>

#include "base/keyed.h"
#include "loop/draws.h"

namespace kgrpo {

kgrpo_sample MakeSample(const TrajectoryRecord& trajectory, const RoundRecord& round) {
  kgrpo_sample sample{};
  sample.struct_size = sizeof(sample);
  sample.prompt_ids = round.prompt_ids.data();
  sample.prompt_size = round.prompt_ids.size();
  sample.completion_ids = round.completion_ids.data();
  sample.logprobs = round.logprobs.empty() ? nullptr : round.logprobs.data();
  sample.completion_size = round.completion_ids.size();
  sample.reward = round.reward;
  sample.idle_reward = round.idle_reward;
  sample.trajectory = trajectory.trajectory;
  sample.round = round.round;
  sample.rounds = trajectory.rounds;
  sample.problem = trajectory.problem;
  sample.truncated = round.truncated;
  return sample;
}

std::vector<kgrpo_sample> MakeSamples(const std::vector<TrajectoryRecord>& trajectories) {
  std::vector<kgrpo_sample> samples;
  ForEachSample(trajectories, [&](const TrajectoryRecord& trajectory, const RoundRecord& round) {
    samples.push_back(MakeSample(trajectory, round));
  });
  return samples;
}

void ShuffleRewards(std::vector<kgrpo_sample>& samples, uint64_t seed, uint64_t step) {
  const std::vector<size_t> order = KeyedStream(seed, "shuffle rewards", {step}).Permutation(samples.size());
  const std::vector<kgrpo_sample> before = samples;
  for (size_t i = 0; i < samples.size(); ++i) {
    samples[i].reward = before[order[i]].reward;
    samples[i].idle_reward = before[order[i]].idle_reward;
  }
}

Demonstrations::Demonstrations(std::vector<TrajectoryRecord> trajectories, const std::vector<std::string>& suggestions,
                               Policy& policy)
    : trajectories_(std::move(trajectories)) {
  for (const std::string& suggestion : suggestions) completions_.push_back(policy.EncodeCompletion(suggestion));
  for (const TrajectoryRecord& trajectory : trajectories_) {
    std::set<std::string> used;
    for (const RoundRecord& round : trajectory.rounds_done) {
      State state{MakeSample(trajectory, round), {}};
      for (size_t i = 0; i < suggestions.size(); ++i) {
        if (!used.contains(suggestions[i])) state.unused.push_back(i);
      }
      used.insert(round.suggestion);
      if (suggestions.empty() || !state.unused.empty()) states_.push_back(std::move(state));
    }
  }
  if (states_.empty()) {
    throw Error(KGRPO_ERROR_UNAVAILABLE, "no demonstration is left: the coder gave no kernel in any trajectory");
  }
}

std::vector<kgrpo_sample> Demonstrations::Draw(uint64_t seed, uint64_t first_step, uint64_t update,
                                               size_t count) const {
  std::vector<kgrpo_sample> samples;
  KeyedStream random(seed, "demonstrated suggestion", {first_step, update});
  for (const size_t i : DrawInEpochs(seed, "demonstrations", {first_step}, update, count, states_.size())) {
    const State& state = states_[i];
    kgrpo_sample sample = state.sample;
    if (!state.unused.empty()) {
      const std::vector<int32_t>& completion = completions_[state.unused[random.Below(state.unused.size())]];
      sample.completion_ids = completion.data();
      sample.completion_size = completion.size();
    }
    sample.logprobs = nullptr;
    samples.push_back(sample);
  }
  return samples;
}

}  // namespace kgrpo
