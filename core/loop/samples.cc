#include "loop/samples.h"

#include "base/keyed.h"

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

}  // namespace kgrpo
