// A run.sqlite written by an earlier version of the program (tests/store/earlier): its content is read, a run can
// continue in it, and one that cannot be read stays unchanged.
#include "store/database.h"
#include "store/files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <kgrpo/sdk/error.h>

#include <filesystem>
#include <string>

namespace kgrpo {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The database of an earlier version, in a folder of its own.
fs::path Earlier(const std::string& name) {
  const fs::path folder = fs::path(KGRPO_BINARY_DIR) / "test_runs" / ("earlier_" + name);
  fs::remove_all(folder);
  fs::create_directories(folder);
  const std::string sql = ReadFile(fs::path(KGRPO_SOURCE_DIR) / "tests/store/earlier" / (name + ".sql"));
  Database(folder / "run.sqlite").Execute(sql.c_str());
  return folder / "run.sqlite";
}

class EarlierVersionTest : public ::testing::TestWithParam<const char*> {
 protected:
  bool keeps_dropped_rounds() const { return GetParam() == std::string("run_2_dropped_rounds"); }
};

TEST_P(EarlierVersionTest, IsReadWhole) {
  const fs::path file = Earlier(GetParam());
  EXPECT_FALSE(ReadProgress(file).is_foreign);
  EXPECT_EQ(ReadProgress(file).steps, 1u);
  EXPECT_TRUE(ReadProgress(file).finished);

  RunDatabase database(file);
  ASSERT_EQ(database.Steps().size(), 1u);
  EXPECT_EQ(database.Steps()[0].step, 4u);
  EXPECT_THAT(database.MetricCurve("loss"), ElementsAre(std::pair(uint64_t{4}, 0.5)));
  const std::vector<TrajectoryRecord> step = database.ReadStep(Purpose::kTrain, 4);
  ASSERT_EQ(step.size(), 2u);
  ASSERT_EQ(step[0].rounds_done.size(), 2u);
  const RoundRecord& round = step[0].rounds_done[0];
  EXPECT_EQ(round.suggestion, "vectorise");
  EXPECT_THAT(round.prompt_ids, ElementsAre(1, 2, -3));
  EXPECT_EQ(round.code_b, "b");
  EXPECT_EQ(round.answer.source, "c");
  EXPECT_EQ(round.reward, 2.3);
  ASSERT_TRUE(round.evaluation);
  EXPECT_EQ(round.evaluation->verdict, KGRPO_VERDICT_CORRECT) << "which was \"right\"";
  EXPECT_EQ(round.evaluation->seconds, 1e-5);
  EXPECT_EQ(round.evaluation_seed, ~uint64_t{0});
  EXPECT_FALSE(round.answer.reused) << "nobody said so";
  EXPECT_FALSE(step[0].rounds_done[1].evaluation);
  EXPECT_THAT(step[1].dropped, HasSubstr("round 1"));
  ASSERT_EQ(step[1].failed_round.has_value(), keeps_dropped_rounds());
  if (keeps_dropped_rounds()) {
    EXPECT_EQ(step[1].failed_round->suggestion, "tile");
    EXPECT_EQ(step[1].failed_round->answer.attempts, 8u);
    EXPECT_FALSE(step[1].failed_round->answer.reused);
  }
  EXPECT_EQ(database.ReadBest(4).at("vector_add").source, "c");
  EXPECT_EQ(database.ReadBest(4).at("vector_add").evaluation.verdict, KGRPO_VERDICT_CORRECT);
  EXPECT_EQ(database.ReadBest(4).at("vector_add").evaluation.seconds, 1e-5);
  EXPECT_TRUE(database.ReadRefuted(4).contains({"vector_add", "wrong"}));
  EXPECT_EQ(database.LastJudging(4), 4u);
  const CoderTotals totals = database.ReadCoderTotals(4);
  EXPECT_EQ(totals.answers, keeps_dropped_rounds() ? 3u : 2u);
  EXPECT_EQ(totals.reused, 0u);
  EXPECT_DOUBLE_EQ(totals.cost, keeps_dropped_rounds() ? 0.04 : 0.02);
}

TEST_P(EarlierVersionTest, ARunGoesOnInIt) {
  const fs::path file = Earlier(GetParam());
  StepRecord next;
  next.step = 5;
  next.stage_name = "trainer_grpo";
  next.has_rollouts = true;
  next.trajectories = RunDatabase(file).ReadStep(Purpose::kTrain, 4);
  next.trajectories[0].rounds_done[0].answer.reused = true;
  next.trajectories[1].failed_round = next.trajectories[0].rounds_done[1];
  next.trajectories[1].failed_round->answer.reused = true;
  RunDatabase(file).WriteStep(next, {});
  RunDatabase again(file);
  EXPECT_EQ(again.Steps().size(), 2u);
  const std::vector<TrajectoryRecord> read = again.ReadStep(Purpose::kTrain, 5);
  ASSERT_EQ(read.size(), 2u);
  EXPECT_TRUE(read[0].rounds_done.at(0).answer.reused);
  EXPECT_FALSE(read[0].rounds_done.at(1).answer.reused);
  ASSERT_TRUE(read[1].failed_round);
  EXPECT_EQ(read[1].failed_round->suggestion, "unroll");
  EXPECT_TRUE(read[1].failed_round->answer.reused);
  EXPECT_EQ(again.ReadStep(Purpose::kTrain, 4).size(), 2u) << "what was there stays";
}

INSTANTIATE_TEST_SUITE_P(EachOfThisVersion, EarlierVersionTest, ::testing::Values("run_2", "run_2_dropped_rounds"),
                         [](const auto& info) { return std::string(info.param); });

TEST(EarlierVersionsTest, VersionOneIsRefusedAndStaysAsItIs) {
  const fs::path file = Earlier("run_1");
  const std::string before = ReadFile(file);
  EXPECT_TRUE(ReadProgress(file).is_foreign);
  try {
    RunDatabase database(file);
    ADD_FAILURE() << "it was opened";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), KGRPO_ERROR_UNSUPPORTED);
    EXPECT_THAT(error.what(), HasSubstr("its tables are of version 1, this program's of 2"));
  }
  EXPECT_TRUE(ReadFile(file) == before) << "it was written to";
}

}  // namespace
}  // namespace kgrpo
