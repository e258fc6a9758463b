// reward_program as kgrpo.reward/1: a program in any language scores rounds.
#include <kgrpo/reward.h>
#include <kgrpo/sdk/plugin.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "program_shared/options.h"
#include "program_shared/pool.h"
#include "program_shared/wire.h"

struct kgrpo_reward {
  // A pool takes requests from any thread, and a reward's functions are const.
  mutable kgrpo::program::Pool pool;
};

namespace kgrpo::program {
namespace {

kgrpo_str Schema() {
  static const std::string schema = OptionsSchema("reward_program options", "[python3, my_reward.py]", 60);
  return Str(schema);
}

kgrpo_error* Create(const kgrpo_host* host, kgrpo_str options, kgrpo_reward** out) {
  return Guard([&] { *out = new kgrpo_reward{Pool(Host(host), "reward", ReadOptions(View(options)))}; });
}

void Destroy(kgrpo_reward* self) { delete self; }

double ScoreOf(const nlohmann::json& result) {
  if (result.is_object() && result.contains("no_score"))
    throw Error(KGRPO_ERROR_NO_SCORE,
                "no score: " + Excerpt(result["no_score"].is_string() ? result["no_score"].get<std::string>()
                                                                      : result["no_score"].dump()));
  if (!result.is_object() || !result.contains("score") || !result["score"].is_number())
    throw Error(KGRPO_ERROR_INTERNAL, "the program's answer has no number \"score\": " + Excerpt(result.dump()));
  return result["score"];
}

kgrpo_error* Score(const kgrpo_reward* self, const kgrpo_reward_request* request, kgrpo_metric_sink parts,
                   double* score) {
  return Guard([&] {
    const nlohmann::json result = self->pool.CallText("score", RewardParams(*request));
    const double scored = ScoreOf(result);
    const nlohmann::json given = result.value("parts", nlohmann::json());
    if (given.is_object() && !given.empty()) {
      for (const auto& [name, value] : given.items()) {
        if (!value.is_number())
          throw Error(KGRPO_ERROR_INTERNAL, "the program's answer: part \"" + name + "\" is no number");
        parts.add(parts.context, kgrpo::Measured(name, value.get<double>()));
      }
    } else {
      parts.add(parts.context, kgrpo::Measured("score", scored));
    }
    *score = scored;
  });
}

kgrpo_error* Idle(const kgrpo_reward* self, const kgrpo_reward_request* request, double* score) {
  return Guard(
      [&] { *score = self->pool.hello().idle ? ScoreOf(self->pool.CallText("idle", RewardParams(*request))) : 0; });
}

constexpr kgrpo_reward_interface kInterface = {sizeof(kgrpo_reward_interface), Schema, Create, Destroy, Score, Idle,
                                               /*get_extension=*/nullptr};

}  // namespace
}  // namespace kgrpo::program

KGRPO_PLUGIN("reward_program", KGRPO_VERSION, "a reward that is a program in any language, over JSON lines",
             {KGRPO_REWARD_INTERFACE, &kgrpo::program::kInterface});
