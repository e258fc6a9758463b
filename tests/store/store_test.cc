// The parts of store/ on their own: the database returns each field that was written, an export's rows have the same
// columns, and files and checkpoints are complete or absent.
#include "base/files.h"
#include "base/log.h"
#include "filled_round.h"
#include "loop/best_kernels.h"
#include "report/export.h"
#include "store/checkpoints.h"
#include "store/database.h"
#include "store/json.h"
#include "store/schema.h"
#include "test.h"

#include <kgrpo/support/sha256.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>

namespace kgrpo {
namespace {

fs::path Folder(const std::string& name) {
  const fs::path folder = fs::path(KGRPO_BINARY_DIR) / "test_runs" / ("store_" + name);
  fs::remove_all(folder);
  fs::create_directories(folder);
  return folder;
}

TrajectoryRecord Trajectory(uint64_t number) {
  TrajectoryRecord trajectory;
  trajectory.trajectory = number;
  trajectory.problem = 3;
  trajectory.problem_name = "vector_add";
  trajectory.family = "elementwise";
  trajectory.baseline_seconds = 2e-5;
  trajectory.rounds = 2;
  RoundRecord first;
  first.messages = {{"system", "be brief"}, {"user", "kernel \"x\"\n\xff"}};
  first.prompt_ids = {1, 2, -3};
  first.completion_ids = {7, 151645};
  first.logprobs = {-0.25f, -1e-7f};
  first.suggestion = "vectorise";
  first.code_a = "a";
  first.code_b = "b";
  first.answer.outcome = KGRPO_CODER_OK;
  first.answer.source = "c";
  first.answer.summary = "vectorised";
  first.answer.cost = 0.01;
  first.answer.prompt_tokens = 12;
  Evaluation& evaluation = first.evaluation.emplace();
  evaluation.compiled = evaluation.correct = true;
  evaluation.verdict = "correct";
  evaluation.seconds = 1e-5;
  evaluation.seconds_low = 0.9e-5;
  evaluation.seconds_high = 1.1e-5;
  evaluation.modelled = true;
  evaluation.time_source = "H100 model";
  evaluation.diagnosis = "bound by DRAM";
  evaluation.metrics = {{"registers", 32}, {"bytes", 1.5}};
  evaluation.speedup = 2;
  evaluation.speedup_low = 1.9;
  evaluation.speedup_high = 2.1;
  evaluation.remarks = {{"Occupancy", "limited by", "registers"}, {"By source line", "", "mostly dram", 12, 0.75}};
  first.evaluation_seed = ~0ull;
  first.applied = true;
  first.speedup = 2;
  first.reward = 2.3;
  first.idle_reward = 1.3;
  first.reward_parts = {{"base", 0.3}, {"speedup", 2}};
  first.outcome = {1.8, 0.25};
  RoundRecord second = first;
  second.round = 1;
  second.answer = CoderAnswer();
  second.answer.outcome = KGRPO_CODER_NOT_APPLICABLE;
  second.answer.message = "no loop";
  second.evaluation.reset();
  second.evaluation_seed = 0;
  second.applied = false;
  second.speedup = 0;
  second.reward = -1;
  second.outcome.reset();
  trajectory.rounds_done = {first, second};
  return trajectory;
}

StepRecord Step(uint64_t step) {
  StepRecord record;
  record.step = step;
  record.stage_name = "trainer_grpo";
  record.has_rollouts = true;
  record.reward_mean = 0.65;
  record.finished_at = 1e9;
  record.trajectories = {Trajectory(0), Trajectory(1)};
  record.metrics = {{"loss", 0.5}, {"kl", std::nan("")}};
  record.optimizer_steps = {{{"loss", 1}}, {{"loss", 2}, {"kl", 3}}};
  return record;
}

TEST(DatabaseTest, EveryFieldOfARoundIsRead) {
  RunDatabase database(Folder("round_trip") / "run.sqlite");
  StepRecord step = Step(4);
  step.trajectories = {test::FilledTrajectory()};
  step.trajectories[0].rounds_done[0].messages[1].content = "kernel \"x\"\n\xff";  // a byte that is not UTF-8
  database.WriteStep(step, {});
  const std::vector<TrajectoryRecord> read = database.ReadStep(Purpose::kTrain, 4);
  ASSERT_EQ(read.size(), 1U);
  step.trajectories[0].rounds_done[0].messages[1].content = "kernel \"x\"\n\xEF\xBF\xBD";
  EXPECT_EQ(test::Shown(read[0]), test::Shown(step.trajectories[0]));
  EXPECT_FALSE(read[0].rounds_done[1].evaluation);
  EXPECT_TRUE(database.ReadStep(Purpose::kHeldout, 4).empty());
}

TEST(DatabaseTest, AStepIsReplacedWhole) {
  RunDatabase database(Folder("replace") / "run.sqlite");
  database.WriteStep(Step(4), {});
  StepRecord smaller = Step(4);
  smaller.trajectories.resize(1);
  smaller.trajectories[0].rounds_done.resize(1);
  smaller.metrics = {{"reward", 1}};
  smaller.optimizer_steps.clear();
  database.WriteStep(smaller, {});
  EXPECT_EQ(database.ReadStep(Purpose::kTrain, 4).size(), 1u);
  EXPECT_EQ(database.ReadStep(Purpose::kTrain, 4)[0].rounds_done.size(), 1u);
  EXPECT_THAT(database.Metrics(4), ElementsAre(Metric{"reward", 1}));
}

TEST(DatabaseTest, AStepThatFailsInBetweenLeavesTheOldOne) {
  const fs::path file = Folder("transaction") / "run.sqlite";
  struct Fault {};
  {
    RunDatabase database(file);
    database.WriteStep(Step(4), {});
  }
  {
    RunDatabase database(file, [](const char* point) {
      if (std::string(point) == "database: before commit") throw Fault();
    });
    StepRecord other = Step(4);
    other.trajectories.clear();
    EXPECT_THROW(database.WriteStep(other, {}), Fault);
  }
  RunDatabase database(file);
  EXPECT_EQ(database.ReadStep(Purpose::kTrain, 4).size(), 2u);
}

TEST(DatabaseTest, TheBestKernelIsTheLatestUpToAStep) {
  RunDatabase database(Folder("best") / "run.sqlite");
  BestKernel kernel;
  kernel.problem = "vector_add";
  kernel.source = "fast";
  kernel.evaluation = *Trajectory(0).rounds_done[0].evaluation;
  kernel.step = 2;
  kernel.speedup = 2;
  kernel.suggestions = {"vectorise", "unroll"};
  database.WriteStep(Step(3), {true, {kernel}, {{"vector_add", "wrong"}}, ""});
  kernel.source = "faster";
  kernel.step = 4;
  kernel.speedup = 3;
  database.WriteStep(Step(5), {false, {kernel}, {}, ""});
  EXPECT_EQ(database.ReadBest(4).at("vector_add").source, "fast");
  EXPECT_EQ(database.ReadBest(5).at("vector_add").source, "faster");
  EXPECT_EQ(database.ReadBest(5).at("vector_add").evaluation.remarks, kernel.evaluation.remarks);
  EXPECT_EQ(database.ReadBest(5).at("vector_add").evaluation.speedup_high, 2.1);
  EXPECT_THAT(database.ReadBest(5).at("vector_add").suggestions, ElementsAre("vectorise", "unroll"));
  EXPECT_EQ(database.ReadBest(5).at("vector_add").step, 4U);
  EXPECT_TRUE(database.ReadBest(2).empty());
  // The step that judged counts, not the one that found.
  EXPECT_TRUE(database.ReadRefuted(2).empty());
  EXPECT_TRUE(database.ReadRefuted(3).contains({"vector_add", "wrong"}));
  EXPECT_EQ(database.LastJudging(2), 0U);
  EXPECT_EQ(database.LastJudging(9), 3U);  // that of step 5 was not finished
  database.WriteStep(Step(3), {});
  EXPECT_TRUE(database.ReadRefuted(9).empty());
  EXPECT_EQ(database.LastJudging(9), 0U);
}

TEST(DatabaseTest, CurvesLeaveOutWhatIsNotANumber) {
  RunDatabase database(Folder("curves") / "run.sqlite");
  database.WriteStep(Step(1), {});
  database.WriteStep(Step(2), {});
  EXPECT_EQ(database.MetricCurve("loss").size(), 2u);
  EXPECT_TRUE(database.MetricCurve("kl").empty());
}

// The run waits as long as another process has a lock, here for longer than a message takes, and says so once.
TEST(DatabaseTest, WaitsForAnotherProcess) {
  const fs::path folder = Folder("locked");
  RunDatabase database(folder / "run.sqlite");
  std::ostringstream lines;
  AlsoLogTo(lines);
  for (int i = 0; i < 2; ++i) {
    Database other(folder / "run.sqlite");
    other.Execute("BEGIN EXCLUSIVE");
    std::jthread holder([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(2500));
      other.Execute("COMMIT");
    });
    database.Set("purpose", "locked " + std::to_string(i));
    EXPECT_EQ(database.Get("purpose"), "locked " + std::to_string(i));
  }
  spdlog::default_logger()->sinks().pop_back();
  const std::string text = lines.str(), told = "run.sqlite is locked by another process";
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2) << text;
  EXPECT_THAT(text, HasSubstr(told));
}

