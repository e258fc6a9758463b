// plugin.cc - reward_expression as kgrpo.reward/1.
#include <kgrpo/reward.h>
#include <kgrpo/sdk/host.h>
#include <kgrpo/sdk/plugin.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "reward_expression/expression_reward.h"

struct kgrpo_reward {
  kgrpo::reward::ExpressionReward reward;
};

namespace kgrpo::reward {
namespace {

kgrpo_str OptionsSchema() { return Str(ExpressionRewardSchema()); }

kgrpo_error* Create(const kgrpo_host* host, kgrpo_str options, kgrpo_reward** out) {
  return Guard([&] {
    std::unique_ptr<kgrpo_reward> made(new kgrpo_reward{ExpressionReward(View(options))});
    std::vector<std::string> declared;
    Host(host).ForEachDeclaration(
        [&](const kgrpo_metric_declaration& metric) { declared.push_back(Copy(metric.name)); });
    // Where no part declares any, as under `plugins validate`, no name can be told to be wrong.
    for (const std::string& name : declared.empty() ? std::set<std::string>() : made->reward.CheckMetrics(declared)) {
      Host(host).Warn("no part declares a metric \"" + name +
                      "\"; if the evaluator does not measure it, the run ends where it is first needed");
    }
    if (const std::string warning = made->reward.Warning(); !warning.empty()) Host(host).Warn(warning);
    *out = made.release();
  });
}

void Destroy(kgrpo_reward* self) { delete self; }

kgrpo_error* ScoreRound(const kgrpo_reward* self, const kgrpo_reward_request* request, kgrpo_metric_sink sink,
                        double* score) {
  return Guard([&] {
    *score = self->reward.Score(*request);
    sink.add(sink.context, kgrpo::Measured("score", *score));
  });
}

kgrpo_error* Idle(const kgrpo_reward* self, const kgrpo_reward_request* request, double* score) {
  return Guard([&] { *score = self->reward.Idle(*request); });
}

const kgrpo_reward_interface kRewardInterface = {
    sizeof(kgrpo_reward_interface), OptionsSchema, Create, Destroy, ScoreRound, Idle, /*get_extension=*/nullptr};

}  // namespace
}  // namespace kgrpo::reward

KGRPO_PLUGIN("reward_expression", KGRPO_VERSION,
             "a reward written in the pipeline file: correct ? 0.3 + log2(min(speedup, 8)) : -0.5",
             {KGRPO_REWARD_INTERFACE, &kgrpo::reward::kRewardInterface});
