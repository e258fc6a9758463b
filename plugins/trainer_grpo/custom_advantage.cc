#include "trainer_grpo/custom_advantage.h"

#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "expression/expression.h"
#include "program_shared/pool.h"
#include "trainer_shared/metrics.h"

namespace kgrpo::grpo {
namespace {

using expression::Named;
using Key = std::pair<uint32_t, uint32_t>;

// In the order of the values. "Value": the return, less the idle return with idle_baseline.
constexpr std::array kVariables = {
    Named{"value", "the sample's discounted return, less that of doing nothing with idle_baseline"},
    Named{"reward", "of its round alone"},
    Named{"idle_reward", "what the round would have paid for leaving the kernel as it was"},
    Named{"round", "from 0"},
    Named{"rounds", "how many the trajectory has"},
    Named{"group_size", "samples in its group, itself included"},
    Named{"group_mean", "mean value of its group"},
    Named{"group_std", "standard deviation of its group's values, n - 1 below"},
    Named{"group_min", "least value of its group"},
    Named{"group_max", "greatest value of its group"},
    Named{"others_mean", "mean value of the others of its group; 0 if there is none"},
    Named{"batch_mean", "mean value of the batch"},
    Named{"batch_std", "standard deviation of the batch's values"}};

struct SampleGroups {
  std::map<Key, trainer::Summary> groups;
  trainer::Summary batch;
};

SampleGroups SampleGroupsOf(const AdvantageOptions& options, std::span<const RoundOutcome> samples,
                            const Advantages& advantages) {
  SampleGroups all;
  for (size_t i = 0; i < samples.size(); ++i) {
    if (advantages.cut[i]) continue;
    all.groups[GroupOf(options.group, samples[i])].Add(advantages.values[i]);
    all.batch.Add(advantages.values[i]);
  }
  return all;
}

std::array<double, kVariables.size()> ValuesOf(const RoundOutcome& sample, double value, const trainer::Summary& group,
                                               const trainer::Summary& batch) {
  const auto size = static_cast<double>(group.count());
  return {value,
          sample.reward,
          sample.idle_reward,
          static_cast<double>(sample.round),
          static_cast<double>(sample.rounds),
          size,
          group.mean(),
          group.standard_deviation(),
          group.min(),
          group.max(),
          size > 1 ? (size * group.mean() - value) / (size - 1) : 0,
          batch.mean(),
          batch.standard_deviation()};
}

// The program's answer to {"returns", "rewards", "groups", "rounds", "trajectories"}, lists with an entry a sample.
std::vector<double> AskProgram(program::Pool& program, const AdvantageOptions& options,
                               std::span<const RoundOutcome> samples, const std::vector<size_t>& whole,
                               const Advantages& advantages) {
  nlohmann::ordered_json asked;
  std::map<Key, size_t> numbers;  // of each group, in the order of the samples
  for (const char* list : {"returns", "rewards", "groups", "rounds", "trajectories"})
    asked[list] = nlohmann::ordered_json::array();
  for (const size_t i : whole) {
    asked["returns"].push_back(advantages.values[i]);
    asked["rewards"].push_back(samples[i].reward);
    asked["groups"].push_back(numbers.emplace(GroupOf(options.group, samples[i]), numbers.size()).first->second);
    asked["rounds"].push_back(samples[i].round);
    asked["trajectories"].push_back(samples[i].trajectory);
  }
  const nlohmann::json answer = program.Call("advantages", asked);
  const nlohmann::json given = answer.is_object() ? answer.value("advantages", nlohmann::json()) : nlohmann::json();
  const auto is_number = [](const nlohmann::json& one) { return one.is_number(); };
  if (!given.is_array() || given.size() != whole.size() || !std::ranges::all_of(given, is_number))
    throw Error(KGRPO_ERROR_INTERNAL, "advantage_program: the answer has no list \"advantages\" of " +
                                          std::to_string(whole.size()) + " numbers");
  return given.get<std::vector<double>>();
}

}  // namespace

std::string AdvantageVariables() {
  return expression::Listed("Variables:", kVariables) + expression::Listed("Functions:", expression::kFunctions);
}

CustomAdvantage::CustomAdvantage(const kgrpo_host* host, const GrpoOptions& options) {
  if (!options.own_advantage.empty())
    expression_ = std::make_unique<expression::Expression>("advantage", options.own_advantage, kVariables);
  if (options.advantage_program.empty()) return;
  program::PoolOptions pool;
  pool.command = options.advantage_program;
  pool.options = nlohmann::json::object();
  program_ = std::make_unique<program::Pool>(Host(host), "advantage", std::move(pool));
}

CustomAdvantage::~CustomAdvantage() = default;

void CustomAdvantage::Apply(const AdvantageOptions& options, std::span<const RoundOutcome> samples,
                            const Collective& ranks, Advantages* advantages) const {
  if (expression_ == nullptr && program_ == nullptr) return;
  std::vector<size_t> whole;
  for (size_t i = 0; i < samples.size(); ++i) {
    if (!advantages->cut[i]) whole.push_back(i);
  }
  std::vector<double> made(whole.size(), 0.0);
  if (expression_ != nullptr) {
    const SampleGroups all = SampleGroupsOf(options, samples, *advantages);
    for (size_t k = 0; k < whole.size(); ++k) {
      const RoundOutcome& sample = samples[whole[k]];
      const auto values =
          ValuesOf(sample, advantages->values[whole[k]], all.groups.at(GroupOf(options.group, sample)), all.batch);
      made[k] = expression_->Value(values);
      if (!std::isfinite(made[k]))
        throw Error(KGRPO_ERROR_INVALID, "options.advantage" + expression_->NotFinite(values));
    }
  } else {
    if (ranks.rank() == 0) made = AskProgram(*program_, options, samples, whole, *advantages);
    ranks.Sum(made);  // the other ranks have zeros
  }
  for (size_t k = 0; k < whole.size(); ++k) {
    double& advantage = advantages->advantages[whole[k]];
    advantage = options.cap > 0 ? std::clamp(made[k], -options.cap, options.cap) : made[k];
  }
}

}  // namespace kgrpo::grpo
