// run.sqlite: everything that happened in a run, one transaction a step. Written by the loop through RunDatabase; read
// by resume, reports and comparisons (and by anybody's sqlite3 shell: docs/run_folder.md has the tables).
#ifndef KGRPO_STORE_DATABASE_H
#define KGRPO_STORE_DATABASE_H

#include <kgrpo/support/sqlite.h>
#include "store/fault.h"
#include "store/records.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace kgrpo {

// The text of a run that ended before its planned steps: "after step 41 of 60: why".
inline constexpr const char* kEndedEarly = "ended_early";

// A problem as the run opened it.
struct ProblemRecord {
  std::string name, title, family, split, directory, source;
  Evaluation baseline;
};

// A row of the table `steps`.
struct StepSummary {
  uint64_t step = 0, stage = 0;
  std::string stage_name;
  bool has_rollouts = false;
  std::optional<double> reward_mean;  // mean reward of the step's samples; unset if there were none
};

// Totals of the coder's work in a run: training, demonstrations and held-out episodes.
struct CoderTotals {
  uint64_t answers = 0;
  uint64_t errors = 0;  // answers without a kernel through a fault of the coder's own
  uint64_t reused = 0;  // answers from a recording or a cache
  uint64_t tokens = 0;
  double cost = 0;  // US dollars
};

// How often a part failed for one reason.
struct RoundFaultCount {
  RoundPart part = RoundPart::kCoder;
  std::string kind;  // the coder's outcome; empty for the others
  std::string message;
  size_t count = 0;
};

// How far a run has come.
struct RunProgress {
  bool is_foreign = false;  // the file is of another program or another version; the rest is unknown
  bool is_empty = false;    // it has no tables: a run that was killed before it made them, or a file that was emptied
  std::string purpose = PurposeName(Purpose::kTrain);  // purpose of the whole run; else "evaluation" or "search"
  uint64_t steps = 0;
  bool finished = false;
  double coder_cost = 0;  // US dollars; for a killed run only of those steps; 0 if unknown
};

// Reads the progress without changing the file, whatever it is. Throws KGRPO_ERROR_UNAVAILABLE if it cannot be read.
RunProgress ReadProgress(const std::filesystem::path& path);

// One thread at a time.
class RunDatabase {
 public:
  // Opens the file, and makes it and its tables where it is new. A file of another schema is KGRPO_ERROR_UNSUPPORTED.
  explicit RunDatabase(const std::filesystem::path& path, FaultPoints faults = {});

  // Opens an existing file of this version (ReadProgress) for reading only: its state at the first read.
  static RunDatabase ToRead(const std::filesystem::path& path);

  // Records that the run finished at `time` (seconds since 1970) and leaves one plain file, which can be read where
  // nothing can be written.
  void SetFinished(double time);
  void SetUnfinished();  // a finished run gets more steps
  // Named texts about the run: "resolved_yaml", "evaluator", "finished", "coder_cost";
  // of a run that does not train "purpose" and "options" (loop/identity.h, BeginRecord).
  void Set(const std::string& key, const std::string& value);
  std::optional<std::string> Get(const std::string& key);
  // Keeps the part of a rollout that an error ended (loop/coder_cost.h), until its trajectories are written.
  void WriteUnfinished(Purpose purpose, uint64_t step, const std::vector<uint8_t>& bytes);
  // Reads the part of that purpose and step; without one, all parts.
  std::vector<std::vector<uint8_t>> ReadUnfinished(std::optional<std::pair<Purpose, uint64_t>> of = std::nullopt);

  // Replaces the record of the settings that were changed on the way, and the text "resolved_yaml" that they led to.
  // `inputs`: the digests of what it reads (store/inputs.h), as JSON.
  void WriteChanges(const std::vector<SettingChange>& changes, const std::string& resolved_yaml,
                    const std::string& inputs = "{}");
  std::vector<SettingChange> ReadChanges();  // by step, then by key

  void WriteProblems(Purpose purpose, const std::vector<ProblemRecord>& problems);
  std::vector<std::string> ReadProblemNames(Purpose purpose);              // by index
  std::map<std::string, std::string> ReadProblemSources(Purpose purpose);  // each problem's starting kernel

  // Replaces everything that is recorded of the step, and notes which kernels were judged again at its end.
  void WriteStep(const StepRecord& step, const JudgedKernels& judged);
  // Adds a metric that became known only after its step was written.
  void AddMetric(uint64_t step, const Metric& metric);
  bool HasMetric(uint64_t step, const std::string& name);
  // Adds the held-out trajectories and metrics of `step`, which were recorded only after the step was written.
  void AddHeldout(const StepRecord& step);
  // Adds the kernels that were judged since the step was written.
  void WriteJudged(uint64_t step, const JudgedKernels& judged);
  // Replaces the demonstrations of the stage that begins with that step.
  void WriteDemonstrations(uint64_t first_step, const std::vector<TrajectoryRecord>& trajectories);

  // The best kernel of each problem, by its name, as judged up to the end of that step.
  std::map<std::string, BestKernel> ReadBest(uint64_t up_to_step);
  // The kernels refuted by the end of that step: (problem, source).
  std::set<std::pair<std::string, std::string>> ReadRefuted(uint64_t up_to_step);
  // The last step up to that one at whose end no kernel was left to judge; 0: none.
  uint64_t LastJudging(uint64_t up_to_step);

  // Problems of the trajectories that were trained on, demonstrations included.
  std::set<std::string> DrawnProblems();

  // Totals of all steps up to that one, and of demonstrations that were collected before the next step.
  CoderTotals ReadCoderTotals(uint64_t up_to_step);
  // The faults in all steps, by part, kind and message; those of the coder as CoderTotals::errors counts them.
  std::vector<RoundFaultCount> ReadRoundFaults();

  std::vector<StepSummary> Steps();
  // The steps with a sample whose advantage is more than a rounding error away from 0, or is not known.
  std::set<uint64_t> StepsWithAdvantage();
  std::vector<Metric> Metrics(uint64_t step);
  // Sums over all steps of the metrics whose name begins so, largest first.
  std::vector<Metric> MetricSums(const std::string& prefix);
  // Values of one metric, by step.
  std::vector<std::pair<uint64_t, double>> MetricCurve(const std::string& name);

  // The steps with recorded rounds of that purpose, in order.
  std::vector<uint64_t> StepsWithRounds(Purpose purpose);
  // The names of the parts that the run's rewards consist of, of all rounds.
  std::set<std::string> RewardParts();

  // The step's recorded rounds with everything that a coder and an evaluator said, so that a replay can use it instead
  // of asking again. Empty when the step is not there.
  std::vector<TrajectoryRecord> ReadStep(Purpose purpose, uint64_t step);

 private:
  struct ReadOnly {};
  RunDatabase(const std::filesystem::path& path, ReadOnly);

  void InsertJudged(uint64_t step, const JudgedKernels& judged);
  void WriteTrajectories(Purpose purpose, uint64_t step, const std::vector<TrajectoryRecord>& trajectories);
  std::map<uint64_t, std::vector<RoundRecord>> ReadRounds(const char* table, Purpose purpose, uint64_t step);
  std::string WriteSource(const std::string& text);  // returns its hash; "" for an empty text

  Database database_;
  FaultPoints faults_;
};

}  // namespace kgrpo
#endif
