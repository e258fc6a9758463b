// loop/observers.h, alone and in runs of the fake pipeline: the events that observers receive, their order, and the
// effect on a run if an observer fails, is slow, asks to stop, or is killed.
#include "loop/observers.h"

#include "base/files.h"
#include "fakes.h"
#include "test.h"

#include <kgrpo/sdk/text.h>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

// An observer that writes down what it is told, a line an event, in memory and, where it has one, in a file, which it
// treats as observers must: on begin it forgets the steps that follow `done`.
struct kgrpo_observer {
  std::string file;
  std::string fails_at;  // the event that it fails at: "step 2"
  std::mutex* gate = nullptr;
  size_t dies_at = 0;  // the so many-th event kills the process
  std::vector<std::string> told;
  std::set<std::thread::id> threads;
  void (*at_step)(uint64_t step) = nullptr;

  kgrpo_error* Tell(const std::string& event) {
    return kgrpo::Guard([&] {
      if (gate != nullptr) const std::lock_guard wait(*gate);
      threads.insert(std::this_thread::get_id());
      if (event.starts_with(fails_at) && !fails_at.empty()) {
        told.push_back(event + ": failed");
        throw kgrpo::Error(KGRPO_ERROR_UNAVAILABLE, "the disk is full");
      }
      told.push_back(event);
      if (!file.empty()) std::ofstream(file, std::ios::app) << event << std::endl;
      if (told.size() == dies_at) raise(SIGKILL);
    });
  }
};

namespace kgrpo {
namespace {

using Lines = std::vector<std::string>;

Lines ReadLines(const std::string& file) {
  Lines lines;
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line) && !stream.eof();) lines.push_back(line);
  return lines;
}

// The step of "round 3 ..." or "step 3 ...".
uint64_t StepOf(const std::string& line) { return std::stoull(line.substr(line.find(' ') + 1)); }

void ForgetStepsAfter(const std::string& file, uint64_t done) {
  std::string kept;
  for (const std::string& line : ReadLines(file)) {
    const bool of_a_step = line.starts_with("round ") || line.starts_with("step ");
    if (of_a_step && StepOf(line) <= done) kept += line + "\n";
  }
  WriteFileAtomically(file, kept);
}

kgrpo_error* Create(const kgrpo_host*, kgrpo_str, kgrpo_observer** out) {
  *out = new kgrpo_observer;
  return nullptr;
}

kgrpo_error* Begin(kgrpo_observer* self, const kgrpo_run_info* run) {
  if (!self->file.empty()) ForgetStepsAfter(self->file, run->done);
  std::ostringstream event;
  event << "begin " << Copy(run->name) << " seed " << run->seed << " steps " << run->steps << " done " << run->done
        << " resumed " << run->resumed << (fs::path(Copy(run->directory)).is_absolute() ? "" : " in a relative folder");
  return self->Tell(event.str());
}

kgrpo_error* Round(kgrpo_observer* self, const kgrpo_round_event* round) {
  std::ostringstream event;
  event << "round " << round->step << (round->heldout != 0 ? " heldout " : " train ") << round->trajectory << ' '
        << round->round << '/' << round->rounds << ' ' << Copy(round->problem) << " \"" << Copy(round->suggestion)
        << "\" " << round->answer->outcome << ' '
        << (round->evaluation == nullptr ? "-" : Copy(round->evaluation->verdict)) << ' ' << round->reward << ' '
        << (round->evaluation == nullptr ? 0 : round->evaluation->speedup);
  return self->Tell(event.str());
}

kgrpo_error* Step(kgrpo_observer* self, const kgrpo_step_event* step) {
  std::ostringstream event;
  event << "step " << step->step << " stage " << step->stage << ' ' << Copy(step->trainer);
  for (size_t i = 0; i < step->metric_count; ++i) {
    if (View(step->metrics[i].name) == "reward") event << " reward " << step->metrics[i].value;
  }
  for (size_t i = 0; i < step->optimizer_step_count; ++i) {
    for (size_t j = 0; j < step->optimizer_steps[i].count; ++j) {
      const kgrpo_metric& metric = step->optimizer_steps[i].metrics[j];
      event << ' ' << i << ": " << View(metric.name) << ' ' << metric.value;
    }
  }
  if (self->at_step != nullptr) self->at_step(step->step);
  return self->Tell(event.str());
}