TEST(DatabaseTest, RefusesWhatItCannotRead) {
  const fs::path folder = Folder("refuse");
  std::ofstream(folder / "text") << "this is no database, however long the text in it may be made to be";
  EXPECT_THROW(RunDatabase(folder / "text"), Error);
  for (const int version : {1, 2, 99}) {
    const fs::path file = folder / std::to_string(version);
    Database(file).Execute(("CREATE TABLE rounds(x); PRAGMA user_version = " + std::to_string(version)).c_str());
    const std::string before = ReadFile(file);
    EXPECT_TRUE(ReadProgress(file).is_foreign);
    EXPECT_THAT(test::MessageOf([&] { RunDatabase database(file); }, KGRPO_ERROR_UNSUPPORTED),
                HasSubstr("version " + std::to_string(version)));
    EXPECT_TRUE(ReadFile(file) == before) << "it was written to";
  }
}

// A field of a round is one line of records.h, and a record of before has its default. Pin the new hash. Raise
// kSchemaVersion only if the meaning of a column changed: runs of the version before cannot be resumed then.
TEST(DatabaseTest, TheTablesOfThisVersionArePinned) {
  EXPECT_EQ(kSchemaVersion, 4);
  EXPECT_EQ(Sha256(Schema()).substr(0, 16), "4fc5e820b046fe09") << Schema();
}

