// A file of several runs, end to end: run, stop, resume and compare.
#include "commands.h"
#include "store/database.h"
#include "test.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace kgrpo {
namespace {

using test::Read;
using test::Result;

class ExperimentCliTest : public CliTest {
 protected:
  ExperimentCliTest() {
    Write("ab.yaml", "extends: p.yaml\noutput_dir: runs\nvariants:\n  short: {loop: {rounds: 1}}\nseeds: [1, 2]\n");
  }
};

TEST_F(ExperimentCliTest, RunsEachIntoAFolderOfItsOwnAndComparesThem) {
  const Result run = Run("ab.yaml --jobs 2");
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("next: kgrpo-host compare runs\n"));
  for (const char* folder : {"base/seed-1", "base/seed-2", "short/seed-1", "short/seed-2"}) {
    EXPECT_TRUE(fs::exists(directory_.path() / "runs" / folder / "final")) << folder;
  }
  EXPECT_EQ(json::parse(Read(directory_.path() / "runs/experiment.json"))["runs"].size(), 4U);

  const Result again = Run("ab.yaml");
  EXPECT_EQ(again.code, 0);
  EXPECT_THAT(again.out, HasSubstr("4 of 4 runs are finished"));

  const json compared = json::parse(Run("compare runs --json").out);
  ASSERT_EQ(compared["groups"].size(), 2U);
  EXPECT_EQ(compared["groups"][1]["label"], "short");
  EXPECT_EQ(compared["differences"], json({{"loop.rounds", {"2", "1"}}}));
  EXPECT_FALSE(compared["comparisons"].empty());
  for (const char* options : {"", " --markdown"}) {
    const Result text = Run("compare runs" + std::string(options));
    EXPECT_EQ(text.code, 0) << text.err;
    EXPECT_THAT(text.out, HasSubstr("loop.rounds"));
    EXPECT_THAT(text.out, HasSubstr("With 2 seeds only large differences can be detected. Use five or more."));
    EXPECT_THAT(text.out, HasSubstr("Measures (mean over seeds, min to max; last tenth: of 3 steps the last 1)"));
    EXPECT_THAT(text.out, HasSubstr("wall clock in seconds (depends on the cache)"));
  }
}

// The line of a killed run is there before the next one begins.
TEST_F(ExperimentCliTest, SaysAtOnceThatARunWasKilled) {
  setenv("KGRPO_CRASH", "core", 1);
  const Result run = Run("ab.yaml --set reward.plugin=" KGRPO_BINARY_DIR "/tests/bad_plugins/crashes_in_score.so");
  unsetenv("KGRPO_CRASH");
  EXPECT_NE(run.code, 0);
  const size_t killed = run.out.find("base, seed 1: killed by signal " + std::to_string(SIGSEGV));
  EXPECT_LT(killed, run.out.find("[2/4]")) << run.out;
}

// Its children's exit codes are known all the same.
TEST_F(ExperimentCliTest, EndsWhereSigchldIsIgnored) {
  const pid_t starter = fork();
  if (starter == 0) {
    std::signal(SIGCHLD, SIG_IGN);  // inherited by what is started
    Run("ab.yaml --jobs 2");
    _exit(0);
  }
  waitpid(starter, nullptr, 0);
  EXPECT_THAT(Read(directory_.path() / "out"), HasSubstr("next: kgrpo-host compare runs\n"));
}

TEST_F(ExperimentCliTest, GoesOnWithWhatIsNotFinished) {
  ASSERT_EQ(Run("ab.yaml --variant short").code, 0);
  EXPECT_FALSE(fs::exists(directory_.path() / "runs/base"));
  fs::remove_all(directory_.path() / "runs/short/seed-2");
  const Result rest = Run("ab.yaml");
  EXPECT_EQ(rest.code, 0) << rest.err;
  EXPECT_THAT(rest.out, HasSubstr("1 of 4 runs are finished"));
  EXPECT_TRUE(fs::exists(directory_.path() / "runs/short/seed-2/final"));
  const Result changed = Run("ab.yaml --set loop.max_steps=4");
  EXPECT_EQ(changed.code, 3);
  EXPECT_EQ(changed.err,
            "error: runs/base/seed-1 holds a run of another configuration, that in runs/base/seed-1.yaml "
            "(loop.max_steps differs): to continue it, add what it was started with: --set loop.max_steps=3; otherwise "
            "give the experiment another output_dir, or start again with --overwrite\n");
  EXPECT_EQ(Run("check ab.yaml --file-only").code, 0) << "what is finished is no hindrance to the others";
  const Result other = Run("check ab.yaml --file-only --set loop.max_steps=4");
  EXPECT_EQ(other.code, 1);
  EXPECT_THAT(other.out, HasSubstr("It would not run: runs/base/seed-1 holds a run of another configuration"));
}

