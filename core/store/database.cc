// RunDatabase: opening it and writing; database_read.cc reads.
#include "store/database.h"

#include <kgrpo/support/sha256.h>
#include "store/json.h"
#include "store/schema.h"

#include <kgrpo/sdk/error.h>

#include <utility>

namespace kgrpo {

const char* PurposeName(Purpose purpose) {
  switch (purpose) {
    case Purpose::kTrain:
      return "train";
    case Purpose::kDemonstration:
      return "demonstration";
    case Purpose::kHeldout:
      return "heldout";
  }
  return "unknown";
}

const char* RoundPartName(RoundPart part) {
  switch (part) {
    case RoundPart::kCoder:
      return "coder";
    case RoundPart::kEvaluator:
      return "evaluator";
    case RoundPart::kReward:
      return "reward";
  }
  return "unknown";
}

RunDatabase::RunDatabase(const std::filesystem::path& path, FaultPoints faults)
    : database_(path), faults_(std::move(faults)) {
  Statement version(database_, "PRAGMA user_version");
  version.Step();
  const int64_t found = version.Integer(0);
  version.Run();
  if (found != 0 && found != kSchemaVersion) {  // before anything is written: the file is left as it is
    throw Error(KGRPO_ERROR_UNSUPPORTED, path.string() + " was written by another version (its tables are of version " +
                                             std::to_string(found) + ", this program's of " +
                                             std::to_string(kSchemaVersion) + ")");
  }
  // WAL lets others read while the run writes; FULL makes a commit survive the machine, not only the process.
  database_.Execute("PRAGMA journal_mode = WAL");
  database_.Execute("PRAGMA synchronous = FULL");
  if (found == kSchemaVersion) {
    database_.Execute(kLaterTables);
    return;
  }
  Transaction transaction(database_);
  database_.Execute(kSchema);
  database_.Execute(kLaterTables);
  database_.Execute(("PRAGMA user_version = " + std::to_string(kSchemaVersion)).c_str());
  transaction.Commit();
}

void RunDatabase::SetFinished(double time) {
  Set("finished", std::to_string(time));
  // Fails while another connection reads: the file then stays in WAL mode, which is no failure.
  sqlite3_exec(database_.raw(), "PRAGMA journal_mode = DELETE", nullptr, nullptr, nullptr);
}

void RunDatabase::SetUnfinished() {
  database_.Execute("DELETE FROM run WHERE key = 'finished'");
}

void RunDatabase::WriteChanges(const std::vector<SettingChange>& changes, const std::string& resolved_yaml) {
  Transaction transaction(database_);
  database_.Execute("DELETE FROM changes");
  Statement insert(database_, "INSERT INTO changes VALUES(?, ?, ?, ?)");
  for (const SettingChange& change : changes)
    (insert << change.after_step << change.key << change.before << change.after).Run();
  Set("resolved_yaml", resolved_yaml);
  transaction.Commit();
}

void RunDatabase::Set(const std::string& key, const std::string& value) {
  Statement statement(database_, "INSERT OR REPLACE INTO run VALUES(?, ?)");
  (statement << key << value).Run();
}

std::optional<std::string> RunDatabase::Get(const std::string& key) {
  Statement statement(database_, "SELECT value FROM run WHERE key = ?");
  statement << key;
  if (!statement.Step()) return std::nullopt;
  return statement.Text(0);
}

std::string RunDatabase::WriteSource(const std::string& text) {
  if (text.empty()) return "";
  std::string hash = Sha256(text);
  Statement statement(database_, "INSERT OR IGNORE INTO sources VALUES(?, ?)");
  (statement << hash << text).Run();
  return hash;
}

void RunDatabase::WriteProblems(Purpose purpose, const std::vector<ProblemRecord>& problems) {
  Transaction transaction(database_);
  Statement clear(database_, "DELETE FROM problems WHERE purpose = ?");
  (clear << PurposeName(purpose)).Run();
  Statement insert(database_, "INSERT INTO problems VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  for (size_t i = 0; i < problems.size(); ++i) {
    const ProblemRecord& problem = problems[i];
    (insert << PurposeName(purpose) << static_cast<uint64_t>(i) << problem.name << problem.title << problem.family
            << problem.split << problem.directory << WriteSource(problem.source) << problem.baseline.seconds
            << problem.baseline.modelled << problem.baseline.time_source << problem.baseline.diagnosis)
        .Run();
  }
  transaction.Commit();
}

void RunDatabase::WriteTrajectories(Purpose purpose, uint64_t step, const std::vector<TrajectoryRecord>& trajectories) {
  for (const char* table : {"trajectories", "rounds", "evaluations", "evaluation_details", "dropped_rounds",
                            "part_failures", "reused_answers"}) {
    Statement clear(database_, std::string("DELETE FROM ") + table + " WHERE purpose = ? AND step = ?");
    (clear << PurposeName(purpose) << step).Run();
  }
  Statement insert_trajectory(database_, "INSERT INTO trajectories VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  Statement insert_round(
      database_,
      "INSERT INTO rounds VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, "
      "?, ?, ?, ?)");
  for (const TrajectoryRecord& trajectory : trajectories) {
    (insert_trajectory << PurposeName(purpose) << step << trajectory.trajectory << trajectory.problem
                       << trajectory.problem_name << trajectory.family << trajectory.prompted_as
                       << trajectory.baseline_seconds << trajectory.rounds << trajectory.dropped)
        .Run();
    if (trajectory.failed_round) WriteFailedRound(purpose, step, trajectory.trajectory, *trajectory.failed_round);
    for (const RoundRecord& round : trajectory.rounds_done) {
      const CoderAnswer& answer = round.answer;
      insert_round << PurposeName(purpose) << step << trajectory.trajectory << round.round
                   << MessagesToJson(round.messages) << round.suggestion;
      insert_round.Blob(std::span(round.prompt_ids)).Blob(std::span(round.completion_ids));
      insert_round.Blob(std::span(round.logprobs));
      (insert_round << round.truncated << WriteSource(round.code_a) << WriteSource(round.code_b)
                    << WriteSource(answer.source) << static_cast<int>(answer.outcome) << answer.summary
                    << answer.message << answer.prompt_tokens << answer.completion_tokens << answer.cost
                    << answer.seconds << answer.attempts << round.unchanged << round.applied << round.speedup
                    << round.reward << round.idle_reward << MetricsToJson(round.reward_parts))
          .Run();
      WriteReused(purpose, step, trajectory.trajectory, round);
      if (round.evaluation) WriteEvaluation(purpose, step, trajectory.trajectory, round);
    }
  }
}

void RunDatabase::WriteEvaluation(Purpose purpose, uint64_t step, uint64_t trajectory, const RoundRecord& round) {
  const Evaluation& evaluation = *round.evaluation;
  Statement insert(database_, "INSERT INTO evaluations VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  (insert << PurposeName(purpose) << step << trajectory << round.round << std::to_string(round.evaluation_seed)
          << evaluation.compiled << evaluation.correct << evaluation.verdict << evaluation.seconds
          << evaluation.seconds_low << evaluation.seconds_high << evaluation.modelled << evaluation.time_source
          << evaluation.diagnosis << MetricsToJson(evaluation.metrics) << round.evaluate_seconds)
      .Run();
  if (evaluation.speedup == 0 && evaluation.remarks.empty()) return;
  Statement insert_details(database_, "INSERT INTO evaluation_details VALUES(?, ?, ?, ?, ?, ?, ?, ?)");
  (insert_details << PurposeName(purpose) << step << trajectory << round.round << evaluation.speedup
                  << evaluation.speedup_low << evaluation.speedup_high << RemarksToJson(evaluation.remarks))
      .Run();
}

void RunDatabase::InsertJudged(uint64_t step, const JudgedKernels& judged) {
  Statement insert_best(database_, "INSERT OR REPLACE INTO best_kernels VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  for (const BestKernel& kernel : judged.best) {
    (insert_best << step << kernel.problem << kernel.step << kernel.trajectory << kernel.round
                 << WriteSource(kernel.source) << kernel.speedup << DumpJson(EvaluationToJson(kernel.evaluation))
                 << DumpJson(EvaluationToJson(kernel.baseline)) << DumpJson(kernel.suggestions))
        .Run();
  }
  Statement insert_refuted(database_, "INSERT OR IGNORE INTO refuted_kernels VALUES(?, ?, ?)");
  for (const auto& [problem, source] : judged.refuted) {
    (insert_refuted << step << problem << WriteSource(source)).Run();
  }
  if (judged.complete) {
    Statement insert_judging(database_, "INSERT OR IGNORE INTO judgings VALUES(?)");
    (insert_judging << step).Run();
  }
}

void RunDatabase::WriteJudged(uint64_t step, const JudgedKernels& judged) {
  Transaction transaction(database_);
  InsertJudged(step, judged);
  transaction.Commit();
}

void RunDatabase::InsertTraining(const StepRecord& step) {
  WriteTrajectories(Purpose::kTrain, step.step, step.trajectories);
  Statement clear(database_, "DELETE FROM sample_outcomes WHERE step = ?");
  (clear << step.step).Run();
  Statement insert_outcome(database_, "INSERT INTO sample_outcomes VALUES(?, ?, ?, ?, ?)");
  for (const TrajectoryRecord& trajectory : step.trajectories) {
    for (const RoundRecord& round : trajectory.rounds_done) {
      if (!round.outcome) continue;
      (insert_outcome << step.step << trajectory.trajectory << round.round << round.outcome->returned
                      << round.outcome->advantage)
          .Run();
    }
  }
}

void RunDatabase::WriteTraining(const StepRecord& step) {
  Transaction transaction(database_);
  Statement insert_step(database_, "INSERT OR IGNORE INTO steps VALUES(?, ?, ?, ?, ?, ?)");
  (insert_step << step.step << step.stage << step.stage_name << step.has_rollouts << step.reward_mean
               << step.finished_at)
      .Run();
  InsertTraining(step);
  transaction.Commit();
}

void RunDatabase::WriteStep(const StepRecord& step, const JudgedKernels& judged) {
  Transaction transaction(database_);
  Statement insert_step(database_, "INSERT OR REPLACE INTO steps VALUES(?, ?, ?, ?, ?, ?)");
  (insert_step << step.step << step.stage << step.stage_name << step.has_rollouts << step.reward_mean
               << step.finished_at)
      .Run();
  for (const char* clear_of : {"metrics WHERE step", "optimizer_steps WHERE step", "best_kernels WHERE judged_step",
                               "refuted_kernels WHERE judged_step", "judgings WHERE judged_step"}) {
    Statement clear(database_, std::string("DELETE FROM ") + clear_of + " = ?");
    (clear << step.step).Run();
  }
  Statement insert_metric(database_, "INSERT OR REPLACE INTO metrics VALUES(?, ?, ?)");
  for (const Metric& metric : step.metrics) (insert_metric << step.step << metric.name << metric.value).Run();
  Statement insert_row(database_, "INSERT OR REPLACE INTO optimizer_steps VALUES(?, ?, ?, ?)");
  for (size_t row = 0; row < step.optimizer_steps.size(); ++row) {
    for (const Metric& metric : step.optimizer_steps[row]) {
      (insert_row << step.step << static_cast<uint64_t>(row) << metric.name << metric.value).Run();
    }
  }
  InsertTraining(step);
  Pass(faults_, "database: inside the transaction");
  WriteTrajectories(Purpose::kHeldout, step.step, step.heldout);
  InsertJudged(step.step, judged);
  Pass(faults_, "database: before commit");
  transaction.Commit();
  Pass(faults_, "database: after commit");
}

void RunDatabase::AddMetric(uint64_t step, const Metric& metric) {
  Statement insert(database_, "INSERT OR REPLACE INTO metrics VALUES(?, ?, ?)");
  (insert << step << metric.name << metric.value).Run();
}

bool RunDatabase::HasMetric(uint64_t step, const std::string& name) {
  Statement select(database_, "SELECT 1 FROM metrics WHERE step = ? AND name = ?");
  select << step << name;
  return select.Step();
}

void RunDatabase::AddHeldout(const StepRecord& step) {
  Transaction transaction(database_);
  WriteTrajectories(Purpose::kHeldout, step.step, step.heldout);
  for (const Metric& metric : step.metrics) AddMetric(step.step, metric);
  transaction.Commit();
}

void RunDatabase::WriteDemonstrations(uint64_t first_step, const std::vector<TrajectoryRecord>& trajectories) {
  Transaction transaction(database_);
  WriteTrajectories(Purpose::kDemonstration, first_step, trajectories);
  transaction.Commit();
}

}  // namespace kgrpo
