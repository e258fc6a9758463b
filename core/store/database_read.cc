// RunDatabase: the reads for a resumed run, the run's summary and the tests.
#include "store/database.h"
#include "store/json.h"
#include "store/schema.h"

#include <utility>

namespace kgrpo {
namespace {

// Of evaluations and evaluation_details d, as TakeEvaluation reads them.
constexpr const char* kEvaluationColumns =
    "seed, compiled, correct, verdict, seconds, seconds_low, seconds_high, modelled, time_source, diagnosis, metrics, "
    "evaluate_seconds, d.speedup, speedup_low, speedup_high, remarks";

// Reads these columns, from number `first`, into the round. Leaves a round without an evaluation as it is.
void TakeEvaluation(const Statement& row, int first, RoundRecord* round) {
  if (row.IsNull(first)) return;
  round->evaluation_seed = std::stoull(row.Text(first));
  Evaluation& evaluation = round->evaluation.emplace();
  evaluation.compiled = row.Integer(first + 1) != 0;
  evaluation.correct = row.Integer(first + 2) != 0;
  // Earlier versions called a correct kernel "right".
  evaluation.verdict = evaluation.correct ? KGRPO_VERDICT_CORRECT : row.Text(first + 3);
  evaluation.seconds = row.Real(first + 4);
  evaluation.seconds_low = row.Real(first + 5);
  evaluation.seconds_high = row.Real(first + 6);
  evaluation.modelled = row.Integer(first + 7) != 0;
  evaluation.time_source = row.Text(first + 8);
  evaluation.diagnosis = row.Text(first + 9);
  evaluation.metrics = MetricsFromJson(row.Text(first + 10));
  round->evaluate_seconds = row.Real(first + 11);
  if (row.IsNull(first + 15)) return;
  evaluation.speedup = row.Real(first + 12);
  evaluation.speedup_low = row.Real(first + 13);
  evaluation.speedup_high = row.Real(first + 14);
  evaluation.remarks = RemarksFromJson(row.Text(first + 15));
}

}  // namespace

RunProgress ReadProgress(const std::filesystem::path& path) {
  Database database(path, Database::ToRead(path));
  const auto number = [&database](const char* question) {
    Statement statement(database, question);
    return statement.Step() ? statement.Integer(0) : 0;
  };
  const int64_t version = number("PRAGMA user_version");
  const bool empty = number("SELECT count(*) FROM sqlite_master") == 0;
  if (version == 0 && empty) return {.is_empty = true};
  if (version != kSchemaVersion || !database.HasTable("run") || !database.HasTable("steps") ||
      !database.HasTable("metrics")) {
    return {.is_foreign = true};
  }
  // coder/cost_total has the sums of ReadCoderTotals and the spending that the coder reported beyond them. A stopped
  // run has stored the cost of its last step under the key coder_cost.
  Statement cost(database,
                 "SELECT max(coalesce((SELECT max(value) FROM metrics WHERE name = 'coder/cost_total'), 0), "
                 "coalesce((SELECT CAST(value AS REAL) FROM run WHERE key = 'coder_cost'), 0))");
  return {.steps = static_cast<uint64_t>(number("SELECT count(*) FROM steps")),
          .finished = number("SELECT count(*) FROM run WHERE key = 'finished'") != 0,
          .coder_cost = cost.Step() ? cost.Real(0) : 0};
}

RunDatabase::RunDatabase(const std::filesystem::path& path, ReadOnly) : database_(path, Database::ToRead(path)) {}

RunDatabase RunDatabase::ToRead(const std::filesystem::path& path) {
  return RunDatabase(path, ReadOnly());
}

std::vector<TrajectoryRecord> RunDatabase::ReadDemonstrations(uint64_t first_step) {
  return ReadStep(Purpose::kDemonstration, first_step);
}

std::vector<TrajectoryRecord> RunDatabase::ReadStep(Purpose purpose, uint64_t step) {
  std::vector<TrajectoryRecord> trajectories;
  Statement select(database_,
                   "SELECT trajectory, problem, problem_name, family, prompted_as, baseline_seconds, rounds, dropped "
                   "FROM trajectories WHERE purpose = ? AND step = ? ORDER BY trajectory");
  select << PurposeName(purpose) << step;
  while (select.Step()) {
    TrajectoryRecord& trajectory = trajectories.emplace_back();
    trajectory.trajectory = static_cast<uint64_t>(select.Integer(0));
    trajectory.problem = static_cast<uint32_t>(select.Integer(1));
    trajectory.problem_name = select.Text(2);
    trajectory.family = select.Text(3);
    trajectory.prompted_as = select.Text(4);
    trajectory.baseline_seconds = select.Real(5);
    trajectory.rounds = static_cast<uint32_t>(select.Integer(6));
    trajectory.dropped = select.Text(7);
    if (!trajectory.dropped.empty()) trajectory.failed_round = ReadFailedRound(purpose, step, trajectory.trajectory);

    Statement rounds(
        database_,
        "SELECT r.round, prompt, suggestion, prompt_ids, completion_ids, logprobs, truncated, "
        "(SELECT text FROM sources WHERE hash = code_a), (SELECT text FROM sources WHERE hash = code_b), "
        "(SELECT text FROM sources WHERE hash = code_c), coder_outcome, coder_summary, coder_message, "
        "coder_prompt_tokens, coder_completion_tokens, coder_cost, coder_seconds, coder_attempts, unchanged, applied, "
        "r.speedup, reward, idle_reward, reward_parts, u.round IS NOT NULL, returned, advantage, " +
            std::string(kEvaluationColumns) +
            " FROM rounds r LEFT JOIN evaluations e USING(purpose, step, trajectory, round) "
            "LEFT JOIN evaluation_details d USING(purpose, step, trajectory, round) "
            "LEFT JOIN reused_answers u USING(purpose, step, trajectory, round) "
            "LEFT JOIN sample_outcomes o ON o.step = r.step AND o.trajectory = r.trajectory AND o.round = r.round AND "
            "r.purpose = 'train' "
            "WHERE r.purpose = ? AND r.step = ? AND r.trajectory = ? ORDER BY r.round");
    rounds << PurposeName(purpose) << step << trajectory.trajectory;
    while (rounds.Step()) {
      RoundRecord& round = trajectory.rounds_done.emplace_back();
      round.round = static_cast<uint32_t>(rounds.Integer(0));
      round.messages = MessagesFromJson(rounds.Text(1));
      round.suggestion = rounds.Text(2);
      const auto prompt_ids = rounds.Values<int32_t>(3);
      round.prompt_ids.assign(prompt_ids.begin(), prompt_ids.end());
      const auto completion_ids = rounds.Values<int32_t>(4);
      round.completion_ids.assign(completion_ids.begin(), completion_ids.end());
      const auto logprobs = rounds.Values<float>(5);
      round.logprobs.assign(logprobs.begin(), logprobs.end());
      round.truncated = rounds.Integer(6) != 0;
      round.code_a = rounds.Text(7);
      round.code_b = rounds.Text(8);
      round.answer.source = rounds.Text(9);
      round.answer.outcome = static_cast<kgrpo_coder_outcome>(rounds.Integer(10));
      round.answer.summary = rounds.Text(11);
      round.answer.message = rounds.Text(12);
      round.answer.prompt_tokens = static_cast<uint64_t>(rounds.Integer(13));
      round.answer.completion_tokens = static_cast<uint64_t>(rounds.Integer(14));
      round.answer.cost = rounds.Real(15);
      round.answer.seconds = rounds.Real(16);
      round.answer.attempts = static_cast<uint32_t>(rounds.Integer(17));
      round.unchanged = rounds.Integer(18) != 0;
      round.applied = rounds.Integer(19) != 0;
      round.speedup = rounds.Real(20);
      round.reward = rounds.Real(21);
      round.idle_reward = rounds.Real(22);
      round.reward_parts = MetricsFromJson(rounds.Text(23));
      round.answer.reused = rounds.Integer(24) != 0;
      if (!rounds.IsNull(25)) round.outcome = {rounds.Real(25), rounds.Real(26)};
      TakeEvaluation(rounds, 27, &round);
    }
  }
  return trajectories;
}

std::optional<RoundRecord> RunDatabase::ReadFailedRound(Purpose purpose, uint64_t step, uint64_t trajectory) {
  Statement select(database_,
                   "SELECT round, suggestion, completion_ids, (SELECT text FROM sources WHERE hash = code_a), "
                   "(SELECT text FROM sources WHERE hash = code_b), coder_outcome, coder_message, coder_prompt_tokens, "
                   "coder_completion_tokens, coder_cost, coder_seconds, coder_attempts, "
                   "EXISTS(SELECT 1 FROM reused_answers u WHERE u.purpose = d.purpose AND u.step = d.step AND "
                   "u.trajectory = d.trajectory AND u.round = d.round) FROM dropped_rounds d "
                   "WHERE purpose = ? AND step = ? AND trajectory = ?");
  select << PurposeName(purpose) << step << trajectory;
  if (!select.Step()) return std::nullopt;
  RoundRecord round;
  round.round = static_cast<uint32_t>(select.Integer(0));
  round.suggestion = select.Text(1);
  const auto completion_ids = select.Values<int32_t>(2);
  round.completion_ids.assign(completion_ids.begin(), completion_ids.end());
  round.code_a = select.Text(3);
  round.code_b = select.Text(4);
  round.answer.outcome = static_cast<kgrpo_coder_outcome>(select.Integer(5));
  round.answer.message = select.Text(6);
  round.answer.prompt_tokens = static_cast<uint64_t>(select.Integer(7));
  round.answer.completion_tokens = static_cast<uint64_t>(select.Integer(8));
  round.answer.cost = select.Real(9);
  round.answer.seconds = select.Real(10);
  round.answer.attempts = static_cast<uint32_t>(select.Integer(11));
  round.answer.reused = select.Integer(12) != 0;
  if (!database_.HasTable("part_failures")) return round;  // of an earlier version, opened for reading only
  Statement failure(database_, "SELECT part, f.message, text, coder_summary, unchanged, " +
                                   std::string(kEvaluationColumns) +
                                   " FROM part_failures f "
                                   "LEFT JOIN sources ON hash = code_c "
                                   "LEFT JOIN evaluations e USING(purpose, step, trajectory, round) "
                                   "LEFT JOIN evaluation_details d USING(purpose, step, trajectory, round) "
                                   "WHERE f.purpose = ? AND f.step = ? AND f.trajectory = ?");
  failure << PurposeName(purpose) << step << trajectory;
  if (!failure.Step()) return round;
  const bool of_reward = failure.Text(0) == RoundPartName(RoundPart::kReward);
  round.failure = {of_reward ? RoundPart::kReward : RoundPart::kEvaluator, failure.Text(1)};
  round.answer.source = failure.Text(2);
  round.answer.summary = failure.Text(3);
  round.unchanged = failure.Integer(4) != 0;
  TakeEvaluation(failure, 5, &round);
  return round;
}

std::map<std::string, BestKernel> RunDatabase::ReadBest(uint64_t up_to_step) {
  std::map<std::string, BestKernel> best;
  Statement select(database_,
                   "SELECT step, problem, trajectory, round, text, speedup, evaluation, baseline, suggestions FROM "
                   "best_kernels JOIN sources ON source = hash WHERE judged_step <= ? ORDER BY judged_step");
  select << up_to_step;
  while (select.Step()) {
    BestKernel kernel;
    kernel.step = static_cast<uint64_t>(select.Integer(0));
    kernel.problem = select.Text(1);
    kernel.trajectory = static_cast<uint64_t>(select.Integer(2));
    kernel.round = static_cast<uint32_t>(select.Integer(3));
    kernel.source = select.Text(4);
    kernel.speedup = select.Real(5);
    kernel.evaluation = EvaluationFromJson(nlohmann::ordered_json::parse(select.Text(6)));
    kernel.baseline = EvaluationFromJson(nlohmann::ordered_json::parse(select.Text(7)));
    kernel.suggestions = nlohmann::ordered_json::parse(select.Text(8)).get<std::vector<std::string>>();
    best[kernel.problem] = std::move(kernel);  // only improvements are recorded, so a later kernel is better
  }
  return best;
}

std::set<std::pair<std::string, std::string>> RunDatabase::ReadRefuted(uint64_t up_to_step) {
  std::set<std::pair<std::string, std::string>> refuted;
  Statement select(database_,
                   "SELECT problem, text FROM refuted_kernels JOIN sources ON source = hash WHERE judged_step <= ?");
  select << up_to_step;
  while (select.Step()) refuted.insert({select.Text(0), select.Text(1)});
  return refuted;
}

uint64_t RunDatabase::LastJudging(uint64_t up_to_step) {
  Statement select(database_, "SELECT coalesce(max(judged_step), 0) FROM judgings WHERE judged_step <= ?");
  select << up_to_step;
  return select.Step() ? static_cast<uint64_t>(select.Integer(0)) : 0;
}

std::vector<StepSummary> RunDatabase::Steps() {
  std::vector<StepSummary> steps;
  Statement select(database_,
                   "SELECT step, stage, stage_name, has_rollouts, reward_mean, "
                   "EXISTS(SELECT 1 FROM rounds r WHERE purpose = 'train' AND r.step = s.step) FROM steps s "
                   "ORDER BY step");
  while (select.Step()) {
    StepSummary& step = steps.emplace_back();
    step.step = static_cast<uint64_t>(select.Integer(0));
    step.stage = static_cast<uint64_t>(select.Integer(1));
    step.stage_name = select.Text(2);
    step.has_rollouts = select.Integer(3) != 0;
    if (select.Integer(5) != 0) step.reward_mean = select.Real(4);
  }
  return steps;
}

std::vector<SettingChange> RunDatabase::ReadChanges() {
  std::vector<SettingChange> changes;
  Statement select(database_, "SELECT after_step, key, before, after FROM changes ORDER BY after_step, key");
  while (select.Step())
    changes.push_back({static_cast<uint64_t>(select.Integer(0)), select.Text(1), select.Text(2), select.Text(3)});
  return changes;
}

std::set<uint64_t> RunDatabase::StepsWithAdvantage() {
  std::set<uint64_t> steps;
  Statement select(database_,
                   "SELECT step FROM steps s WHERE EXISTS(SELECT 1 FROM rounds r LEFT JOIN sample_outcomes o "
                   "USING(step, trajectory, round) WHERE purpose = 'train' AND r.step = s.step AND "
                   "coalesce(abs(advantage), 1) > 1e-9)");
  while (select.Step()) steps.insert(static_cast<uint64_t>(select.Integer(0)));
  return steps;
}

std::vector<std::string> RunDatabase::ReadProblemNames(Purpose purpose) {
  std::vector<std::string> names;
  Statement select(database_, "SELECT name FROM problems WHERE purpose = ? ORDER BY problem");
  select << PurposeName(purpose);
  while (select.Step()) names.push_back(select.Text(0));
  return names;
}

std::set<std::string> RunDatabase::DrawnProblems() {
  std::set<std::string> drawn;
  Statement select(database_, "SELECT DISTINCT problem_name FROM trajectories WHERE purpose != ?");
  select << PurposeName(Purpose::kHeldout);
  while (select.Step()) drawn.insert(select.Text(0));
  return drawn;
}

std::vector<Metric> RunDatabase::MetricSums(const std::string& prefix) {
  std::vector<Metric> sums;
  Statement select(database_,
                   "SELECT name, SUM(value) AS total FROM metrics WHERE substr(name, 1, length(?1)) = ?1 GROUP BY name "
                   "ORDER BY total DESC, name");
  select << prefix;
  while (select.Step()) sums.push_back({select.Text(0), select.Real(1)});
  return sums;
}

std::vector<Metric> RunDatabase::Metrics(uint64_t step) {
  std::vector<Metric> metrics;
  Statement select(database_, "SELECT name, value FROM metrics WHERE step = ? ORDER BY name");
  select << step;
  while (select.Step()) metrics.push_back({select.Text(0), select.Real(1)});
  return metrics;
}

std::vector<std::pair<uint64_t, double>> RunDatabase::MetricCurve(const std::string& name) {
  std::vector<std::pair<uint64_t, double>> curve;
  Statement select(database_, "SELECT step, value FROM metrics WHERE name = ? AND value IS NOT NULL ORDER BY step");
  select << name;
  while (select.Step()) curve.emplace_back(static_cast<uint64_t>(select.Integer(0)), select.Real(1));
  return curve;
}

}  // namespace kgrpo
