// store/run_folder.h: the state of an earlier run read from its folder, which reading does not change.
#include "store/run_folder.h"

#include <kgrpo/support/sqlite.h>
#include "base/files.h"
#include "store/database.h"
#include "store/readable.h"
#include "test.h"

namespace kgrpo {
namespace {

// Every file below a folder, by its path, with its bytes.
std::map<std::string, std::string> Contents(const fs::path& folder) {
  std::map<std::string, std::string> contents;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder))
    contents[entry.path().string()] = entry.is_regular_file() ? ReadFile(entry.path()) : "";
  return contents;
}

class RunFolderTest : public testing::Test {
 protected:
  RunFolderTest() {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }

  // Asks, and holds the folder to what it was.
  std::string Refusal() {
    const auto before = Contents(folder_);
    const std::string refusal = RunFolder::Refusal(folder_, "name: a\n");
    EXPECT_EQ(Contents(folder_), before);
    return refusal;
  }

  const fs::path folder_ =
      fs::path(KGRPO_BINARY_DIR) / "test_runs" /
      (std::string("run_folder_%3F?#_") + testing::UnitTest::GetInstance()->current_test_info()->name());
};

TEST_F(RunFolderTest, NothingIsSaidOfARunThatNeverBegan) {
  EXPECT_THAT(Refusal(), IsEmpty());
  std::ofstream(folder_ / "run.sqlite").flush();
  EXPECT_THAT(Refusal(), IsEmpty());
  fs::remove(folder_ / "run.sqlite");
  EXPECT_THAT(RunFolder::Leftover(folder_), IsEmpty());
  EXPECT_THAT(RunFolder::Leftover(folder_ / "absent"), IsEmpty());
  { const RunDatabase database(folder_ / "run.sqlite"); }
  EXPECT_THAT(Refusal(), IsEmpty());  // there is no checkpoints/ either
}

TEST_F(RunFolderTest, SaysWhatBecomesOfARunWithoutAFinishedStep) {
  { const RunDatabase database(folder_ / "run.sqlite"); }
  fs::create_directories(folder_ / "artifacts/coder");
  const std::string replaced =
      "output_dir " + folder_.string() + " holds a run without a finished step: a new run replaces it";
  EXPECT_EQ(RunFolder::Leftover(folder_), replaced);
  std::ofstream(folder_ / "artifacts/coder/a") << "paid for";
  EXPECT_EQ(RunFolder::Leftover(folder_),
            replaced + ", and keeps its plugins' files in artifacts/, such as the coder's answers");
  const RunFolder run = RunFolder::Create(folder_, "name: a\n", false);
  EXPECT_TRUE(fs::exists(folder_ / "artifacts/coder/a")) << "as it was said";
  EXPECT_FALSE(fs::exists(folder_ / "run.sqlite"));
}

TEST_F(RunFolderTest, AFinishedAndAnUnfinishedRun) {
  {
    RunDatabase database(folder_ / "run.sqlite");
    StepRecord step;
    step.step = 1;
    database.WriteStep(step, {});
  }
  EXPECT_THAT(Refusal(), HasSubstr("holds an unfinished run of another configuration: name another folder"));
  WriteFileAtomically(folder_ / "resolved.yaml", "name: b\n");
  EXPECT_THAT(Refusal(),
              HasSubstr("of another configuration (name differs): to continue it as it began: kgrpo-host resume "));
  WriteFileAtomically(folder_ / "resolved.yaml", "name: a\n");
  EXPECT_THAT(Refusal(), HasSubstr("(1 step done). To continue it: kgrpo-host resume"));
  { RunDatabase(folder_ / "run.sqlite").Set("finished", "yes"); }
  EXPECT_THAT(Refusal(), HasSubstr("holds a finished run"));
}

// A run of one step, whose coder's answers cost so much by the step's metrics.
void WriteRun(const fs::path& folder, double cost, const char* yaml) {
  RunDatabase database(folder / "run.sqlite");
  StepRecord step;
  step.step = 1;
  step.metrics.push_back({"coder/cost_total", cost});
  database.WriteStep(step, {});
  WriteFileAtomically(folder / "resolved.yaml", yaml);
}

TEST_F(RunFolderTest, SaysHowAnUnfinishedRunGoesOnWithWhatIsNew) {
  const auto refusal = [&](const std::string& yaml) {
    return RunFolder::Refusal(folder_, yaml, {"coder.options", "loop.workers", "loop.max_steps"});
  };
  WriteRun(folder_, 0, "seed: 1\ncoder: {options: {max_cost: 5, model: m}}\nloop: {workers: 1}\n");
  const std::string there = "output_dir " + folder_.string() + " holds an unfinished run of another configuration ";
  EXPECT_EQ(refusal("seed: 1\ncoder: {options: {max_cost: 80, model: m}}\nloop: {workers: 2}\n"),
            there + "(coder.options.max_cost and loop.workers differ): to resume it with them: kgrpo-host resume " +
                folder_.string() +
                " --set coder.options.max_cost=80 --set loop.workers=2; otherwise name another "
                "folder (--set output_dir=...), or delete that run with --overwrite");
  EXPECT_EQ(refusal("seed: 2\ncoder: {options: {max_cost: 80, model: m}}\nloop: {workers: 1}\n"),
            there + "(seed and coder.options.max_cost differ): to continue it as it began: kgrpo-host resume " +
                folder_.string() +
                "; otherwise name another folder (--set output_dir=...), or delete that run with --overwrite");
  // A finished run continues only with more steps.
  { RunDatabase(folder_ / "run.sqlite").Set("finished", "yes"); }
  EXPECT_THAT(refusal("seed: 1\ncoder: {options: {max_cost: 80, model: m}}\nloop: {workers: 1}\n"),
              HasSubstr(" holds a finished run: name another folder "));
  EXPECT_THAT(refusal("seed: 1\ncoder: {options: {max_cost: 5, model: m}}\nloop: {workers: 1, max_steps: 9}\n"),
              HasSubstr(" holds a finished run of another configuration (loop.max_steps differs): to resume it with "
                        "them: kgrpo-host resume " +
                        folder_.string() + " --set loop.max_steps=9; otherwise "));
}

