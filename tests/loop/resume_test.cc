// A run killed at any instant and resumed ends with the same samples and weights: a child process is killed (SIGKILL)
// at random moments and at named points inside commits and checkpoints, resumed, and compared with an unbroken run.
#include "base/files.h"
#include "base/keyed.h"
#include "fakes.h"
#include "store/checkpoints.h"
#include "store/database.h"
#include "test.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace kgrpo {
namespace {

// Runs the pipeline in a child process. With `die_at` > 0 it kills itself when it passes its so many-th fault point;
// with `die_after` it is killed from outside after that time. Returns whether it reached the end.
bool RunChild(const PipelineConfig& config, bool resume, int die_at, std::chrono::microseconds die_after) {
  const pid_t child = fork();
  if (child == 0) {
    int passed = 0;
    int code = 2;
    try {
      const RunOutcome outcome = fakes::RunIn(config, resume, [&](const char*) {
        if (++passed == die_at) raise(SIGKILL);
      });
      code = outcome.status == RunOutcome::Status::kFinished ? 0 : 3;
    } catch (const std::exception& error) {
      fprintf(stderr, "child: %s\n", error.what());
    }
    _exit(code);
  }
  if (die_after.count() > 0) {
    std::this_thread::sleep_for(die_after);
    kill(child, SIGKILL);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) {
    EXPECT_EQ(WTERMSIG(status), SIGKILL);
    return false;
  }
  EXPECT_EQ(WEXITSTATUS(status), 0);
  return true;
}

// Kills again and again, by `instant`, until the run is through.
void RunWithKills(const PipelineConfig& config, int die_at, std::chrono::microseconds die_after, int kills) {
  bool finished = RunChild(config, false, die_at, die_after);
  for (int killed = 1; !finished; ++killed) {
    const bool again = killed < kills;
    // A run killed before its folder was made a run has nothing to resume: it starts anew.
    const bool resume = fs::exists(fs::path(config.output_dir) / "run.sqlite");
    finished = RunChild(config, resume, again ? die_at : 0, again ? die_after : std::chrono::microseconds(0));
  }
}

struct Reference {
  std::string samples, weights;
  int points = 0;                         // that the unbroken run passes
  std::chrono::microseconds duration{0};  // of it
};

class ResumeTest : public ::testing::Test {
 protected:
  static const Reference& Unbroken() {
    static const Reference reference = [] {
      fakes::Reset();
      const PipelineConfig config = fakes::Config(fakes::Folder("unbroken"));
      Reference r;
      const auto start = std::chrono::steady_clock::now();
      fakes::RunIn(config, false, [&](const char*) { ++r.points; });
      r.duration = std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - start);
      r.samples = fakes::Samples(config.output_dir);
      r.weights = fakes::FinalWeights(config.output_dir);
      return r;
    }();
    return reference;
  }

  static void ExpectSame(const PipelineConfig& config) {
    EXPECT_EQ(fakes::Samples(config.output_dir), Unbroken().samples);
    EXPECT_EQ(fakes::FinalWeights(config.output_dir), Unbroken().weights);
    for (const auto& entry : fs::recursive_directory_iterator(config.output_dir)) {
      const std::string name = entry.path().filename().string();
      EXPECT_EQ(name.find(".partial"), std::string::npos) << entry.path();
      EXPECT_EQ(name.find(".removed"), std::string::npos) << entry.path();
    }
  }
};

TEST_F(ResumeTest, KilledAtEveryNamedPoint) {
  const int points = Unbroken().points;
  ASSERT_GT(points, 40);
  for (int at = 1; at <= points; at += 2) {
    const PipelineConfig config = fakes::Config(fakes::Folder("named"));
    RunWithKills(config, at, std::chrono::microseconds(0), 1);
    SCOPED_TRACE(at);
    ExpectSame(config);
    if (HasFailure()) return;
  }
}

TEST_F(ResumeTest, KilledAtRandomInstants) {
  for (uint64_t i = 0; i < 20; ++i) {
    const PipelineConfig config = fakes::Config(fakes::Folder("random"));
    KeyedStream random(1, "instants", {i});
    const auto instant =
        static_cast<int64_t>(random.Uniform() * 1.1 * static_cast<double>(Unbroken().duration.count()));
    RunWithKills(config, 0, std::chrono::microseconds(instant + 1), 1);
    SCOPED_TRACE(instant);
    ExpectSame(config);
    if (HasFailure()) return;
  }
}

TEST_F(ResumeTest, KilledAgainAndAgain) {
  // Always at the same distance from its start: every attempt but the last dies.
  const PipelineConfig config = fakes::Config(fakes::Folder("again"));
  RunWithKills(config, 17, std::chrono::microseconds(0), 30);
  ExpectSame(config);
}

