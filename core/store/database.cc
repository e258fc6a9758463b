// RunDatabase: opening it and writing; database_read.cc reads.
#include "store/database.h"

#include <kgrpo/support/sha256.h>
#include "base/cancel.h"
#include "store/fields.h"
#include "store/json.h"
#include "store/schema.h"

#include <kgrpo/sdk/error.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

namespace kgrpo {

const char* PurposeName(Purpose purpose) {
  switch (purpose) {
    case Purpose::kTrain: return "train";
    case Purpose::kDemonstration: return "demonstration";
    case Purpose::kHeldout: return "heldout";
    case Purpose::kEvaluation: return "evaluation";
    case Purpose::kSearch: return "search";
    case Purpose::kGreedy: return "greedy";
  }
  return "unknown";
}

const char* RoundPartName(RoundPart part) {
  switch (part) {
    case RoundPart::kCoder: return "coder";
    case RoundPart::kEvaluator: return "evaluator";
    case RoundPart::kReward: return "reward";
  }
  return "unknown";
}

RoundPart RoundPartOf(const std::string& name) {
  for (const RoundPart part : kRoundParts) {
    if (name == RoundPartName(part)) return part;
  }
  throw Error(KGRPO_ERROR_INVALID, "the record names an unknown part: " + name);
}

namespace {

// For the writer of a run: it waits for a lock of another process as long as that takes, and says so once a wait. After
// a stop request it waits a little longer.
std::function<bool(double seconds)> Patience(const std::string& path) {
  constexpr double kTell = 2, kAfterStop = 10;
  return [path, told = false, stopped = std::optional<double>()](double seconds) mutable {
    if (seconds < kTell) {
      told = false;
      stopped.reset();
    } else if (!std::exchange(told, true)) {
      spdlog::warn("{} is locked by another process: the run waits until it is free", path);
    }
    if (!CancelRequested()) return true;
    if (!stopped) stopped = seconds;
    return seconds - *stopped < kAfterStop;
  };
}

std::string PlacesOf(size_t count) {
  std::string places = "?";
  for (size_t i = 1; i < count; ++i) places += ", ?";
  return places;
}

std::string UnfinishedKey(Purpose purpose, uint64_t step) {
  return std::string("unfinished ") + PurposeName(purpose) + " " + std::to_string(step);
}

}  // namespace

RunDatabase::RunDatabase(const std::filesystem::path& path, FaultPoints faults)
    : database_(path), faults_(std::move(faults)) {
  database_.WaitForLocks(Patience(path.string()));
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
  Transaction transaction(database_);
  if (found == kSchemaVersion)
    GrowTables(database_);
  else
    database_.Execute(Schema().c_str());
  database_.Execute(("PRAGMA user_version = " + std::to_string(kSchemaVersion)).c_str());
  transaction.Commit();
}

void RunDatabase::SetFinished(double time) {
  Set("finished", std::to_string(time));
  database_.Execute("DELETE FROM run WHERE key GLOB 'unfinished *'");
  database_.WaitForLocks({});
  // Fails while another connection reads: the file then stays in WAL mode, which is no failure.
  sqlite3_exec(database_.raw(), "PRAGMA journal_mode = DELETE", nullptr, nullptr, nullptr);
}

void RunDatabase::SetUnfinished() { database_.Execute("DELETE FROM run WHERE key IN ('finished', 'ended_early')"); }

void RunDatabase::WriteChanges(const std::vector<SettingChange>& changes, const std::string& resolved_yaml,
                               const std::string& inputs) {
  Transaction transaction(database_);
  database_.Execute("DELETE FROM changes");
  Statement insert(database_, "INSERT INTO changes VALUES(?, ?, ?, ?)");
  for (const SettingChange& change : changes)
    (insert << change.after_step << change.key << change.before << change.after).Run();
  Set("resolved_yaml", resolved_yaml);
  Set("inputs", inputs);
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

void RunDatabase::WriteUnfinished(Purpose purpose, uint64_t step, const std::vector<uint8_t>& bytes) {
  // The column is of texts; the cast changes no byte.
  Statement statement(database_, "INSERT OR REPLACE INTO run VALUES(?, CAST(? AS TEXT))");
  (statement << UnfinishedKey(purpose, step)).Blob(std::span(bytes)).Run();
}

std::vector<std::vector<uint8_t>> RunDatabase::ReadUnfinished(std::optional<std::pair<Purpose, uint64_t>> of) {
  Statement select(database_, "SELECT CAST(value AS BLOB) FROM run WHERE key GLOB ?");
  select << (of ? UnfinishedKey(of->first, of->second) : "unfinished *");
  std::vector<std::vector<uint8_t>> all;
  while (select.Step()) {
    const auto bytes = select.Values<uint8_t>(0);
    all.emplace_back(bytes.begin(), bytes.end());
  }
  return all;
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
  for (const char* table : {"trajectories", "rounds", "dropped_rounds"}) {
    Statement clear(database_, std::string("DELETE FROM ") + table + " WHERE purpose = ? AND step = ?");
    (clear << PurposeName(purpose) << step).Run();
  }
  if (!trajectories.empty()) {
    Statement clear(database_, "DELETE FROM run WHERE key = ?");
    (clear << UnfinishedKey(purpose, step)).Run();
  }
  const auto insert_into = [](const std::string& table, const std::string& keys, const ColumnList& list) {
    const size_t count = list.columns().size() + static_cast<size_t>(std::ranges::count(keys, ','));
    return "INSERT INTO " + table + "(" + keys + list.Names() + ") VALUES(" + PlacesOf(count) + ")";
  };
  Statement insert_trajectory(database_, insert_into("trajectories", "purpose, step, ", TrajectoryColumns()));
  Statement insert_round(database_, insert_into("rounds", "purpose, step, trajectory, ", RoundColumns()));
  Statement insert_dropped(database_, insert_into("dropped_rounds", "purpose, step, trajectory, ", RoundColumns()));
  const auto source = [this](const std::string& text) { return WriteSource(text); };
  for (const TrajectoryRecord& trajectory : trajectories) {
    FieldWriter fields(insert_trajectory << PurposeName(purpose) << step, source);
    VisitTrajectoryFields(trajectory, fields);
    insert_trajectory.Run();
    const auto write = [&](Statement& insert, const RoundRecord& round) {
      FieldWriter round_fields(insert << PurposeName(purpose) << step << trajectory.trajectory, source);
      VisitFields(round, round_fields);
      insert.Run();
    };
    for (const RoundRecord& round : trajectory.rounds_done) write(insert_round, round);
    if (trajectory.failed_round) write(insert_dropped, *trajectory.failed_round);
  }
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
  WriteTrajectories(step.purpose, step.step, step.trajectories);
  Pass(faults_, "database: inside the transaction");
  WriteTrajectories(Purpose::kHeldout, step.step, step.heldout);
  WriteTrajectories(Purpose::kGreedy, step.step, step.greedy);
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
  WriteTrajectories(Purpose::kGreedy, step.step, step.greedy);
  for (const Metric& metric : step.metrics) AddMetric(step.step, metric);
  transaction.Commit();
}

void RunDatabase::WriteDemonstrations(uint64_t first_step, const std::vector<TrajectoryRecord>& trajectories) {
  Transaction transaction(database_);
  WriteTrajectories(Purpose::kDemonstration, first_step, trajectories);
  transaction.Commit();
}

}  // namespace kgrpo
