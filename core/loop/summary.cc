#include "loop/summary.h"

#include <kgrpo/support/number_text.h>  // Format, FormatDollars
#include "loop/coder_cost.h"
#include "loop/metrics.h"
#include "loop/round_faults.h"
#include "loop/statistics.h"

#include <kgrpo/sdk/text.h>

#include <algorithm>
#include <filesystem>
#include <set>

namespace kgrpo {
namespace {

constexpr uint64_t kAllSteps = ~uint64_t{0} >> 2;  // SQLite's integers are signed, and queries add 1 to it

double MetricOr0(const MetricMap& metrics, const char* name) {
  const auto found = metrics.find(name);
  return found == metrics.end() ? 0.0 : found->second;
}

std::string Fixed(double value, int digits) { return Format("%.*f", digits, value); }

std::string Percent(size_t count, size_t of) {
  return Fixed(of == 0 ? 0 : 100 * static_cast<double>(count) / static_cast<double>(of), 0) + "%";
}

// The run's time by part, a row each; docs/loop.md lists which are wall-clock times and which are sums over threads.
void ShowTimes(Console& console, RunDatabase& database, size_t steps) {
  std::vector<std::vector<std::string>> rows;
  const auto add = [&](const std::string& name, double seconds) {
    rows.push_back({name, Fixed(seconds, 1), Fixed(seconds / static_cast<double>(std::max<size_t>(1, steps)), 2)});
  };
  for (const Metric& sum : database.MetricSums("step_time")) add("all steps", sum.value);
  const std::string prefix = "time/";
  const std::map<std::string, std::string> kinds = {{"generate", " (in rollout)"},
                                                    {"implement", " (in rollout, summed over threads)"},
                                                    {"evaluate", " (in rollout, summed over threads)"},
                                                    {"device_wait", " (in rollout, summed over threads)"},
                                                    {"train_wait", " (in train)"},
                                                    {"begin_stage", " (beside the steps)"},
                                                    {"record", " (beside the steps)"},
                                                    {"checkpoint", " (beside the steps)"}};
  for (const Metric& sum : database.MetricSums(prefix)) {
    const std::string part = sum.name.substr(prefix.size());
    const auto kind = kinds.find(part);
    add(part + (kind == kinds.end() ? "" : kind->second), sum.value);
  }
  console.Table("Time:", {"part", "seconds", "a step"}, rows);
}

// The failures of coder, evaluator and reward, and the coder's cost; shows nothing if there are none.
void ShowCoder(Console& console, RunDatabase& database) {
  const CoderTotals totals = database.ReadCoderTotals(kAllSteps);
  for (const PartFaults& faults : FaultsOf(database)) {
    if (faults.count() == 0) continue;
    const bool coder = faults.part() == RoundPart::kCoder;
    console.Note(
        std::string("the ") + RoundPartName(faults.part()) + " " + faults.Verb() + " in " +
        std::to_string(faults.count()) +
        (coder ? " of " + std::to_string(totals.answers) + " answers; " : " rounds, where their trajectories ended; ") +
        faults.Commonest());
  }
  const CoderSpending spending = ReadSpending(database, kAllSteps);
  const std::string what =
      ": " + std::to_string(totals.tokens) + " tokens in " + std::to_string(totals.answers) + " answers";
  const std::string reused = ReusedText({totals.answers, totals.reused});
  if (spending.cost > 0) {
    console.Note("the coder cost " + FormatDollars(spending.cost) + LostText(spending) + what +
                 (reused.empty() ? "" : "; " + reused));
  } else if (totals.reused > 0) {
    console.Note("the coder: " + reused +
                 (totals.reused < totals.answers ? "; it reported no cost for the others" : ""));
  } else if (const auto device = database.MetricSums(kDeviceSecondsMetric); !device.empty()) {
    console.Note("the coder had its device for " + Fixed(device.front().value, 1) + " s" + what);
  } else if (totals.tokens > 0) {
    console.Note("the coder reported no cost (none was paid, or its prices are not known)" + what);
  }
}

// Files that kgrpo's own observers wrote there: "", or ", metrics.jsonl, TensorBoard events".
std::string ObserversFiles(const std::filesystem::path& folder) {
  std::string files = std::filesystem::exists(folder / "metrics.jsonl") ? ", metrics.jsonl" : "";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().filename().string().find("tfevents") == std::string::npos) continue;
    return files + ", TensorBoard events";
  }
  return files;
}

}  // namespace

