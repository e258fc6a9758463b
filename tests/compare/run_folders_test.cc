// Comparing runs by their folders: for equal runs the rate of false differences is as stated. A damaged or incomplete
// folder, or one of another version, is reported in one sentence.
#include "compare/compare.h"
#include "compare/comparison_json.h"
#include "store/database.h"
#include "test.h"

namespace kgrpo {
namespace {

fs::path Folder(const std::string& name) { return fs::path(KGRPO_BINARY_DIR) / "test_runs" / ("compare_" + name); }

// A run of one step with a held-out measurement: eight problems, one episode of one round each.
void WriteRun(const fs::path& folder, uint64_t seed, int rounds, const std::vector<double>& rewards) {
  fs::remove_all(folder);
  fs::create_directories(folder);
  std::ofstream(folder / "resolved.yaml") << "seed: " << seed << "\nloop: {rounds: " << rounds << "}\n";
  RunDatabase database(folder / "run.sqlite");
  StepRecord step;
  step.step = 1;
  step.stage_name = "trainer";
  for (size_t i = 0; i < rewards.size(); ++i) {
    TrajectoryRecord& trajectory = step.heldout.emplace_back();
    trajectory.trajectory = i;
    trajectory.problem_name = "p" + std::to_string(i);
    trajectory.rounds = 1;
    trajectory.rounds_done.emplace_back().reward = rewards[i];
  }
  database.WriteStep(step, {});
  database.SetFinished(1);
}

// Gives a run's rounds other rewards: much quicker than another run, which is brought to the disk.
void SetRewards(const fs::path& folder, const std::vector<double>& rewards) {
  Database database(folder / "run.sqlite");
  database.Execute("PRAGMA synchronous = OFF");
  Transaction transaction(database);
  for (size_t i = 0; i < rewards.size(); ++i) {
    Statement update(database, "UPDATE rounds SET reward = ? WHERE trajectory = ?");
    update << rewards[i] << static_cast<uint64_t>(i);
    update.Run();
  }
  transaction.Commit();
}

TEST(CompareFoldersTest, MaxStepsIsNoDifferenceWhereEachStageHasItsOwn) {
  std::vector<std::string> folders;
  for (const std::string max_steps : {"3", "100"}) {
    const fs::path folder = Folder("max_steps") / max_steps;
    WriteRun(folder, folders.size(), 4, {1});
    std::ofstream(folder / "resolved.yaml") << "loop: {max_steps: " << max_steps << "}\ntrainer: [{steps: 2}]\n";
    folders.push_back(folder.string());
  }
  std::vector<std::string> left_out;
  EXPECT_EQ(GroupRuns(ReadRuns(folders, &left_out)).size(), 1U);
  for (const std::string& folder : folders) {
    std::ofstream(fs::path(folder) / "resolved.yaml")
        << "loop: {max_steps: " << fs::path(folder).filename().string() << "}\ntrainer: [{steps: 2}, {}]\n";
  }
  EXPECT_EQ(GroupRuns(ReadRuns(folders, &left_out)).size(), 2U);
}

// Pairs of runs that differ in name alone: what a seed decides is shared, noise is not.
TEST(CompareFoldersTest, FortyPairsThatAreAlikeAreSeldomCalledDifferent) {
  std::mt19937 random(11);
  std::normal_distribution<double> normal(0, 1);
  int wrong = 0;
  for (int pair = 0; pair < 40; ++pair) {
    std::vector<std::string> folders;
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      std::vector<double> shared(8);
      for (double& value : shared) value = 3 * normal(random);
      for (const int rounds : {4, 5}) {
        std::vector<double> rewards = shared;
        for (double& reward : rewards) reward += normal(random);
        const fs::path folder = Folder("alike") / (std::to_string(rounds) + "-" + std::to_string(seed));
        if (pair == 0) WriteRun(folder, seed, rounds, rewards);
        SetRewards(folder, rewards);
        folders.push_back(folder.string());
      }
    }
    std::vector<std::string> left_out;
    const std::vector<RunGroup> groups = GroupRuns(ReadRuns(folders, &left_out));
    ASSERT_EQ(groups.size(), 2U);
    for (const Comparison& comparison : Compare(groups)) {
      if (comparison.measure->name != "heldout_reward") continue;
      EXPECT_EQ(comparison.basis, Basis::kPairedSeeds);
      wrong += comparison.differs() ? 1 : 0;
    }
  }
  EXPECT_LE(wrong, 5) << "of 40; more than 5 come with a probability of 1.4% at 5%";
}

// Two held-out problems of two episodes, measured twice; three training problems, of which two have confirmed kernels.
TEST(CompareFoldersTest, BestSpeedupByProblemTakesTheBestEpisodeAndTheConfirmedKernels) {
  const fs::path folder = Folder("best");
  fs::remove_all(folder);
  fs::create_directories(folder);
  std::ofstream(folder / "resolved.yaml") << "seed: 1\n";
  {
    RunDatabase database(folder / "run.sqlite");
    std::vector<ProblemRecord> problems(3);
    for (size_t i = 0; i < problems.size(); ++i) problems[i].name = "t" + std::to_string(i);
    database.WriteProblems(Purpose::kTrain, problems);
    for (uint64_t at = 1; at <= 2; ++at) {
      StepRecord step;
      step.step = at;
      step.stage_name = "trainer";
      for (const auto& [problem, speedup] :
           std::vector<std::pair<std::string, double>>{{"p", 2.0}, {"p", 8.0}, {"q", 0.5}, {"q", 0.25}}) {
        TrajectoryRecord& trajectory = step.heldout.emplace_back();
        trajectory.trajectory = step.heldout.size() - 1;
        trajectory.problem_name = problem;
        trajectory.rounds = 1;
        trajectory.rounds_done.emplace_back().speedup = at == 2 ? speedup : 100;
      }
      JudgedKernels judged;
      BestKernel& kernel = judged.best.emplace_back();
      kernel.problem = "t" + std::to_string(at);
      kernel.source = "kernel " + std::to_string(at);
      kernel.speedup = at == 1 ? 3 : 9;
      database.WriteStep(step, judged);
    }
    database.SetFinished(1);
  }
  const RunMeasures run = ReadMeasures(folder, "");
  EXPECT_NEAR(run.values.at("heldout_best"), 2.8284271247461903, 1e-12) << "the root of 8 (p) and 1 (q, never faster)";
  EXPECT_NEAR(run.values.at("verified_best"), 3, 1e-12) << "the cube root of 1, 3 and 9";
  EXPECT_EQ(run.by_problem.at("heldout_best"), (std::map<std::string, double>{{"p", 8}, {"q", 1}}));
  EXPECT_EQ(run.by_problem.at("verified_best"), (std::map<std::string, double>{{"t0", 1}, {"t1", 3}, {"t2", 9}}));
}

// A run that crashed in its first step has problems, and a reference of each: that is no result.
TEST(CompareFoldersTest, ARunWithoutAStepIsInNoVerdict) {
  const fs::path good = Folder("with_steps"), crashed = Folder("without_steps");
  const auto write_problems = [](const fs::path& folder) {
    RunDatabase database(folder / "run.sqlite");
    std::vector<ProblemRecord> problems(6);
    for (size_t i = 0; i < problems.size(); ++i) problems[i].name = "t" + std::to_string(i);
    database.WriteProblems(Purpose::kTrain, problems);
    return database.Steps().size();
  };
  WriteRun(good, 1, 4, {1, 2});
  write_problems(good);
  Database(good / "run.sqlite").Execute("INSERT OR IGNORE INTO judgings VALUES(1)");
  fs::remove_all(crashed);
  fs::create_directories(crashed);
  std::ofstream(crashed / "resolved.yaml") << "seed: 1\nloop: {rounds: 3}\n";
  ASSERT_EQ(write_problems(crashed), 0U);
  std::vector<std::string> left_out;
  const std::vector<RunGroup> groups = GroupRuns(ReadRuns({good.string(), crashed.string()}, &left_out));
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(groups[0].runs[0].values.at("verified_best"), 1);
  EXPECT_TRUE(groups[1].runs[0].values.empty());
  EXPECT_TRUE(Compare(groups).empty());
  EXPECT_EQ(NotesOf(groups, {"another"}).front(), crashed.string() + " finished no step: no verdict is of it");
}

TEST(CompareFoldersTest, RunsThatDifferInTheirSeedAloneAreSaidToBeOneGroup) {
  const fs::path one = Folder("seed_one"), two = Folder("seed_two"), unlike = Folder("seed_unlike");
  WriteRun(one, 1, 4, {1, 2});
  WriteRun(two, 2, 4, {1, 2});
  WriteRun(unlike, 1, 3, {1, 2});
  std::vector<std::string> left_out;
  const std::string both = one.string() + " and " + two.string();
  EXPECT_THAT(NotesOf(GroupRuns(ReadRuns({one.string(), two.string()}, &left_out)), {}),
              testing::ElementsAre(both + " differ only in their seed: one group of 2 seeds; a verdict needs a run of "
                                          "another configuration"));
  EXPECT_THAT(NotesOf(GroupRuns(ReadRuns({one.string(), two.string(), unlike.string()}, &left_out)), {}),
              testing::Contains(both + " differ only in their seed: one group of 2 seeds"));
  WriteRun(two, 1, 4, {1, 2});
  EXPECT_THAT(NotesOf(GroupRuns(ReadRuns({one.string(), two.string()}, &left_out)), {}),
              testing::ElementsAre(
                  HasSubstr(" have one configuration: one group of 1 seed, 2 runs; repeats of a seed are averaged")));
}

TEST(CompareFoldersTest, WhatCannotBeReadIsLeftOutWithASentence) {
  const fs::path good = Folder("good"), half = Folder("half"), other = Folder("other"), empty = Folder("empty");
  for (const fs::path& folder : {good, half, other}) WriteRun(folder, 1, 4, {1, 2});
  fs::remove(half / "resolved.yaml");
  {
    Database database(other / "run.sqlite");
    database.Execute("PRAGMA user_version = 999");
  }
  fs::remove_all(empty);
  fs::create_directories(empty);
  std::vector<std::string> left_out;
  const auto runs = ReadRuns({good.string(), half.string(), other.string(), empty.string()}, &left_out);
  EXPECT_EQ(runs.size(), 1U);
  ASSERT_EQ(left_out.size(), 3U);
  EXPECT_THAT(left_out[0], HasSubstr("compare_half is left out: there is no run"));
  EXPECT_THAT(left_out[1], HasSubstr("was written by another version of kgrpo-host"));
  EXPECT_THAT(left_out[2], HasSubstr("compare_empty is left out: there is no run"));
  // A folder that is not there was misspelt: the others' figures are not what was asked for.
  const std::string absent = Folder("absent").string();
  EXPECT_EQ(test::MessageOf(
                [&] {
                  ReadRuns({good.string(), absent}, &left_out);
                },
                KGRPO_ERROR_NOT_FOUND),
            "there is no folder " + absent + ": name a run's folder");
  // Their lists of problems differ, and both have one seed.
  std::ofstream(good / "resolved.yaml", std::ios::app) << "problems: {heldout: [problems/a]}\n";
  const fs::path unlike = Folder("unlike");
  WriteRun(unlike, 1, 1, {1, 2});
  std::ofstream(unlike / "resolved.yaml", std::ios::app) << "problems: {heldout: [problems/b]}\n";
  const std::vector<std::string> notes = NotesOf(GroupRuns(ReadRuns({good.string(), unlike.string()}, &left_out)), {});
  EXPECT_THAT(notes,
              testing::Contains(HasSubstr("problems.heldout differs: held-out measures are of different problems")));
  EXPECT_THAT(notes, testing::Not(testing::Contains(HasSubstr("problems.train"))));
  std::ofstream(empty / "experiment.json") << "{\"runs\": [";
  EXPECT_THROW(ReadRuns({empty.string()}, &left_out), Error);
}

TEST(CompareFoldersTest, ADamagedRunIsLeftOutWithTheCommandThatSavesTheRest) {
  const fs::path good = Folder("whole"), damaged = Folder("damaged");
  WriteRun(good, 1, 4, {1, 2});
  WriteRun(damaged, 1, 4, {1, 2});
  {
    Database database(damaged / "run.sqlite");
    Statement page(database, "SELECT rootpage FROM sqlite_master WHERE name = 'metrics'");
    ASSERT_TRUE(page.Step());
    std::fstream file(damaged / "run.sqlite", std::ios::in | std::ios::out | std::ios::binary);
    file.seekp((page.Integer(0) - 1) * 4096);
    file << std::string(4096, '\x5a');
  }
  std::vector<std::string> left_out;
  EXPECT_EQ(ReadRuns({good.string(), damaged.string()}, &left_out).size(), 1U);
  ASSERT_EQ(left_out.size(), 1U);
  EXPECT_THAT(left_out[0], HasSubstr("run.sqlite is damaged: parts of it cannot be read. "));
  EXPECT_THAT(left_out[0], HasSubstr("run.sqlite' .dump | sed"));
}

TEST(CompareFoldersTest, Fast1IsTheShareOfEpisodesThatBeatTheReference) {
  const fs::path folder = Folder("fast");
  WriteRun(folder, 1, 1, {1, 1, 1, 1});
  {
    Database database(folder / "run.sqlite");
    database.Execute(
        "UPDATE rounds SET speedup = CASE trajectory WHEN 0 THEN 2 WHEN 1 THEN 1.01 WHEN 2 THEN 1 ELSE 0 END");
  }
  EXPECT_DOUBLE_EQ(ReadMeasures(folder, "").values.at("heldout_fast_1"), 0.5);
}

}  // namespace
}  // namespace kgrpo