// Leaves a record as a version wrote it that did not know these columns and this table.
void MakeEarlier(const fs::path& file) {
  Database earlier(file);
  earlier.Execute(
      "DROP VIEW all_rounds; ALTER TABLE rounds DROP COLUMN coder_estimated; ALTER TABLE rounds DROP COLUMN prompt;"
      "ALTER TABLE rounds DROP COLUMN remarks; ALTER TABLE dropped_rounds DROP COLUMN coder_estimated;"
      "ALTER TABLE trajectories DROP COLUMN prompted_as; ALTER TABLE problems DROP COLUMN title; DROP TABLE changes");
}

TEST(DatabaseTest, EarlierRecordsAreReadWithDefaults) {
  const fs::path file = Folder("earlier") / "run.sqlite";
  StepRecord record = Step(1);
  record.trajectories[0].prompted_as = "other";
  {
    RunDatabase database(file);
    database.WriteStep(record, {});
    database.WriteProblems(Purpose::kTrain, {ProblemRecord{.name = "one", .title = "One"}});
  }
  MakeEarlier(file);
  const std::string before = ReadFile(file);
  {
    RunDatabase database = RunDatabase::ToRead(file);
    const std::vector<TrajectoryRecord> read = database.ReadStep(Purpose::kTrain, 1);
    ASSERT_EQ(read.size(), record.trajectories.size());
    EXPECT_EQ(read[0].prompted_as, "");
    const RoundRecord &round = read[0].rounds_done[0], &written = record.trajectories[0].rounds_done[0];
    EXPECT_FALSE(round.answer.estimated);
    EXPECT_TRUE(round.messages.empty());
    ASSERT_TRUE(round.evaluation);
    EXPECT_TRUE(round.evaluation->remarks.empty());
    EXPECT_EQ(round.evaluation->verdict, written.evaluation->verdict);
    EXPECT_EQ(round.suggestion, written.suggestion);
    EXPECT_EQ(round.completion_ids, written.completion_ids);
    EXPECT_TRUE(database.ReadChanges().empty());
    EXPECT_EQ(ExportRounds(database, Purpose::kTrain, database.RewardParts(), [](const std::string&) {}), 4U);
  }
  {
    RecordToRead reader(file);
    Statement all(reader, "SELECT count(*), sum(coder_estimated) FROM all_rounds");
    ASSERT_TRUE(all.Step());
    EXPECT_EQ(all.Integer(1), 0);
    Statement titles(reader, "SELECT title FROM problems");
    ASSERT_TRUE(titles.Step());
  }
  EXPECT_TRUE(ReadFile(file) == before) << "readers leave the file as it is";

  {
    RunDatabase database(file);  // as resume does
    StepRecord next = Step(2);
    next.trajectories[0].prompted_as = "other";
    database.WriteStep(next, {});
    EXPECT_EQ(database.ReadStep(Purpose::kTrain, 2)[0].prompted_as, "other");
    EXPECT_EQ(database.ReadStep(Purpose::kTrain, 1)[0].prompted_as, "");
    EXPECT_EQ(MessagesToJson(database.ReadStep(Purpose::kTrain, 2)[0].rounds_done[0].messages),
              MessagesToJson(next.trajectories[0].rounds_done[0].messages));
  }
  Database grown(file);
  Statement all(grown, "SELECT prompt FROM all_rounds WHERE step = 2 AND round = 0");
  ASSERT_TRUE(all.Step());
  EXPECT_THAT(all.Text(0), StartsWith("[")) << "the view has the tables' columns by name";
}

