// plugin.cc - reward_speedup as kgrpo.reward/1.
#include <kgrpo/reward.h>
#include <kgrpo/sdk/plugin.h>

#include "reward_speedup/speedup_reward.h"

struct kgrpo_reward {
  kgrpo::reward::SpeedupRewardOptions options;
};

namespace kgrpo::reward {
namespace {

kgrpo_str OptionsSchema() { return Str(SpeedupRewardSchema()); }

kgrpo_error* Create(const kgrpo_host*, kgrpo_str options, kgrpo_reward** out) {
  return Guard([&] { *out = new kgrpo_reward{ReadSpeedupRewardOptions(View(options))}; });
}

void Destroy(kgrpo_reward* self) { delete self; }

kgrpo_error* ScoreRound(const kgrpo_reward* self, const kgrpo_reward_request* request, kgrpo_metric_sink sink,
                        double* score) {
  return Guard([&] {
    const RewardParts parts = Score(self->options, *request);
    // Every part is pushed every time, so that their means over a step sum to the mean reward.
    sink.add(sink.context, kgrpo::Measured("outcome", parts.outcome));
    sink.add(sink.context, kgrpo::Measured("correct", parts.correct));
    sink.add(sink.context, kgrpo::Measured("speedup", parts.speedup));
    *score = parts.total();
  });
}

kgrpo_error* Idle(const kgrpo_reward* self, const kgrpo_reward_request* request, double* score) {
  return Guard([&] { *score = IdleScore(self->options, *request); });
}

const kgrpo_reward_interface kRewardInterface = {
    sizeof(kgrpo_reward_interface), OptionsSchema, Create, Destroy, ScoreRound, Idle, /*get_extension=*/nullptr};

}  // namespace
}  // namespace kgrpo::reward

KGRPO_PLUGIN("reward_speedup", KGRPO_VERSION,
             "penalties for failing kernels, speedup over the reference for correct ones",
             {KGRPO_REWARD_INTERFACE, &kgrpo::reward::kRewardInterface});