kgrpo_error* Checkpoint(kgrpo_observer* self, const kgrpo_checkpoint_event* checkpoint) {
  const fs::path directory(Copy(checkpoint->directory));
  return self->Tell("checkpoint " + std::to_string(checkpoint->step) + " " + directory.filename().string() +
                    (directory.is_absolute() && checkpoint->seconds >= 0 ? "" : " of no folder or time"));
}

kgrpo_error* End(kgrpo_observer* self, kgrpo_str outcome) { return self->Tell("end " + Copy(outcome)); }

const kgrpo_observer_interface kRecorder = {sizeof(kgrpo_observer_interface),
                                            [] { return Str("{}"); },
                                            Create,
                                            [](kgrpo_observer* self) { delete self; },
                                            Begin,
                                            Round,
                                            Step,
                                            Checkpoint,
                                            End,
                                            /*get_extension=*/nullptr};

const kgrpo_host kNoHost = {};

kgrpo_observer* AddRecorder(PipelineConfig& config, PipelineParts& parts) {
  config.observers.push_back({"recorder", nlohmann::json::object()});
  parts.observers.push_back(std::make_unique<Observer>(&kRecorder, &kNoHost, nlohmann::json::object()));
  return parts.observers.back()->raw();
}

// ---- alone --------------------------------------------------------------------------------------

std::shared_ptr<StepRecord> Record(uint64_t step) {
  auto record = std::make_shared<StepRecord>();
  record->step = step;
  record->stage_name = "t";
  return record;
}

class ObserversTest : public ::testing::Test {
 protected:
  // Threads of their own tell them: what they were told is looked at once those have ended.
  void Begin() {
    observers_.emplace(config_, parts_);
    observers_->Begin(config_, "run", 10, 0, false);
  }

  PipelineConfig config_ = [] {
    PipelineConfig config;
    config.name = "r";
    return config;
  }();
  PipelineParts parts_;
  std::optional<Observers> observers_;
};

TEST_F(ObserversTest, TellAStepWithItsRoundsInOrder) {
  kgrpo_observer* recorder = AddRecorder(config_, parts_);
  Begin();
  const std::shared_ptr<StepRecord> record = Record(3);
  record->stage = 1;
  record->metrics = {{"reward", 0.5}};
  record->optimizer_steps = {{{"loss", 2}}, {{"loss", 1}}};
  TrajectoryRecord trajectory;
  trajectory.problem_name = "p";
  trajectory.rounds = 2;
  trajectory.rounds_done.resize(2);
  trajectory.rounds_done[0].suggestion = "tile";
  trajectory.rounds_done[0].answer.outcome = KGRPO_CODER_OK;
  trajectory.rounds_done[0].evaluation.emplace().verdict = "correct";
  trajectory.rounds_done[0].reward = 1.25;
  trajectory.rounds_done[0].evaluation->speedup = 2;
  trajectory.rounds_done[1].round = 1;
  trajectory.rounds_done[1].answer.outcome = KGRPO_CODER_UNCLEAR;
  record->trajectories = {trajectory, trajectory};
  record->trajectories[1].trajectory = 1;
  trajectory.rounds_done.resize(1);
  record->heldout = {trajectory};
  observers_->Step(record);
  observers_->Checkpoint(3, "step-3", 0.5);
  EXPECT_EQ(observers_->End("finished"), "");
  EXPECT_THAT(recorder->told,
              ElementsAre("begin r seed 0 steps 10 done 0 resumed 0", "round 3 train 0 0/2 p \"tile\" 0 correct 1.25 2",
                          "round 3 train 0 1/2 p \"\" 2 - 0 0", "round 3 train 1 0/2 p \"tile\" 0 correct 1.25 2",
                          "round 3 train 1 1/2 p \"\" 2 - 0 0", "round 3 heldout 0 0/2 p \"tile\" 0 correct 1.25 2",
                          "step 3 stage 1 t reward 0.5 0: loss 2 1: loss 1", "checkpoint 3 step-3", "end finished"));
  EXPECT_EQ(recorder->threads.size(), 1U);
  EXPECT_FALSE(recorder->threads.contains(std::this_thread::get_id()));
}