TEST_F(RunFolderTest, SaysWhatThatWasPaidForWouldBeDeleted) {
  EXPECT_EQ(RunFolder::PaidWork(folder_), "");
  { const RunDatabase database(folder_ / "run.sqlite"); }
  EXPECT_EQ(RunFolder::PaidWork(folder_), "");
  fs::create_directories(folder_ / "artifacts/coder");
  std::ofstream(folder_ / "artifacts/coder/a") << "paid for";
  EXPECT_THAT(RunFolder::PaidWork(folder_), HasSubstr("has no finished step; its plugins' files in artifacts/"));
  WriteRun(folder_, 12.3, "name: a\n");
  const std::string paid = RunFolder::PaidWork(folder_);
  EXPECT_EQ(paid, "the run in " + folder_.string() +
                      " is deleted once the new one begins, and with it its coder's answers, which cost $12.30");
  EXPECT_THAT(Refusal(), HasSubstr("to delete it (its coder's answers cost $12.30) and start again: --overwrite"));
  { RunDatabase(folder_ / "run.sqlite").Set("coder_cost", "12.9"); }  // with those of a step that was not finished
  EXPECT_THAT(RunFolder::PaidWork(folder_), HasSubstr("which cost $12.90"));
  { RunDatabase(folder_ / "run.sqlite").Set("finished", "yes"); }
  EXPECT_THAT(Refusal(), HasSubstr("or delete that run (its coder's answers cost $12.90) with --overwrite"));
  WriteFileAtomically(folder_ / "run.sqlite", "no database");
  EXPECT_EQ(RunFolder::PaidWork(folder_), "") << "what is broken can be replaced, too";
}

TEST_F(RunFolderTest, ADatabaseOfAnotherProgramIsNoRunAndStaysAsItIs) {
  {
    Database other(folder_ / "run.sqlite");
    other.Execute("CREATE TABLE races(winner TEXT)");
  }
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("of another program, or of another version of this one"),
                               HasSubstr("or delete it with --overwrite")));
  {
    Database other(folder_ / "run.sqlite");
    other.Execute("PRAGMA user_version = 77");
  }
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("of another program, or of another version of this one"),
                               HasSubstr("or delete it with --overwrite")));
}

// A copy that failed, a full disk: the file is there, and nothing in it.
TEST_F(RunFolderTest, ARecordThatWasEmptiedIsToldOf) {
  std::ofstream(folder_ / "run.sqlite").flush();
  std::ofstream(folder_ / "resolved.yaml").flush();
  EXPECT_THAT(WhyNoRecord(folder_), HasSubstr("run.sqlite is empty: the run was ended before its first step"));
  EXPECT_NO_THROW(RunFolder::Open(folder_)) << "nothing is lost";
  fs::create_directories(folder_ / "checkpoints/step-3");
  const std::string lost = "run.sqlite is empty: the run's samples, metrics and costs are lost";
  EXPECT_THAT(WhyNoRecord(folder_), HasSubstr(lost));
  EXPECT_THAT(RunFolder::Refusal(folder_, "name: a\n"), HasSubstr(lost));
  EXPECT_THAT(test::MessageOf([&] { RunFolder::Open(folder_); }, KGRPO_ERROR_INVALID), HasSubstr(lost));
}

TEST_F(RunFolderTest, ADatabaseOfAnotherProgramIsNotContinued) {
  std::ofstream(folder_ / "resolved.yaml").flush();
  Database other(folder_ / "run.sqlite");
  other.Execute("CREATE TABLE races(winner TEXT)");
  for (const char* version : {"PRAGMA user_version = 0", "PRAGMA user_version = 2"}) {
    other.Execute(version);
    EXPECT_THAT(WhyNoRecord(folder_), HasSubstr("was written by another version of kgrpo-host")) << version;
    EXPECT_THROW(RunFolder::Open(folder_), Error) << version;
  }
}

TEST_F(RunFolderTest, ArtifactsComeBackWhereNoRunBegan) {
  WriteFileAtomically((fs::create_directories(folder_ / "artifacts/coder"), folder_ / "artifacts/coder/a"), "earlier");
  {
    const RunFolderClaim claim(folder_);
    EXPECT_FALSE(fs::exists(folder_ / "artifacts"));
    EXPECT_THROW(RunFolderClaim another(folder_), Error);  // somebody is at work here
    fs::create_directories(folder_ / "artifacts/coder");
    WriteFileAtomically(folder_ / "artifacts/coder/a", "new");
  }
  EXPECT_EQ(ReadFile(folder_ / "artifacts/coder/a"), "earlier");
  {
    RunFolderClaim claim(folder_);
    fs::create_directories(folder_ / "artifacts/coder");
    WriteFileAtomically(folder_ / "artifacts/coder/a", "new");
    const RunFolder run = RunFolder::Create(folder_, "name: a\n", true, &claim);
  }
  EXPECT_EQ(ReadFile(folder_ / "artifacts/coder/a"), "new");
  EXPECT_FALSE(fs::exists(folder_ / "artifacts.earlier"));
}

}  // namespace
}  // namespace kgrpo
