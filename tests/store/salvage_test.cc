// store/salvage.h: a damaged run.sqlite is read as far as possible; the rest comes from the run's other files.
#include "store/salvage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <kgrpo/support/sqlite.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "store/database.h"
#include "store/rollouts.h"

namespace kgrpo {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

constexpr uint64_t kSteps = 40;
// Of a text: a row of longer ones is on pages of its own besides those of its table.
size_t long_text = 40;

class SalvageTest : public testing::Test {
 protected:
  explicit SalvageTest(size_t text = 40) : folder_(fs::path(KGRPO_BINARY_DIR) / "test_runs" / "salvage") {
    long_text = text;
    fs::remove_all(folder_);
    fs::create_directories(folder_ / "rollouts");
    RunDatabase database(folder_ / "run.sqlite");
    std::ofstream lines(folder_ / "metrics.jsonl");
    for (uint64_t step = 1; step <= kSteps; ++step) {
      const StepRecord record = Step(step);
      JudgedKernels judged;
      BestKernel& best = judged.best.emplace_back();
      best.problem = "softmax";
      best.source = "best of " + std::to_string(step);
      best.step = step;
      database.WriteStep(record, judged);
      WriteRollouts(folder_ / "rollouts", record);
      lines << R"({"step": )" << step << R"(, "stage": 0, "time": 5, "reward": )" << step << "}\n";
    }
    database.SetFinished(1);
  }

 public:
  static StepRecord Step(uint64_t step) {
    StepRecord record;
    record.step = step;
    record.stage_name = "trainer_grpo";
    record.has_rollouts = true;
    record.reward_mean = static_cast<double>(step);
    record.finished_at = 7;
    record.metrics = {{"reward", static_cast<double>(step)}};
    for (uint64_t t = 0; t < 2; ++t) {
      TrajectoryRecord& trajectory = record.trajectories.emplace_back();
      trajectory.trajectory = t;
      trajectory.problem_name = "softmax";
      trajectory.family = "rows";
      trajectory.rounds = 2;
      trajectory.baseline_seconds = 1e-5;
      for (uint32_t r = 0; r < 2; ++r) {
        RoundRecord& round = trajectory.rounds_done.emplace_back();
        round.round = r;
        round.messages = {{"user", std::string(long_text, 'x')}};
        std::ostringstream words;
        words << "suggestion " << step << "/" << t << "/" << r << " " << std::string(long_text, 'y');
        round.suggestion = words.str();
        round.completion_ids = {1, 2};
        round.logprobs = {-0.5F, -1.25F};
        round.code_a = round.code_b = "kernel 0";
        round.answer.source = "kernel " + std::to_string(step);
        round.evaluation.emplace();
        round.evaluation->compiled = round.evaluation->correct = true;
        round.evaluation->verdict = "correct";
        round.evaluation->seconds = 5e-6;
        round.speedup = 2;
        round.reward = static_cast<double>(step);
        round.outcome = Trainer::SampleOutcome{2.5, -0.5};
      }
    }
    record.heldout = {record.trajectories[0]};
    record.trajectories.emplace_back().trajectory = 2;  // dropped in its first round: the step's file has none of it
    return record;
  }

 protected:
  // The bytes of run.sqlite from `begin` on are spoilt.
  void Spoil(size_t begin, size_t count) const {
    std::fstream file(folder_ / "run.sqlite", std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(begin));
    file << std::string(count, '\xff');
  }
  int64_t Number(const std::string& question) const {
    Database database(folder_ / "run.sqlite", Database::ToRead(folder_ / "run.sqlite"));
    Statement select(database, question);
    select.Step();
    return select.Integer(0);
  }
  void SpoilTable(const std::string& name) const {
    const auto page = static_cast<size_t>(Number("PRAGMA page_size"));
    Spoil((static_cast<size_t>(Number("SELECT rootpage FROM sqlite_master WHERE name = '" + name + "'")) - 1) * page,
          page);
  }
  std::string Bytes(const std::string& file) const {
    std::ifstream stream(folder_ / file, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }

  fs::path folder_;
};

// Everything that a reader of the run asks for, of all steps.
void ExpectWhole(const fs::path& file) {
  RunDatabase database = RunDatabase::ToRead(file);
  EXPECT_EQ(database.Steps().size(), kSteps);
  EXPECT_EQ(database.MetricCurve("reward").size(), kSteps);
  for (uint64_t step = 1; step <= kSteps; ++step) {
    const std::vector<TrajectoryRecord> found = database.ReadStep(Purpose::kTrain, step);
    const StepRecord expected = SalvageTest::Step(step);
    ASSERT_GE(found.size(), 2U) << step;
    for (size_t t = 0; t < 2; ++t) {
      ASSERT_EQ(found[t].rounds_done.size(), 2U) << step;
      EXPECT_EQ(found[t].problem_name, "softmax");
      const RoundRecord &round = found[t].rounds_done[1], &wanted = expected.trajectories[t].rounds_done[1];
      EXPECT_EQ(round.suggestion, wanted.suggestion);
      EXPECT_EQ(round.logprobs, wanted.logprobs);
      EXPECT_EQ(round.answer.source, wanted.answer.source);
      EXPECT_EQ(round.reward, wanted.reward);
      ASSERT_TRUE(round.evaluation);
      EXPECT_TRUE(round.evaluation->correct);
    }
  }
}

TEST_F(SalvageTest, AWholeFileIsNotDamaged) {
  EXPECT_FALSE(IsDamaged(folder_ / "run.sqlite"));
  std::ofstream(folder_ / "run.sqlite", std::ios::trunc);
  EXPECT_FALSE(IsDamaged(folder_ / "run.sqlite")) << "an empty file is a database without tables";
  EXPECT_FALSE(IsDamaged(folder_ / "none.sqlite"));
}

// As a run that is not finished leaves it: SQLite would make its log anew beside it.
TEST_F(SalvageTest, ATableThatAnEarlierVersionDidNotHaveIsNotLost) {
  Database(folder_ / "run.sqlite", Database::Mode::kReadWrite).Execute("DROP TABLE changes");
  SpoilTable("rounds");
  const std::string summary = SalvagedRun(folder_).summary();
  EXPECT_THAT(summary, HasSubstr("rounds: "));
  EXPECT_THAT(summary, Not(HasSubstr("changes")));
}

TEST_F(SalvageTest, ReadingLeavesNoFileInTheRunsFolder) {
  fs::remove(folder_ / "run.sqlite");
  { RunDatabase(folder_ / "run.sqlite").WriteStep(Step(1), {}); }
  const auto files = [&] {
    std::set<std::string> names;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder_)) names.insert(entry.path().filename());
    return names;
  };
  const std::set<std::string> before = files();
  EXPECT_FALSE(IsDamaged(folder_ / "run.sqlite"));
  { const SalvagedRun salvaged(folder_); }
  EXPECT_EQ(files(), before);
}

