// speedup_reward.h - the reward of a round: penalties for kernels that do not compile or are wrong, a base for correct
// ones, and the speedup over the reference. plugin.cc offers it as kgrpo.reward/1.
#pragma once
#include <kgrpo/reward.h>

#include <string_view>

namespace kgrpo::reward {

enum class SpeedupTransform { kLinear, kLog };

struct SpeedupRewardOptions {
  double not_compiled = -1.0;
  double wrong = -0.5;
  double correct = 0.3;
  double speedup_weight = 1.0;
  double speedup_cap = 0;  // 0: none
  SpeedupTransform transform = SpeedupTransform::kLinear;
  double unchanged = 0.0;
  double no_kernel = -1.0;
};

// A reward by its summands.
struct RewardParts {
  double outcome = 0;  // paid if there is no correct new kernel
  double correct = 0;  // the base of a correct one
  double speedup = 0;  // what its speed adds
  double total() const { return outcome + correct + speedup; }
};

// The JSON Schema of the options. Static.
std::string_view SpeedupRewardSchema();
// `json` satisfies the schema, defaults filled in.
SpeedupRewardOptions ReadSpeedupRewardOptions(std::string_view json);

// Pure; any thread. Throws KGRPO_ERROR_INVALID if the request lacks an evaluation that its outcome needs, or if the
// time of a correct kernel or of the reference is not a positive number.
RewardParts Score(const SpeedupRewardOptions& options, const kgrpo_reward_request& request);

// The score of leaving the current kernel as it is, paid as if it were this round's work.
double IdleScore(const SpeedupRewardOptions& options, const kgrpo_reward_request& request);

}  // namespace kgrpo::reward