TEST(DatabaseTest, RecordsOfVersion3AreReadAndNotContinued) {
  const fs::path file = Folder("version3") / "run.sqlite";
  { RunDatabase(file).WriteStep(Step(1), {}); }
  Database(file).Execute(
      "ALTER TABLE rounds ADD COLUMN coder_lost_cost REAL NOT NULL DEFAULT 0; PRAGMA user_version = 3");
  EXPECT_FALSE(ReadProgress(file).is_foreign);
  EXPECT_EQ(RunDatabase::ToRead(file).ReadStep(Purpose::kTrain, 1).size(), Step(1).trajectories.size());
  EXPECT_THAT(test::MessageOf([&] { RunDatabase database(file); }, KGRPO_ERROR_UNSUPPORTED), HasSubstr("version 3"));
}

// A member that is not a number is NULL in its column, and the others are there.
TEST(DatabaseTest, AGroupIsPresentIfAnyOfItsColumnsIs) {
  RunDatabase database(Folder("not_a_number") / "run.sqlite");
  StepRecord record = Step(1);
  record.trajectories[0].rounds_done[0].outcome = {std::nan(""), 0.5};
  database.WriteStep(record, {});
  const std::vector<RoundRecord> rounds = database.ReadStep(Purpose::kTrain, 1)[0].rounds_done;
  ASSERT_TRUE(rounds[0].outcome);
  EXPECT_TRUE(std::isnan(rounds[0].outcome->returned));
  EXPECT_EQ(rounds[0].outcome->advantage, 0.5);
  EXPECT_FALSE(rounds[1].outcome);
}

TEST(ExportTest, RowsHaveTheSameColumnsAndTypes) {
  RunDatabase database(Folder("export") / "run.sqlite");
  StepRecord record = Step(12);
  record.trajectories[1].rounds_done[0].logprobs.clear();
  record.trajectories[1].rounds_done[0].reward = 1;  // a whole number stays a float
  database.WriteStep(record, {});
  std::vector<nlohmann::ordered_json> rows;
  const auto keep = [&](const std::string& line) { rows.push_back(nlohmann::ordered_json::parse(line)); };
  EXPECT_EQ(ExportRounds(database, Purpose::kTrain, database.RewardParts(), keep), 4U);
  ASSERT_EQ(rows.size(), 4U);
  for (const auto& row : rows) {
    auto expected = rows[0].begin();
    ASSERT_EQ(row.size(), ExportColumns().size() + 1) << "and reward_parts";
    for (auto column = row.begin(); column != row.end(); ++column, ++expected) {
      EXPECT_EQ(column.key(), expected.key());
      if (column.value().is_null()) continue;  // the trainer reported none
      EXPECT_EQ(column.value().type_name(), std::string(expected.value().type_name())) << column.key();
      EXPECT_EQ(column.value().is_number_float(), expected.value().is_number_float()) << column.key();
    }
  }
  EXPECT_DOUBLE_EQ(rows[0]["return"], 1.8);
  EXPECT_DOUBLE_EQ(rows[0]["advantage"], 0.25);
  EXPECT_TRUE(rows[1]["return"].is_null()) << "the trainer reported none";
  EXPECT_TRUE(rows[1]["seconds"].is_null());
  EXPECT_EQ(rows[1]["verdict"], "");
  EXPECT_EQ(rows[0]["prompt"][1]["role"], "user");
  EXPECT_EQ(rows[0]["completion"][0]["content"], "vectorise");
  EXPECT_EQ(rows[0]["evaluation_seed"], "18446744073709551615");
}