TEST_F(SalvageTest, APageInTheMiddleOfATableIsGotAround) {
  const size_t at = Bytes("run.sqlite").find("suggestion 20/1/0");
  ASSERT_NE(at, std::string::npos);
  const auto page = static_cast<size_t>(Number("PRAGMA page_size"));
  Spoil(at / page * page, page);
  EXPECT_TRUE(IsDamaged(folder_ / "run.sqlite"));
  const std::string before = Bytes("run.sqlite");
  std::string database;
  {
    const SalvagedRun salvaged(folder_);
    database = salvaged.database();
    EXPECT_THAT(salvaged.summary(), HasSubstr("run.sqlite is damaged; of some tables a part is lost (rounds: "));
    EXPECT_THAT(salvaged.summary(), HasSubstr("; from rollouts/: "));
    EXPECT_THAT(salvaged.summary(), Not(HasSubstr("metrics")));
    ExpectWhole(salvaged.database());
    RunDatabase read = RunDatabase::ToRead(salvaged.database());
    EXPECT_EQ(read.ReadStep(Purpose::kHeldout, 20).size(), 1U) << "what was not lost stays";
    const auto best = read.ReadBest(20);
    ASSERT_EQ(best.size(), 1U);
    EXPECT_EQ(best.at("softmax").source, "best of 20");
  }
  EXPECT_FALSE(fs::exists(database)) << "what was read goes with its owner";
  EXPECT_EQ(Bytes("run.sqlite"), before) << "the run's file stays as it is";
}

class SalvageLongTextTest : public SalvageTest {
 protected:
  SalvageLongTextTest() : SalvageTest(6000) {}
};

// SQLite reads such a page as any text.
TEST_F(SalvageLongTextTest, ATextThatLostAPageComesFromTheRollouts) {
  const auto page = static_cast<size_t>(Number("PRAGMA page_size"));
  Spoil((Bytes("run.sqlite").find("suggestion 20/1/0") / page + 1) * page, page);
  const SalvagedRun salvaged(folder_);
  EXPECT_THAT(salvaged.summary(), HasSubstr("; from rollouts/: "));
  ExpectWhole(salvaged.database());
}

TEST_F(SalvageTest, RowsOnBothSidesOfADamagedPageAreReadWithoutOtherFiles) {
  fs::remove_all(folder_ / "rollouts");
  const auto page = static_cast<size_t>(Number("PRAGMA page_size"));
  Spoil(Bytes("run.sqlite").find("suggestion 20/1/0") / page * page, page);
  const SalvagedRun salvaged(folder_);
  RunDatabase database = RunDatabase::ToRead(salvaged.database());
  EXPECT_EQ(database.ReadStep(Purpose::kTrain, 5).at(1).rounds_done.size(), 2U);
  EXPECT_EQ(database.ReadStep(Purpose::kTrain, 35).at(1).rounds_done.size(), 2U);
}

TEST_F(SalvageTest, ALostTableOfMetricsIsReadFromTheirLines) {
  SpoilTable("metrics");
  const SalvagedRun salvaged(folder_);
  EXPECT_THAT(salvaged.summary(), HasSubstr("(metrics: nothing can be read)"));
  EXPECT_THAT(salvaged.summary(), Not(HasSubstr("rollouts"))) << "their steps have what their files have";
  EXPECT_THAT(salvaged.summary(), HasSubstr("; from metrics.jsonl: the metrics of 40 steps"));
  ExpectWhole(salvaged.database());
}

TEST_F(SalvageTest, WithoutADatabaseTheFilesBesideItAreTheRun) {
  Spoil(0, 100);
  EXPECT_TRUE(IsDamaged(folder_ / "run.sqlite"));
  const SalvagedRun salvaged(folder_);
  EXPECT_THAT(salvaged.summary(), HasSubstr(" is damaged; none of its tables can be read; from roll"));
  EXPECT_THAT(salvaged.summary(), HasSubstr("; from rollouts/: 40 steps of training"));
  ExpectWhole(salvaged.database());
}

TEST_F(SalvageTest, AFileThatIsCutOffIsReadAsFarAsItGoes) {
  fs::resize_file(folder_ / "run.sqlite", fs::file_size(folder_ / "run.sqlite") / 2);
  EXPECT_TRUE(IsDamaged(folder_ / "run.sqlite"));
  ExpectWhole(SalvagedRun(folder_).database());
}

}  // namespace
}  // namespace kgrpo