TEST_F(ExperimentCliTest, RefusesWhatWouldCompareNothing) {
  Write("same.yaml", "extends: p.yaml\noutput_dir: runs\nvariants:\n  twin: {name: p}\nname: p\nseeds: [1, 2]\n");
  for (const char* command : {"check same.yaml", "run same.yaml"}) {
    const Result same = Run(command);
    EXPECT_EQ(same.code, 3);
    const std::string once = "same.yaml:4:3: the variant \"twin\" changes nothing: it is the same as \"base\"";
    const size_t at = same.err.find(once);
    ASSERT_NE(at, std::string::npos) << same.err;
    EXPECT_EQ(same.err.find(once, at + 1), std::string::npos) << "not once a seed: " << same.err;
  }
  EXPECT_FALSE(fs::exists(directory_.path() / "runs"));
  EXPECT_EQ(Run("ab.yaml --variant nobody").code, 3);
  EXPECT_EQ(Run("p.yaml --variant base").code, 3);
  EXPECT_THAT(Run("eval policy ab.yaml --policy uniform").err, HasSubstr("several runs"));
  const Result absent = Run("compare runs nowhere");
  EXPECT_EQ(absent.code, 3);
  EXPECT_EQ(absent.err, "error: there is no folder runs: name a run's folder\n");
  const Result resolved = Run("check ab.yaml --variant short --resolve --file-only --set loop.batch_size=2");
  EXPECT_THAT(resolved.out, HasSubstr("  rounds: 1  # run short/seed-1\n"));
  EXPECT_THAT(resolved.out, HasSubstr("seed: 1  # run short/seed-1\n"));
  EXPECT_THAT(resolved.out, HasSubstr("  batch_size: 2  # --set\n"));
  EXPECT_THAT(Run("check ab.yaml").err, HasSubstr("4 runs: base/seed-1, base/seed-2, short/seed-1, short/seed-2"));
}

// Mistakes that only the plugins can find, each at its place; found before the first run, and once for all seeds.
TEST_F(ExperimentCliTest, FindsTheMistakesOfEachVariantFirst) {
  Write("broken.yaml",
        "extends: p.yaml\noutput_dir: runs\nvariants:\n"
        "  log: {reward.plugin: reward_expression, reward.options.score: log2(speedupp)}\n"
        "  metric:\n    reward:\n      plugin: reward_expression\n      options:\n        score: metric(\"commentz\")\n"
        "  short: {loop.rounds: 1}\nseeds: [1, 2]\n");
  const std::string log =
      "broken.yaml:4:65: variant \"log\": reward (reward_expression): options.score: at character 6 of ";
  const std::string metric =
      "broken.yaml:9:16: variant \"metric\": reward (reward_expression): options.score: at character 8 of ";
  for (const char* command : {"check broken.yaml", "run broken.yaml"}) {
    const Result result = Run(command);
    EXPECT_EQ(result.code, 3) << command;
    EXPECT_THAT(result.err, testing::AllOf(HasSubstr(log), HasSubstr(metric))) << command;
    EXPECT_EQ(result.err.find(log, result.err.find(log) + 1), std::string::npos) << "not once a seed";
    EXPECT_FALSE(fs::exists(directory_.path() / "runs")) << command;
  }
  EXPECT_THAT(Run("check broken.yaml").err, HasSubstr("broken.yaml: 2 mistakes\n"));
  EXPECT_THAT(Run("check broken.yaml --variant log").err, HasSubstr(log));
  EXPECT_EQ(Run("check broken.yaml --variant short").code, 0);
  EXPECT_EQ(Run("run broken.yaml --variant short").code, 0) << "the other variants are not run";
}

// It failed in its first step, so nothing is lost where the file is corrected and the same command given again.
TEST_F(ExperimentCliTest, ARunWithoutAStepTakesTheCorrectedFile) {
  Write("fix.yaml",
        "extends: p.yaml\noutput_dir: runs\nseeds: [1]\nreward: {plugin: reward_expression, options: {score: "
        "metric(\"qqqqqqqqqqqq\")}}\n");
  const Result failed = Run("fix.yaml");
  EXPECT_NE(failed.code, 0);
  EXPECT_THAT(failed.err, HasSubstr("(no checkpoint was written yet; correct this and start the run "
                                    "again)"));
  EXPECT_THAT(failed.err, testing::Not(HasSubstr("kgrpo-host resume")));
  Write("fix.yaml", "extends: p.yaml\noutput_dir: runs\nseeds: [1]\n");
  const Result fixed = Run("fix.yaml");
  EXPECT_EQ(fixed.code, 0) << fixed.err;
}