TEST(CheckpointsTest, AreThereWholeOrNotAtAll) {
  const fs::path folder = Folder("checkpoints");
  struct Fault {};
  const auto fill = [](const fs::path& path) { std::ofstream(path / "data") << "x"; };
  for (const char* deadly : {"checkpoint: begun", "checkpoint: filled", "checkpoint: before rename"}) {
    Checkpoints checkpoints(folder, [deadly](const char* point) {
      if (std::string(point) == deadly) throw Fault();
    });
    EXPECT_THROW(checkpoints.Write({.step = 5, .stage = 1, .stage_steps = 2}, fill), Fault);
    EXPECT_FALSE(Checkpoints(folder).Last()) << deadly;
    EXPECT_TRUE(fs::is_empty(folder)) << deadly;
  }
  Checkpoints checkpoints(folder);
  checkpoints.Write({.step = 5, .stage = 1, .stage_steps = 2}, fill);
  ASSERT_TRUE(checkpoints.Last());
  EXPECT_EQ(checkpoints.Last()->stage_steps, 2u);
  checkpoints.Write({.step = 5, .stage = 1, .stage_steps = 3}, fill);  // replaces
  EXPECT_EQ(checkpoints.Last()->stage_steps, 3u);
}

TEST(CheckpointsTest, DamageIsSeenByTheFilesSizesAndDigests) {
  const fs::path folder = Folder("damage");
  Checkpoints checkpoints(folder);
  const auto fill = [](const fs::path& path) {
    fs::create_directory(path / "policy");
    std::ofstream(path / "policy/weights") << "12345";
  };
  for (const uint64_t step : {1, 2, 3, 5, 10, 15})
    checkpoints.Write({.step = step, .stage = 0, .stage_steps = step}, fill);
  EXPECT_EQ(checkpoints.Damage(5), "");
  std::ofstream(checkpoints.PathOf(2) / "policy/weights") << "12355";
  EXPECT_EQ(checkpoints.Damage(2),
            (checkpoints.PathOf(2) / "policy/weights").string() + " has changed since it was written");
  std::string state = ReadFile(checkpoints.PathOf(3) / "state.json");
  state.replace(state.find("\"stage_steps\": 3"), 16, "\"stage_steps\": 2");
  std::ofstream(checkpoints.PathOf(3) / "state.json") << state;
  EXPECT_EQ(checkpoints.Damage(3),
            (checkpoints.PathOf(3) / "state.json").string() + " is damaged: it is not the text that was written");
  fs::resize_file(checkpoints.PathOf(5) / "policy/weights", 3);
  EXPECT_NE(checkpoints.Damage(5).find("policy/weights has 3 bytes, and 5 were written"), std::string::npos);
  fs::remove(checkpoints.PathOf(10) / "policy/weights");
  EXPECT_NE(checkpoints.Damage(10).find("policy/weights is missing"), std::string::npos);
  std::ofstream(checkpoints.PathOf(15) / "state.json") << "{";
  EXPECT_THAT(checkpoints.Damage(15), HasSubstr("state.json is damaged"));
  EXPECT_EQ(checkpoints.Last()->step, 10U) << "the last whose state.json can be read";
  // An unreadable checkpoint is not damaged: none is set aside because too many files are open.
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  const rlimit none = {0, before.rlim_max};
  setrlimit(RLIMIT_NOFILE, &none);
  std::optional<kgrpo_error_code> code;
  try {
    checkpoints.Damage(1);
  } catch (const Error& error) {
    code = error.code();
  }
  setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_EQ(code, KGRPO_ERROR_UNAVAILABLE);
  EXPECT_EQ(checkpoints.Damage(1), "");
  checkpoints.SetAside(15);
  EXPECT_THAT(checkpoints.Steps(), ElementsAre(1, 2, 3, 5, 10));
  EXPECT_THAT(checkpoints.WholeSteps(), ElementsAre(1));
}

