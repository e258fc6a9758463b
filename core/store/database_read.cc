// RunDatabase: the reads for a resumed run, the run's summary and the tests.
#include "store/database.h"
#include "store/fields.h"
#include "store/json.h"
#include "store/schema.h"

#include <utility>

namespace kgrpo {

RunProgress ReadProgress(const std::filesystem::path& path) {
  Database database(path, Database::ToRead(path));
  const auto number = [&database](const char* question) {
    Statement statement(database, question);
    return statement.Step() ? statement.Integer(0) : 0;
  };
  const int64_t version = number("PRAGMA user_version");
  const bool empty = number("SELECT count(*) FROM sqlite_master") == 0;
  if (version == 0 && empty) return {.is_empty = true};
  if (version < kOldestSchema || version > kSchemaVersion || !database.HasTable("run") || !database.HasTable("steps") ||
      !database.HasTable("metrics")) {
    return {.is_foreign = true};
  }
  // coder/cost_total has the sums of ReadCoderTotals and the spending that the coder reported beyond them. A stopped
  // run has stored the cost of its last step under the key coder_cost.
  Statement cost(database,
                 "SELECT max(coalesce((SELECT max(value) FROM metrics WHERE name = 'coder/cost_total'), 0), "
                 "coalesce((SELECT CAST(value AS REAL) FROM run WHERE key = 'coder_cost'), 0))");
  Statement purpose(database, "SELECT value FROM run WHERE key = 'purpose'");
  return {.purpose = purpose.Step() ? purpose.Text(0) : PurposeName(Purpose::kTrain),
          .steps = static_cast<uint64_t>(number("SELECT count(*) FROM steps")),
          .finished = number("SELECT count(*) FROM run WHERE key = 'finished'") != 0,
          .coder_cost = cost.Step() ? cost.Real(0) : 0};
}

RunDatabase::RunDatabase(const std::filesystem::path& path, ReadOnly) : database_(path, Database::ToRead(path)) {
  ShowWhole(database_);
  database_.Execute("BEGIN");  // all that is read is of one moment, though a run may be writing
}

RunDatabase RunDatabase::ToRead(const std::filesystem::path& path) { return RunDatabase(path, ReadOnly()); }

std::vector<uint64_t> RunDatabase::StepsWithRounds(Purpose purpose) {
  std::vector<uint64_t> steps;
  Statement select(database_, "SELECT DISTINCT step FROM rounds WHERE purpose = ? ORDER BY step");
  select << PurposeName(purpose);
  while (select.Step()) steps.push_back(static_cast<uint64_t>(select.Integer(0)));
  return steps;
}

std::set<std::string> RunDatabase::RewardParts() {
  std::set<std::string> parts;
  Statement select(database_, "SELECT DISTINCT value.key FROM rounds, json_each(reward_parts) AS value");
  while (select.Step()) parts.insert(select.Text(0));
  return parts;
}

std::vector<TrajectoryRecord> RunDatabase::ReadStep(Purpose purpose, uint64_t step) {
  std::map<uint64_t, std::vector<RoundRecord>> rounds = ReadRounds("rounds", purpose, step),
                                               dropped = ReadRounds("dropped_rounds", purpose, step);
  std::vector<TrajectoryRecord> trajectories;
  Statement select(database_, "SELECT " + TrajectoryColumns().Selected() +
                                  " FROM trajectories WHERE purpose = ? AND step = ? ORDER BY trajectory");
  select << PurposeName(purpose) << step;
  while (select.Step()) {
    TrajectoryRecord& trajectory = trajectories.emplace_back();
    FieldReader fields(select, 0);
    VisitTrajectoryFields(trajectory, fields);
    trajectory.rounds_done = std::move(rounds[trajectory.trajectory]);
    for (RoundRecord& round : dropped[trajectory.trajectory]) trajectory.failed_round = std::move(round);
  }
  return trajectories;
}

// By trajectory.
std::map<uint64_t, std::vector<RoundRecord>> RunDatabase::ReadRounds(const char* table, Purpose purpose,
                                                                     uint64_t step) {
  Statement select(database_, "SELECT trajectory, " + RoundColumns().Selected() + " FROM " + table +
                                  " WHERE purpose = ? AND step = ? ORDER BY trajectory, round");
  select << PurposeName(purpose) << step;
  std::map<uint64_t, std::vector<RoundRecord>> rounds;
  while (select.Step()) {
    FieldReader fields(select, 1);
    VisitFields(rounds[static_cast<uint64_t>(select.Integer(0))].emplace_back(), fields);
  }
  return rounds;
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
                   "EXISTS(SELECT 1 FROM rounds r WHERE " KGRPO_OWN_ROUNDS
                   " AND r.step = s.step) FROM steps s "
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
                   "SELECT step FROM steps s WHERE EXISTS(SELECT 1 FROM rounds r WHERE purpose = 'train' AND "
                   "r.step = s.step AND coalesce(abs(advantage), 1) > 1e-9)");
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

std::map<std::string, std::string> RunDatabase::ReadProblemSources(Purpose purpose) {
  std::map<std::string, std::string> kernels;
  Statement select(database_, "SELECT name, text FROM problems JOIN sources ON source = hash WHERE purpose = ?");
  select << PurposeName(purpose);
  while (select.Step()) kernels[select.Text(0)] = select.Text(1);
  return kernels;
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