TEST_F(ObserversTest, TheLoopWaitsForAnObserverThatIsTooFarBehind) {
  kgrpo_observer* recorder = AddRecorder(config_, parts_);
  std::mutex gate;
  Begin();
  recorder->gate = &gate;
  gate.lock();
  for (uint64_t step = 1; step <= Observers::kMostWaiting; ++step) observers_->Step(Record(step));
  std::atomic<bool> went_on = false;
  std::thread loop([&] {
    observers_->Step(Record(9));
    went_on = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_FALSE(went_on);
  gate.unlock();
  loop.join();
  observers_->Drain();
  EXPECT_EQ(recorder->told.size(), 10U);  // with the beginning
  EXPECT_EQ(recorder->told.back(), "step 9 stage 0 t");
}

TEST_F(ObserversTest, DrainWaitsUntilTheLastEventWasTold) {
  kgrpo_observer* recorder = AddRecorder(config_, parts_);
  Begin();
  recorder->at_step = [](uint64_t) { std::this_thread::sleep_for(std::chrono::milliseconds(50)); };
  observers_->Step(Record(1));
  observers_->Drain();
  EXPECT_EQ(recorder->told.size(), 2U);
}

TEST_F(ObserversTest, AFailureIsKeptAndTheOthersAreToldTheRest) {
  kgrpo_observer* broken = AddRecorder(config_, parts_);
  kgrpo_observer* sound = AddRecorder(config_, parts_);
  broken->fails_at = "step 1";
  Begin();
  observers_->Step(Record(1));
  observers_->Step(Record(2));
  observers_->Drain();
  EXPECT_EQ(test::MessageOf([&] { observers_->ThrowFailure(); }, KGRPO_ERROR_UNAVAILABLE),
            "observers[0] (recorder): the disk is full");
  EXPECT_EQ(observers_->End("failed"), "observers[0] (recorder): the disk is full");
  EXPECT_EQ(observers_->End("failed"), "") << "nobody is told twice";
  EXPECT_EQ(broken->told.back(), "step 1 stage 0 t: failed");
  EXPECT_THAT(sound->told, ElementsAre(HasSubstr("begin"), "step 1 stage 0 t", "step 2 stage 0 t", "end failed"));
}

TEST_F(ObserversTest, AFailureAtTheBeginningIsThrownThere) {
  AddRecorder(config_, parts_)->fails_at = "begin";
  EXPECT_EQ(test::MessageOf([&] { Begin(); }), "observers[0] (recorder): the disk is full");
}

// ---- in runs ------------------------------------------------------------------------------------

RunOutcome RunWith(const PipelineConfig& config, PipelineParts& parts, bool resume = false, FaultPoints faults = {}) {
  const RunFolder folder =
      resume ? RunFolder::Open(config.output_dir) : RunFolder::Create(config.output_dir, config.resolved_yaml, false);
  RunOptions options;
  options.resume = resume;
  options.faults = std::move(faults);
  RunProblems problems(config, parts);
  return Run(config, parts, problems, folder, options);
}

// The run's own account: "round" and "step" lines from its database.
Lines Recorded(const PipelineConfig& config) {
  Lines lines;
  Database database(fs::path(config.output_dir) / "run.sqlite");
  Statement rounds(database,
                   "SELECT step, purpose, trajectory, round FROM rounds WHERE purpose IN ('train', 'heldout') "
                   "ORDER BY step, purpose DESC, trajectory, round");
  while (rounds.Step()) {
    lines.push_back("round " + rounds.Text(0) + ' ' + rounds.Text(1) + ' ' + rounds.Text(2) + ' ' + rounds.Text(3) +
                    '/');
  }
  return lines;
}

class RunObserversTest : public ::testing::Test {
 protected:
  void SetUp() override { fakes::Reset(); }
};

TEST_F(RunObserversTest, AreToldEveryRecordedRoundAndStep) {
  PipelineConfig config = fakes::Config(fakes::Folder("observers_whole"));  // 3 and 8 steps, a checkpoint every 3
  PipelineParts parts = fakes::Parts(config);
  kgrpo_observer* recorder = AddRecorder(config, parts);
  EXPECT_EQ(RunWith(config, parts).status, RunOutcome::Status::kFinished);
  Lines rounds, others;
  for (const std::string& line : recorder->told)
    (line.starts_with("round ") ? rounds : others).push_back(line.substr(0, line.find_first_of("/\"")));
  Lines recorded = Recorded(config);
  ASSERT_EQ(rounds.size(), recorded.size());
  for (size_t i = 0; i < rounds.size(); ++i) EXPECT_EQ(rounds[i] + "/", recorded[i]);
  Lines expected = {"begin fake seed 7 steps 11 done 0 resumed 0"};
  for (uint64_t step = 1; step <= 11; ++step) {
    expected.push_back("step " + std::to_string(step));
    if (step % 3 == 0 || step == 11) expected.push_back("checkpoint " + std::to_string(step));
  }
  expected.emplace_back("end finished");
  ASSERT_EQ(others.size(), expected.size());
  for (size_t i = 0; i < others.size(); ++i) EXPECT_TRUE(others[i].starts_with(expected[i])) << others[i];
  for (size_t i = 1; i < recorder->told.size(); ++i) {  // a step follows its rounds
    if (!recorder->told[i - 1].starts_with("round ")) continue;
    const bool next = recorder->told[i].starts_with("round ") || recorder->told[i].starts_with("step ");
    EXPECT_TRUE(next && StepOf(recorder->told[i]) == StepOf(recorder->told[i - 1])) << recorder->told[i];
  }
}

TEST_F(RunObserversTest, AStopIsToldAndTheRunGoesOnAfterItsLastStep) {
  PipelineConfig config = fakes::Config(fakes::Folder("observers_stop"), 0, 6);
  PipelineParts parts = fakes::Parts(config);
  kgrpo_observer* recorder = AddRecorder(config, parts);
  recorder->at_step = [](uint64_t step) {  // as request_stop does
    if (step == 2) fakes::knobs().cancelled = true;
  };
  const RunOutcome stopped = RunWith(config, parts);
  EXPECT_EQ(stopped.status, RunOutcome::Status::kInterrupted);
  EXPECT_LT(stopped.steps, 6U);
  EXPECT_EQ(recorder->told.back(), "end stopped");
  EXPECT_THAT(recorder->told, ::testing::Contains("checkpoint " + std::to_string(stopped.steps) + " step-" +
                                                  std::to_string(stopped.steps)));
  fakes::Reset();
  PipelineConfig again = config;
  again.observers.clear();
  PipelineParts others = fakes::Parts(again);
  kgrpo_observer* later = AddRecorder(again, others);
  EXPECT_EQ(RunWith(again, others, true).status, RunOutcome::Status::kFinished);
  EXPECT_EQ(later->told[0], "begin fake seed 7 steps 6 done " + std::to_string(stopped.steps) + " resumed 1");
  EXPECT_EQ(StepOf(later->told[1]), stopped.steps + 1);
}

TEST_F(RunObserversTest, AFailureEndsTheRunWithItsStepsRecorded) {
  PipelineConfig config = fakes::Config(fakes::Folder("observers_fail"), 0, 6);
  PipelineParts parts = fakes::Parts(config);
  AddRecorder(config, parts)->fails_at = "step 2";
  kgrpo_observer* sound = AddRecorder(config, parts);
  try {
    RunWith(config, parts);
    FAIL();
  } catch (const Error& error) {
    // The loop hears of it at the end of that step or of a later one, of the checkpoint's at the latest.
    EXPECT_THAT(error.what(),
                ::testing::ContainsRegex("^step [23]: observers\\[0\\] \\(recorder\\): the disk is full "));
    EXPECT_THAT(error.what(), HasSubstr("fix the cause, then: kgrpo-host resume "));
  }
  EXPECT_EQ(sound->told.back(), "end failed");
  PipelineConfig without = config;  // as `resume --set observers=[]` does
  without.observers.clear();
  PipelineParts rest = fakes::Parts(without);
  EXPECT_EQ(RunWith(without, rest, true).status, RunOutcome::Status::kFinished);
  PipelineConfig whole = fakes::Config(fakes::Folder("observers_none"), 0, 6);
  PipelineParts unobserved = fakes::Parts(whole);
  RunWith(whole, unobserved);
  EXPECT_EQ(fakes::Samples(config.output_dir), fakes::Samples(whole.output_dir));
  EXPECT_EQ(fakes::FinalWeights(config.output_dir), fakes::FinalWeights(whole.output_dir));
}

TEST_F(RunObserversTest, AFailureAtTheEndIsToldWithTheOutcome) {
  PipelineConfig config = fakes::Config(fakes::Folder("observers_end"), 0, 2);
  PipelineParts parts = fakes::Parts(config);
  AddRecorder(config, parts)->fails_at = "end";
  const RunOutcome outcome = RunWith(config, parts);
  EXPECT_EQ(outcome.status, RunOutcome::Status::kFinished);
  EXPECT_EQ(outcome.message, "observers[0] (recorder): the disk is full");
}

// Runs in a child, which kills itself at its so many-th fault point, or at its observer's so many-th event; 0: never.
// Returns whether it reached the end.
bool RunChild(PipelineConfig config, const std::string& file, bool resume, int point, size_t event) {
  const pid_t child = fork();
  if (child == 0) {
    int passed = 0;
    try {
      PipelineParts parts = fakes::Parts(config);
      kgrpo_observer* recorder = AddRecorder(config, parts);
      recorder->file = file;
      recorder->dies_at = event;
      RunWith(config, parts, resume, [&](const char*) {
        if (++passed == point) raise(SIGKILL);
      });
    } catch (const std::exception& error) {
      fprintf(stderr, "child: %s\n", error.what());
      _exit(2);
    }
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
  return !WIFSIGNALED(status);
}

// Checkpoints are left out: one that was written just before the process died is told to nobody.
Lines StepsAndRounds(const std::string& file) {
  Lines lines;
  for (const std::string& line : ReadLines(file))
    if (line.starts_with("round ") || line.starts_with("step ")) lines.push_back(line);
  return lines;
}

TEST_F(RunObserversTest, AKilledRunGoesOnWithoutAGapOrARepetition) {
  const std::string file = fakes::Folder("observers_told").string();
  PipelineConfig config = fakes::Config(fakes::Folder("observers_unbroken"));
  ASSERT_TRUE(RunChild(config, file, false, 0, 0));
  const Lines unbroken = StepsAndRounds(file);
  ASSERT_GT(unbroken.size(), 200U);
  const auto dies_and_goes_on = [&](int point, size_t event) {
    fs::remove(file);
    config.output_dir = fakes::Folder("observers_killed");
    const bool reached_the_end = RunChild(config, file, false, point, event);
    if (!reached_the_end) RunChild(config, file, fs::exists(fs::path(config.output_dir) / "run.sqlite"), 0, 0);
    EXPECT_EQ(StepsAndRounds(file), unbroken) << "killed at point " << point << ", event " << event;
    return reached_the_end;
  };
  for (int point = 1; !dies_and_goes_on(point, 0); point += 11) ASSERT_FALSE(HasFailure());
  for (size_t event = 1; !dies_and_goes_on(0, event); event += 41) ASSERT_FALSE(HasFailure());
}

}  // namespace
}  // namespace kgrpo