TEST_F(ResumeTest, ResumesInAFolderThatWasMoved) {
  PipelineConfig config = fakes::Config(fakes::Folder("moved_from"));
  EXPECT_FALSE(RunChild(config, false, Unbroken().points / 2, std::chrono::microseconds(0)));
  const fs::path to = fakes::Folder("moved_to");
  fs::rename(config.output_dir, to);
  config.output_dir = to;
  EXPECT_TRUE(RunChild(config, true, 0, std::chrono::microseconds(0)));
  ExpectSame(config);
}

// A file that was cut off, or that changed, after it was written: the run goes back to the checkpoint before, to the
// same end.
TEST_F(ResumeTest, ADamagedCheckpointIsSetAsideForTheOneBefore) {
  for (const bool cut : {true, false}) {
    PipelineConfig config = fakes::Config(fakes::Folder("damaged"));
    config.checkpoint.keep_last = 3;
    EXPECT_FALSE(RunChild(config, false, Unbroken().points * 3 / 4, std::chrono::microseconds(0)));
    const fs::path folder = fs::path(config.output_dir) / "checkpoints";
    const std::vector<uint64_t> steps = Checkpoints(folder).Steps();
    ASSERT_GE(steps.size(), 2U);
    const fs::path last = Checkpoints(folder).PathOf(steps.back());
    EXPECT_EQ(Checkpoints(folder).Damage(steps.back()), "");
    for (const auto& entry : fs::recursive_directory_iterator(last)) {
      if (entry.is_regular_file() && entry.path().filename() != "state.json" && entry.file_size() > 1) {
        if (cut) {
          fs::resize_file(entry.path(), entry.file_size() / 2);
        } else {
          std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
          const int first = file.get();
          file.seekp(0).put(static_cast<char>(first ^ 1));
        }
      }
    }
    EXPECT_NE(Checkpoints(folder).Damage(steps.back()), "");
    EXPECT_TRUE(RunChild(config, true, 0, std::chrono::microseconds(0)));
    ExpectSame(config);
    EXPECT_TRUE(fs::exists(last.string() + ".set_aside"));
  }
}

// Starting again would cost the recorded steps: that is the user's to decide.
TEST_F(ResumeTest, NothingIsRepeatedWhereEveryCheckpointIsDamaged) {
  PipelineConfig config = fakes::Config(fakes::Folder("all_damaged"));
  EXPECT_FALSE(RunChild(config, false, Unbroken().points * 3 / 4, std::chrono::microseconds(0)));
  const Checkpoints checkpoints(fs::path(config.output_dir) / "checkpoints");
  const std::vector<uint64_t> steps = checkpoints.Steps();
  ASSERT_FALSE(steps.empty());
  for (const uint64_t step : steps) fs::resize_file(checkpoints.PathOf(step) / "state.json", 1);
  const auto refusal = [&](std::optional<uint64_t> from) -> std::string {
    PipelineParts parts = fakes::Parts(config);
    RunProblems problems(config, parts);
    RunOptions options;
    options.resume = true;
    options.from_step = from;
    return test::MessageOf([&] { kgrpo::Run(config, parts, problems, RunFolder::Open(config.output_dir), options); },
                           KGRPO_ERROR_INVALID, "");
  };
  EXPECT_THAT(refusal(std::nullopt), HasSubstr("every checkpoint is damaged: step-" + std::to_string(steps.back())));
  EXPECT_THAT(refusal(steps.back()), HasSubstr("no other checkpoint is undamaged"));
  EXPECT_EQ(checkpoints.Steps(), steps) << "nothing was set aside";
}

TEST_F(ResumeTest, AFinishedRunResumesToItself) {
  const PipelineConfig config = fakes::Config(fakes::Folder("finished"));
  EXPECT_TRUE(RunChild(config, false, 0, std::chrono::microseconds(0)));
  EXPECT_TRUE(RunChild(config, true, 0, std::chrono::microseconds(0)));
  ExpectSame(config);
}

