// store/run_folder.h: what a folder says of an earlier run, and that looking changes nothing.
#include "store/run_folder.h"

#include "store/database.h"
#include "store/files.h"
#include "store/sqlite.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <kgrpo/sdk/error.h>

#include <fstream>
#include <map>

namespace kgrpo {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

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
      "output_dir " + folder_.string() + " holds a run without a finished step: a new run takes its place";
  EXPECT_EQ(RunFolder::Leftover(folder_), replaced);
  std::ofstream(folder_ / "artifacts/coder/a") << "paid for";
  EXPECT_EQ(RunFolder::Leftover(folder_),
            replaced + ", and takes up what its plugins kept in artifacts/, such as the coder's answers");
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
  EXPECT_THAT(Refusal(), HasSubstr("holds an unfinished run of another configuration"));
  WriteFileAtomically(folder_ / "resolved.yaml", "name: a\n");
  EXPECT_THAT(Refusal(), HasSubstr("(1 steps done). To go on with it: kgrpo-host resume"));
  { RunDatabase(folder_ / "run.sqlite").Set("finished", "yes"); }
  EXPECT_THAT(Refusal(), HasSubstr("holds a finished run"));
}

TEST_F(RunFolderTest, ADatabaseOfAnotherProgramIsNoRunAndStaysAsItIs) {
  {
    Database other(folder_ / "run.sqlite");
    other.Execute("CREATE TABLE races(winner TEXT)");
  }
  EXPECT_THAT(Refusal(), HasSubstr("of another program, or of another version of this one"));
  {
    Database other(folder_ / "run.sqlite");
    other.Execute("PRAGMA user_version = 77");
  }
  EXPECT_THAT(Refusal(), HasSubstr("of another program, or of another version of this one"));
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