void ShowHeader(Console& console, const PipelineConfig& config, const PipelineParts& parts, const ProblemSet& problems,
                const RunFolder& folder) {
  std::vector<std::pair<std::string, std::string>> lines;
  for (const PluginIdentity& plugin : parts.identities) {
    std::string text = plugin.name + " " + plugin.version;
    if (plugin.role == "policy" && parts.policy != nullptr) {
      const kgrpo_policy_info& info = parts.policy->info();
      text += ": " + Copy(info.architecture) + ", " + Fixed(static_cast<double>(info.parameter_count) / 1e6, 2) +
              " M parameters, on " + Copy(info.device);
    }
    if (plugin.role == "coder" && parts.coder != nullptr) {
      const std::string what = parts.coder->Describe();
      if (!what.empty()) text += ": " + what;
    }
    if (plugin.role == "evaluator") text += ": " + parts.evaluator->Describe();
    lines.emplace_back(plugin.role, text);
  }
  std::set<std::string> families;
  for (size_t i = 0; i < problems.size(); ++i) families.insert(problems[i].family);
  lines.emplace_back("problems", std::to_string(problems.size()) + " in " + std::to_string(families.size()) +
                                     (families.size() == 1 ? " family" : " families"));
  if (problems.size() > 0) {
    const Evaluation& baseline = problems[0].baseline;
    lines.emplace_back("times",
                       (baseline.modelled ? "MODELLED, no device ran: " : "measured: ") + baseline.time_source);
  }
  lines.emplace_back("seed", std::to_string(config.seed));
  if (config.controls.shuffle_prompts)
    lines.emplace_back("control", "prompts are shuffled among problems: must not learn");
  if (config.controls.shuffle_rewards)
    lines.emplace_back("control", "rewards are shuffled among samples: must not learn");
  lines.emplace_back("output", folder.path().string());
  console.Header(config.name, lines);
}

void ShowHeldout(Console& console, uint64_t step, const MetricMap& metrics) {
  if (!metrics.contains("heldout/reward")) {
    console.Note("held-out after step " + std::to_string(step) + ": no round has a score");
    return;
  }
  const auto greedy = metrics.find("heldout/greedy_reward");
  console.Note(Format("held-out after step %llu: reward %.3f  correct %.0f%%  best speedup %.2fx",
                      static_cast<unsigned long long>(step), MetricOr0(metrics, "heldout/reward"),
                      100 * MetricOr0(metrics, "heldout/kernel/correct_rate"),
                      MetricOr0(metrics, "heldout/best_speedup_geomean")) +
               (greedy == metrics.end() ? "" : Format("  greedy %.3f", greedy->second)));
}

void ShowStep(Console& console, const StepRecord& record, const MetricMap& metrics, uint64_t steps, uint64_t stage_end,
              bool modelled) {
  const auto value = [&](const char* name) { return MetricOr0(metrics, name); };
  StepLine line;
  line.step = record.step;
  line.steps = steps;
  line.stage_end = stage_end;
  line.stage = record.stage_name;
  line.has_rollouts = record.has_rollouts;
  if (std::ranges::any_of(record.trajectories, [](const auto& trajectory) { return !trajectory.rounds_done.empty(); }))
    line.reward = record.reward_mean;
  line.correct_rate = value("kernel/correct_rate");
  line.speedup = value("kernel/speedup_geomean");
  line.failed_rate = value("kernel/failed_rate");
  line.not_applicable_rate = value("coder/not_applicable_rate");
  line.unclear_rate = value("coder/unclear_rate");
  if (const double rate = value("policy/no_kernel_rate"); rate > 0) line.further_rates.emplace_back("no kernel", rate);
  for (const RoundPart part : kRoundParts) {
    const std::string name = RoundPartName(part);
    if (const double rate = value((name + "/error_rate").c_str()); rate > 0)
      line.further_rates.emplace_back(name + " errors", rate);
  }
  line.cost = value(kCostMetric);
  line.favourite_share = value("policy/favourite_share");
  line.entropy = value("policy/suggestion_entropy");
  line.has_loss = metrics.contains("loss");
  line.loss = value("loss");
  line.seconds = value("step_time");
  for (const auto& [part, name] : {std::pair{"rollout", "time/rollout"},
                                   {"generating", "time/generate"},
                                   {"training", "time/train"},
                                   {"held-out", "time/heldout"},
                                   {"judging again", "time/judge_best"},
                                   {"checkpoint", "time/checkpoint"}}) {
    if (metrics.contains(name)) line.parts.emplace_back(part, value(name));
  }
  line.generated_per_second = value("policy/tokens_per_second");
  line.trained_per_second = value("train/tokens_per_second");
  line.train_tflops = value("train/tflops");
  line.modelled = modelled;
  console.Step(line);
  if (!record.heldout.empty()) ShowHeldout(console, record.step, metrics);
}

