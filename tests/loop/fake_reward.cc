// The fake reward: 0.3 plus the speedup for a correct kernel, otherwise a fixed value by the kind of failure.
#include "fake_table.h"
#include "fakes.h"

#include <kgrpo/sdk/error.h>

#include <limits>

struct kgrpo_reward {};

namespace kgrpo::fakes {
namespace {

kgrpo_error* Score(const kgrpo_reward*, const kgrpo_reward_request* request, kgrpo_metric_sink parts, double* score) {
  return Guard([&] {
    const auto fails_every = static_cast<uint64_t>(knobs().reward_fails_every.load());
    if (fails_every > 0 && request->candidate != nullptr &&
        Hash(View(request->answer->source), request->round) % fails_every == 0) {
      *score = knobs().reward_gives;
      if (*score == 0) throw Error(static_cast<kgrpo_error_code>(knobs().fault_code.load()), "the scorer is away");
      return;
    }
    double base = 0, speedup = 0;
    if (request->candidate == nullptr) {
      base = request->answer->outcome == KGRPO_CODER_NOT_APPLICABLE ? 0 : -0.75;
    } else if (!request->candidate->compiled) {
      base = -1;
    } else if (!request->candidate->correct) {
      base = -0.5;
    } else {
      base = 0.3;
      speedup = request->candidate->speedup;
    }
    parts.add(parts.context, kgrpo::Measured("base", base));
    parts.add(parts.context, kgrpo::Measured("speedup", speedup));
    *score = knobs().reward_scale * (base + speedup);
    if (knobs().reward_fails_after >= 0 && knobs().updates >= knobs().reward_fails_after)
      *score = std::numeric_limits<double>::quiet_NaN();
  });
}

kgrpo_error* Idle(const kgrpo_reward*, const kgrpo_reward_request* request, double* score) {
  *score = request->current->correct ? 0.3 + request->current->speedup : 0;
  return nullptr;
}

}  // namespace

const kgrpo_reward_interface kReward = {sizeof(kgrpo_reward_interface),
                                        Schema,
                                        [](const kgrpo_host*, kgrpo_str, kgrpo_reward** out) -> kgrpo_error* {
                                          return Guard([&] { *out = new kgrpo_reward; });
                                        },
                                        [](kgrpo_reward* self) { delete self; },
                                        Score,
                                        Idle,
                                        /*get_extension=*/nullptr};

}  // namespace kgrpo::fakes