// Each reward is on a scale of its own; the rounds are known, so each reward can tell what it would have paid.
TEST_F(ExperimentCliTest, RunsOfDifferentRewardsAreScoredByEachOfThem) {
  Write("rewards.yaml",
        "extends: p.yaml\noutput_dir: rewards\nreward: {plugin: reward_speedup}\nvariants:\n"
        "  harsh: {reward: {plugin: reward_expression, options: {score: \"correct ? 10 : -2\", no_kernel: \"-2\"}}}\n");
  ASSERT_EQ(Run("rewards.yaml --jobs 2").code, 0);
  const Result result = Run("compare rewards --json");
  ASSERT_EQ(result.code, 0) << result.err;
  const json compared = json::parse(result.out);
  for (const json& group : compared["groups"]) {
    const json& measures = group["runs"][0]["measures"];
    // A run's own reward, applied again, pays what it paid.
    EXPECT_NEAR(measures["reward_by/" + group["label"].get<std::string>()].get<double>(),
                measures["reward"].get<double>(), 1e-9);
    EXPECT_NE(measures["reward_by/base"], measures["reward_by/harsh"]);
  }
  bool compared_on_one_scale = false;
  for (const json& one : compared["comparisons"]) {
    EXPECT_NE(one["measure"], "reward");
    compared_on_one_scale |= one["measure"] == "reward_by/base";
  }
  EXPECT_TRUE(compared_on_one_scale);
  EXPECT_FALSE(compared["same_reward"]);
  const std::string text = Run("compare rewards").out;
  EXPECT_THAT(text, HasSubstr("reward, last tenth (own reward: not comparable)"));
  EXPECT_THAT(text, HasSubstr("- reward (scored by harsh's reward), last tenth: harsh vs base "));
  EXPECT_THAT(text,
              HasSubstr("note: The rewards are on different scales and are not compared; `compare` scores all runs "
                        "by each reward that loads.\n"));
}

// A kernel's metrics are kept with its round, so another run's reward may read them; without them only the recorded
// rewards of its own runs are known.
TEST_F(ExperimentCliTest, RewardsThatReadMetricsScoreTheRunsThatHaveThem) {
  Write(
      "metrics.yaml",
      "extends: p.yaml\noutput_dir: metrics\ncoder: {options: {techniques: [a, e, i, o, t, n, s, r]}}\nvariants:\n"
      "  metric: {reward: {plugin: reward_expression, options: {score: 'correct ? 1 + metric(\"comments\") : 0'}}}\n");
  ASSERT_EQ(Run("metrics.yaml").code, 0);
  const auto measures = [&](size_t group) {
    return json::parse(Run("compare metrics --json").out)["groups"][group]["runs"][0]["measures"];
  };
  EXPECT_THAT(Run("compare metrics").err, Not(HasSubstr("no part declares"))) << "no evaluator runs, none declares";
  EXPECT_TRUE(measures(0).contains("reward_by/metric")) << "the metric was kept with its rounds too";
  EXPECT_EQ(measures(1)["reward_by/metric"], measures(1)["reward"]);
  {  // as of an evaluator that measures nothing of the kind
    Database database(directory_.path() / "metrics/base/run.sqlite");
    database.Execute("UPDATE rounds SET metrics = '{}' WHERE verdict IS NOT NULL");
  }
  const Result result = Run("compare metrics");
  EXPECT_THAT(result.out,
              testing::ContainsRegex(
                  "note: base cannot be scored by metric's reward: round [0-9]+ of trajectory [0-9]+ \\((one|two)\\): "
                  "reward_expression: metric\\(\"comments\"\\): the evaluator did not report this metric for this "
                  "kernel\\. The rounds of a run hold the metrics that its own evaluator measured; the baselines' "
                  "metrics are not kept\n"));
  EXPECT_FALSE(measures(0).contains("reward_by/metric"));
  EXPECT_EQ(measures(1)["reward_by/metric"], measures(1)["reward"]);
}