void ShowSummary(Console& console, RunDatabase& database, const ProblemSet& problems, const RunFolder& folder) {
  const std::vector<StepSummary> steps = database.Steps();
  const uint64_t changed = RewardChangedAfter(database.ReadChanges());
  std::vector<double> rewards;
  std::vector<uint64_t> scored;  // steps with samples
  for (const StepSummary& step : steps) {
    if (!step.reward_mean) continue;
    if (step.step > changed) rewards.push_back(*step.reward_mean);
    scored.push_back(step.step);
  }
  if (!rewards.empty()) {
    const size_t tenth = std::max<size_t>(1, rewards.size() / 10);
    const std::span<const double> all(rewards);
    const std::string first = Fixed(Mean(all.first(tenth)), 3), last = Fixed(Mean(all.last(tenth)), 3);
    const std::string count = std::to_string(tenth);
    console.Note((changed == 0 ? "mean reward: "
                               : "mean reward since the reward changed, after step " + std::to_string(changed) + ": ") +
                 (rewards.size() == 1 ? first + " in the one step"
                  : tenth == 1        ? first + " in the first step, " + last + " in the last"
                               : first + " in the first " + count + " steps, " + last + " in the last " + count) +
                 "  " + Sparkline(rewards, 60));
  }

  // The table has, for each problem, its best verified kernel and the favourite suggestion of the last 5 steps with
  // samples.
  std::map<std::string, Tally> suggested, applied;
  const std::span<const uint64_t> looked_at = std::span(scored).last(std::min<size_t>(5, scored.size()));
  for (const uint64_t step : looked_at) {
    for (const TrajectoryRecord& trajectory : database.ReadStep(Purpose::kTrain, step)) {
      for (const RoundRecord& round : trajectory.rounds_done) {
        const std::string text = SuggestionText(round.suggestion);
        suggested[trajectory.problem_name].Add(text);
        if (round.answer.outcome == KGRPO_CODER_OK) applied[trajectory.problem_name].Add(text);
      }
    }
  }
  const std::map<std::string, BestKernel> best = database.ReadBest(kAllSteps);
  const std::set<std::string> drawn = database.DrawnProblems();
  std::vector<std::vector<std::string>> rows;
  for (size_t i = 0; i < problems.size(); ++i) {
    const std::string& name = problems[i].name;
    if (!drawn.contains(name)) continue;
    const auto kernel = best.find(name);
    rows.push_back({name, kernel == best.end() ? "-" : Fixed(kernel->second.speedup, 2) + "x"});
    const auto tally = suggested.find(name);
    if (tally == suggested.end()) {
      rows.back().insert(rows.back().end(), {"-", "-", "-"});
      continue;
    }
    const std::string text = tally->second.favourite();
    const size_t times = tally->second.count(text);
    rows.back().insert(rows.back().end(), {ShownSuggestion(text, 40), Percent(times, tally->second.total()),
                                           Percent(applied[name].count(text), times)});
  }
  const bool modelled = problems.size() > 0 && problems[0].baseline.modelled;
  console.Table(
      looked_at.empty()
          ? "Training problems:"
          : "Training problems; suggestions of " +
                (looked_at.size() == 1 ? "step " : "steps " + std::to_string(looked_at.front()) + " to ") +
                std::to_string(looked_at.back()) + ":",
      {"problem", modelled ? "best verified (modelled)" : "best verified", "favourite suggestion", "share", "applied"},
      rows);
  if (rows.size() < problems.size()) {
    console.Note(std::to_string(problems.size() - rows.size()) + " of " + std::to_string(problems.size()) +
                 " training problems were not drawn");
  }
  ShowTimes(console, database, steps.size());
  ShowCoder(console, database);
  const std::string nothing_learned = NothingLearned(database);
  const bool learned = nothing_learned.empty();
  if (!learned) console.Note(nothing_learned);
  const std::string path = folder.path().string();
  const std::string kernels = best.empty() ? "" : "kernels/ (the best verified ones), ";
  const std::string model = learned ? "the trained model" : "a stage learned nothing, see above";
  console.Note(
      "written to " + path + ": final/ (" + model + "), " + kernels + "run.sqlite" + ObserversFiles(folder.path()) +
      (best.empty() ? "; kernels/ is empty: no candidate was both correct and faster than its reference" : ""));
  if (!learned) return;
  console.Note("next: kgrpo-host eval " + folder.resolved_yaml().string() + " --policy " +
               folder.final_model().string());
}

}  // namespace kgrpo