TEST_F(ResumeTest, ARunThatStopsEarlyEndsAtTheSameStep) {
  const auto config_of = [](const std::string& folder) {
    PipelineConfig config = fakes::Config(fakes::Folder(folder), 0, 12);
    config.checkpoint.every = 1;
    config.evaluation.every = 1;
    config.evaluation.patience = 1;
    return config;
  };
  const auto steps_of = [](const PipelineConfig& config) {
    return RunDatabase(fs::path(config.output_dir) / "run.sqlite").Steps().size();
  };
  fakes::Reset();
  const PipelineConfig whole = config_of("early");
  int points = 0;
  fakes::RunIn(whole, false, [&](const char*) { ++points; });
  const size_t steps = steps_of(whole);
  ASSERT_LT(steps, 12U);
  for (int at = points; at > points - 16; --at) {
    const PipelineConfig config = config_of("early_killed");
    RunWithKills(config, at, std::chrono::microseconds(0), 1);
    SCOPED_TRACE(at);
    EXPECT_EQ(steps_of(config), steps);
    EXPECT_EQ(fakes::Samples(config.output_dir), fakes::Samples(whole.output_dir));
    EXPECT_EQ(fakes::FinalWeights(config.output_dir), fakes::FinalWeights(whole.output_dir));
    if (HasFailure()) return;
  }
  EXPECT_TRUE(RunChild(whole, true, 0, std::chrono::microseconds(0)));
  EXPECT_EQ(steps_of(whole), steps) << "a finished run resumes to itself";
}

// With loop.max_staleness a checkpoint holds the rounds of the next step that older weights have begun.
TEST_F(ResumeTest, AStepThatWasBegunAheadIsTheSame) {
  const auto config_of = [](const std::string& folder) {
    PipelineConfig config = fakes::Config(fakes::Folder(folder));
    config.loop.max_staleness = 1;
    config.loop.rounds = 4;
    config.checkpoint.every = 2;
    return config;
  };
  for (const int fails_every : {0, 7}) {
    fakes::Reset();
    fakes::knobs().delay_seed = 9;  // so that answers are outstanding when the process dies
    fakes::knobs().delay_microseconds = 500;
    fakes::knobs().coder_fails_every = fails_every;
    const PipelineConfig whole = config_of("ahead");
    int points = 0;
    fakes::RunIn(whole, false, [&](const char*) { ++points; });
    for (int at = 5; at <= points; at += 3) {
      const PipelineConfig config = config_of("ahead_killed");
      RunWithKills(config, at, std::chrono::microseconds(0), 1);
      SCOPED_TRACE(at);
      EXPECT_EQ(fakes::Samples(config.output_dir), fakes::Samples(whole.output_dir));
      EXPECT_EQ(fakes::FinalWeights(config.output_dir), fakes::FinalWeights(whole.output_dir));
      if (HasFailure()) return;
    }
    const PipelineConfig config = config_of("ahead_killed");
    RunWithKills(config, points / 3, std::chrono::microseconds(0), 30);
    EXPECT_EQ(fakes::Samples(config.output_dir), fakes::Samples(whole.output_dir));
  }
  fakes::Reset();
}

// The steps of a run that ends earlier, with its end on a step whose kernels a longer run judges too.
constexpr uint64_t kFewerSteps = 6;

TEST_F(ResumeTest, AFinishedRunWithMoreStepsEndsAsOneThatHadThemFromTheStart) {
  PipelineConfig config = fakes::Config(fakes::Folder("extended"), 3, kFewerSteps);
  EXPECT_TRUE(RunChild(config, false, 0, std::chrono::microseconds(0)));
  EXPECT_NE(fakes::FinalWeights(config.output_dir), Unbroken().weights);
  const PipelineConfig longer = fakes::Config(config.output_dir);
  EXPECT_TRUE(RunChild(longer, true, 0, std::chrono::microseconds(0)));
  ExpectSame(longer);
}

TEST_F(ResumeTest, AFinishedRunWithMoreStepsMayBeKilled) {
  const PipelineConfig config = fakes::Config(fakes::Folder("extended_killed"), 3, kFewerSteps);
  for (int at = 1; at <= 13; at += 3) {
    fs::remove_all(config.output_dir);
    EXPECT_TRUE(RunChild(config, false, 0, std::chrono::microseconds(0)));
    const PipelineConfig longer = fakes::Config(config.output_dir);
    EXPECT_FALSE(RunChild(longer, true, at, std::chrono::microseconds(0)));
    EXPECT_FALSE(ReadProgress(config.output_dir / fs::path("run.sqlite")).finished) << at;
    EXPECT_TRUE(RunChild(longer, true, 0, std::chrono::microseconds(0)));
    SCOPED_TRACE(at);
    ExpectSame(longer);
  }
}

// That the comparison above can fail: a trainer that forgets its momentum ends elsewhere.
TEST_F(ResumeTest, ALostTrainerStateIsNoticed) {
  const std::string whole = Unbroken().weights;
  const PipelineConfig config = fakes::Config(fakes::Folder("forgets"));
  EXPECT_FALSE(RunChild(config, false, Unbroken().points * 3 / 4, std::chrono::microseconds(0)));
  fakes::knobs().forgets_state = true;
  EXPECT_TRUE(RunChild(config, true, 0, std::chrono::microseconds(0)));
  fakes::Reset();
  EXPECT_NE(fakes::FinalWeights(config.output_dir), whole);
}

}  // namespace
}  // namespace kgrpo