TEST_F(ExperimentCliTest, ReportAndExportShowWhatARunLeft) {
  ASSERT_EQ(Run("ab.yaml --variant short --jobs 2").code, 0);
  const Result report = Run("report runs");
  EXPECT_EQ(report.code, 0) << report.err;
  EXPECT_THAT(report.err, HasSubstr("base/seed-1 has not begun"));
  EXPECT_THAT(Read(directory_.path() / "runs/report.html"), HasSubstr("id=\"data\""));
  const Result lines = Run("export runs/short/seed-1");
  ASSERT_EQ(lines.code, 0) << lines.err;
  const std::vector<json> rows = Lines(lines.out);
  ASSERT_EQ(rows.size(), 12U);  // 3 steps of 4 trajectories of 1 round
  EXPECT_EQ(rows[0]["completion"][0]["role"], "assistant");
  EXPECT_EQ(rows[0]["logprobs"].size(), rows[0]["completion_ids"].size());
  setenv("KGRPO_PYTHON", "/nowhere/python", 1);
  const Result parquet = Run("export runs/short/seed-1 --format parquet -o rounds.parquet");
  unsetenv("KGRPO_PYTHON");
  EXPECT_EQ(parquet.code, 4);
  EXPECT_THAT(
      parquet.err,
      HasSubstr("cannot start /nowhere/python: No such file or directory; parquet is written by Python: name one "
                "that has pyarrow by KGRPO_PYTHON"));
  EXPECT_FALSE(fs::exists(directory_.path() / "rounds.parquet.jsonl")) << "nothing half done is left";
  EXPECT_EQ(Run("export runs/short/seed-1 --format datasets").code, 0);
  EXPECT_EQ(Lines(Read(directory_.path() / "runs/short/seed-1/dataset/train.jsonl")), rows);
  EXPECT_THAT(Read(directory_.path() / "runs/short/seed-1/dataset/README.md"), HasSubstr("path: train.jsonl"));
  EXPECT_THAT(Run("export runs").err, HasSubstr("name one of them"));
  EXPECT_EQ(Run("export nowhere").err, "error: there is no folder nowhere: name a run's folder\n");
  for (const char* command : {"export runs/short", "resume runs/short", "compare runs/short", "report runs/short"})
    EXPECT_EQ(Run(command).err, "error: runs/short is no run, but holds 2 runs: name one, such as runs/short/seed-1\n");
  EXPECT_THAT(Run("eval policy p.yaml --policy runs/short").err,
              HasSubstr("--policy runs/short is no run, but holds 2 runs"));
  const Result nowhere = Run("report runs/short/seed-1 -o nowhere/x.html");
  EXPECT_EQ(nowhere.code, 3);
  EXPECT_EQ(nowhere.err, "error: -o nowhere/x.html: there is no folder nowhere; make it first\n");
}

// Each run's reward is a program that leaves the variable which it was started with.
TEST_F(ExperimentCliTest, JobsAreSpreadOverTheVisibleGpus) {
  fs::copy_file(KGRPO_SOURCE_DIR "/python/kgrpo_plugin.py", directory_.path() / "kgrpo_plugin.py");
  Write("reward.py",
        "import os\nfrom kgrpo_plugin import reward, run\n\n@reward\ndef mine(round):\n"
        "    open('gpus', 'a').write(os.environ.get('CUDA_VISIBLE_DEVICES', 'none') + '\\n')\n    return 1\n\nrun()\n");
  const auto gpus_of = [&](const std::string& arguments) {
    fs::remove(directory_.path() / "gpus");
    setenv("CUDA_VISIBLE_DEVICES", "3,GPU-8a3f", 1);
    const Result run =
        Run("ab.yaml --overwrite --set reward.plugin=reward_program "
            "--set 'reward.options={command: [python3, reward.py]}' " +
            arguments);
    unsetenv("CUDA_VISIBLE_DEVICES");
    EXPECT_EQ(run.code, 0) << run.err;
    std::istringstream lines(Read(directory_.path() / "gpus"));
    std::set<std::string> gpus;
    for (std::string line; std::getline(lines, line);) gpus.insert(line);
    return std::pair(gpus, run.out);
  };
  const auto [side_by_side, told] = gpus_of("--jobs 2");
  EXPECT_EQ(side_by_side, (std::set<std::string>{"3", "GPU-8a3f"}));
  EXPECT_THAT(told, HasSubstr("[1/4] base, seed 1, on GPU 3: runs/base/seed-1/run.log\n"));
  EXPECT_THAT(told, HasSubstr("[2/4] base, seed 2, on GPU GPU-8a3f: "));
  EXPECT_EQ(gpus_of("").first, std::set<std::string>{"3,GPU-8a3f"}) << "one run at a time has them all";
}

}  // namespace
}  // namespace kgrpo
