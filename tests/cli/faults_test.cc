// A run whose reward crashes, calls exit(), scores nan or never returns: the messages at a terminal, and the exit code.
#include <csignal>

#include "commands.h"
#include "test.h"

namespace kgrpo {
namespace {

class PluginFaultTest : public CliTest {
 protected:
  // A run with that plugin of tests/fixtures/bad_plugins as its reward.
  test::Result RunWith(const std::string& bad) {
    return Run("run p.yaml --set output_dir=r --set reward.plugin=" KGRPO_BINARY_DIR "/tests/bad_plugins/" + bad +
               ".so");
  }
};

TEST_F(PluginFaultTest, ACrashSaysWhoAndHowToGoOn) {
  const test::Result result = RunWith("crashes_in_score");
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.err,
              HasSubstr("kgrpo-host: crashed in crashes_in_score's score (SIGSEGV): a fault of that plugin; "
                        "the run can be resumed with: kgrpo-host resume r"));
}

TEST_F(PluginFaultTest, ACrashLeavesACoreWhereOneIsWanted) {
  setenv("KGRPO_CRASH", "core", 1);
  const test::Result result = RunWith("crashes_in_score");
  unsetenv("KGRPO_CRASH");
  EXPECT_EQ(result.code, 128 + SIGSEGV);
  EXPECT_THAT(result.err, HasSubstr("kgrpo-host: crashed in crashes_in_score's score (SIGSEGV)"));
}

TEST_F(PluginFaultTest, AnExitIsNoSuccess) {
  const test::Result result = RunWith("exits_in_score");
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.err, HasSubstr("kgrpo-host: exit() was called in exits_in_score's score: a fault of that plugin"));
  EXPECT_FALSE(std::filesystem::exists(directory_.path() / "r" / "final"));
}

TEST_F(PluginFaultTest, ANanNamesItsPlugin) {
  const test::Result result = RunWith("nan_score");
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.err,
              testing::ContainsRegex("nothing was learned: .*of the reward's failures the commonest, [0-9]+ times: "
                                     "nan_score: the score is nan"));
  // Nor is it a success later.
  const test::Result finished = test::RunHost(directory_.path(), "resume r");
  EXPECT_EQ(finished.code, 1);
  EXPECT_THAT(finished.err, HasSubstr("steps are done, but nothing was learned: "));
}

TEST_F(PluginFaultTest, CtrlCNamesWhatItWaitsFor) {
  const std::string command = "cd '" + directory_.path().string() + "' && KGRPO_CACHE_DIR=cache KGRPO_PLUGIN_PATH='" +
                              KGRPO_BINARY_DIR "/tests/plugins' timeout -s INT -k 2 10 '" KGRPO_BINARY_DIR
                                               "/bin/kgrpo-host' run p.yaml --set output_dir=r "
                                               "--set reward.plugin=" KGRPO_BINARY_DIR
                                               "/tests/bad_plugins/hangs_in_score.so > out 2> err";
  EXPECT_NE(std::system(command.c_str()), 0);
  EXPECT_THAT(test::Read(directory_.path() / "err"),
              HasSubstr("kgrpo-host: stopping in step 1, in hangs_in_score's score; press Ctrl-C again to end now"));
}

}  // namespace
}  // namespace kgrpo