TEST(CheckpointsTest, KeepTheLastAndTheBest) {
  const fs::path folder = Folder("prune");
  Checkpoints checkpoints(folder);
  for (uint64_t step = 1; step <= 7; ++step)
    checkpoints.Write({.step = step, .stage = 0, .stage_steps = step}, [](const fs::path&) {});
  const auto kept = [&] {
    std::vector<uint64_t> steps;
    for (const CheckpointState& state : checkpoints.List()) steps.push_back(state.step);
    return steps;
  };
  // The third has no score, and step 9 no checkpoint.
  checkpoints.Prune(2, 2, {{1, -0.1}, {2, 0.9}, {4, 0.8}, {5, 0.2}, {6, 0.4}, {9, 1}});
  EXPECT_THAT(kept(), ElementsAre(2, 4, 6, 7));
  checkpoints.Prune(1, 5, {{6, -3}});
  EXPECT_THAT(kept(), ElementsAre(6, 7));
  checkpoints.Prune(0, 0, {});
  EXPECT_THAT(kept(), ElementsAre(7)) << "a run never loses its last";
}

// state.json of an earlier version.
TEST(CheckpointsTest, ThoseOfTheFirstFormatAreRead) {
  const fs::path folder = Folder("first_format");
  fs::create_directories(folder / "step-3");
  std::ofstream(folder / "step-3" / "state.json")
      << R"({"format": 1, "step": 3, "stage": 1, "stage_steps": 2, "reward_mean": 0.5})";
  EXPECT_EQ(Checkpoints(folder).Last()->stage_steps, 2u);
  EXPECT_EQ(Checkpoints(folder).Damage(3), "");
  std::ofstream(folder / "step-3" / "state.json") << R"({"format": 3})";
  EXPECT_THROW(Checkpoints(folder).Damage(3), Error) << "of a later version, which is no damage";
}

// The reference of a stage is one file of several checkpoints: what changed in it is seen in those written later too.
TEST(CheckpointsTest, ASharedFileKeepsItsFirstDigest) {
  const fs::path folder = Folder("shared");
  Checkpoints checkpoints(folder);
  checkpoints.Write({.step = 1, .stage = 0, .stage_steps = 1},
                    [](const fs::path& path) { std::ofstream(path / "reference") << "12345"; });
  std::ofstream(checkpoints.PathOf(1) / "reference") << "12355";
  checkpoints.Write({.step = 2, .stage = 0, .stage_steps = 2}, [&](const fs::path& path) {
    fs::create_hard_link(checkpoints.PathOf(1) / "reference", path / "reference");
  });
  EXPECT_THAT(checkpoints.Damage(2), HasSubstr("reference has changed"));
  checkpoints.Write({.step = 3, .stage = 0, .stage_steps = 3},
                    [](const fs::path& path) { std::ofstream(path / "reference") << "12345"; });
  EXPECT_THAT(checkpoints.WholeSteps(), ElementsAre(3));
}

TEST(FilesTest, AnAtomicWriteLeavesNoOtherFile) {
  const fs::path folder = Folder("files");
  WriteFileAtomically(folder / "a", "one");
  WriteFileAtomically(folder / "a", std::string("t\0o", 3));
  EXPECT_EQ(ReadFile(folder / "a"), std::string("t\0o", 3));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), {}), 1);
  EXPECT_THROW(WriteFileAtomically(folder / "none" / "a", ""), Error);
  EXPECT_THROW(ReadFile(folder / "none"), Error);
}

TEST(KernelsTest, EvidenceNamesTheSource) {
  const fs::path folder = Folder("kernels");
  BestKernel kernel;
  kernel.problem = "vector_add";
  kernel.source = "abc";
  kernel.speedup = 2;
  WriteBestKernel(folder, kernel);
  const auto evidence = nlohmann::json::parse(ReadFile(folder / "vector_add" / "evidence.json"));
  // SHA-256 of "abc": FIPS 180-4's example.
  EXPECT_EQ(evidence["source_sha256"], "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(ReadFile(folder / "vector_add" / "best.cu"), "abc");
}

}  // namespace
}  // namespace kgrpo
