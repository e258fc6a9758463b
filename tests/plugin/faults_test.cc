// Messages of the process when a plugin crashes, calls exit() or is waited for after Ctrl-C. Each test runs in its
// own process.
#include "base/faults.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "base/cancel.h"
#include "base/plugin_calls.h"
#include "in_process.h"
#include "plugin/instances.h"
#include "test.h"

namespace kgrpo {
namespace {

using testing::ExitedWithCode;
using testing::KilledBySignal;

class FaultsTest : public test::InstancesTest {
 protected:
  FaultsTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }

  void ScoreBy(const std::string& bad) {
    const PluginLibrary library(KGRPO_BINARY_DIR "/tests/bad_plugins/" + bad + ".so");
    Reward reward(library.Table<kgrpo_reward_interface>(Role::kReward), host_, nlohmann::json::object());
    kgrpo_reward_request request{};
    request.struct_size = sizeof(request);
    reward.Score(request);
  }
};

TEST_F(FaultsTest, ACrashNamesThePluginAndItsFunction) {
  EXPECT_EXIT(
      {
        ExplainFaults();
        SetResumableRun("runs/first");
        ScoreBy("crashes_in_score");
      },
      ExitedWithCode(1),
      "kgrpo-host: crashed in crashes_in_score's score \\(SIGSEGV\\): a fault of that plugin; the run can be resumed "
      "with: kgrpo-host resume runs/first\n");
}

TEST_F(FaultsTest, AnAbortInCreateIsNamedToo) {
  EXPECT_EXIT(
      {
        ExplainFaults();
        ScoreBy("aborts_in_create");
      },
      ExitedWithCode(1), "crashed in aborts_in_create's create \\(SIGABRT\\): a fault of that plugin\n");
}

TEST_F(FaultsTest, AStackOverflowIsExplainedOnAnyThread) {
  EXPECT_EXIT(
      {
        ExplainFaults();
        ScoreBy("overflows_in_score");
      },
      ExitedWithCode(1), "crashed in overflows_in_score's score");
  EXPECT_EXIT(
      {
        ExplainFaults();
        std::thread([&] { ScoreBy("overflows_in_score"); }).join();
      },
      ExitedWithCode(1), "crashed in overflows_in_score's score");
}

// A trainer calls the policy's table itself: the code that crashed tells whose fault it is.
TEST_F(FaultsTest, ACrashOfThePolicyIsNotBlamedOnTheTrainer) {
  EXPECT_EXIT(
      {
        ExplainFaults();
        const PluginLibrary library(KGRPO_BINARY_DIR "/tests/bad_plugins/crashes_in_forward.so");
        Policy policy(library.Table<kgrpo_policy_interface>(Role::kPolicy), host_, nlohmann::json::object());
        Trainer trainer(test::Fakes().Table<kgrpo_trainer_interface>(Role::kTrainer), host_, {{"learning_rate", 1.0}});
        trainer.Begin(policy, {sizeof(kgrpo_trainer_plan), 1, 1.0, 4, 0, 0, 0, 0, 0, 0});
        const int32_t id = 1;
        kgrpo_sample sample{};
        sample.struct_size = sizeof(sample);
        sample.prompt_ids = sample.completion_ids = &id;
        sample.prompt_size = sample.completion_size = 1;
        trainer.Train({&sample, 1});
      },
      ExitedWithCode(1), "crashed in crashes_in_forward, called by fakes's update \\(SIGSEGV\\)");
}

TEST_F(FaultsTest, ACrashOfTheHostIsNotBlamedOnAPlugin) {
  EXPECT_EXIT(
      {
        ExplainFaults();
        std::raise(SIGILL);
      },
      ExitedWithCode(1), "crashed in no plugin's function \\(SIGILL\\): a fault of the host");
}

// As a sanitizer's: it ends the process in its own way.
TEST_F(FaultsTest, AHandlerThatWasThereBeforeHasTheLastWord) {
  EXPECT_EXIT(
      {
        std::signal(SIGSEGV, [](int) { _exit(66); });
        ExplainFaults();
        ScoreBy("crashes_in_score");
      },
      ExitedWithCode(66), "crashed in crashes_in_score's score");
}

TEST_F(FaultsTest, ACoreIsLeftWhereOneIsWanted) {
  EXPECT_EXIT(
      {
        setenv("KGRPO_CRASH", "core", 1);
        ExplainFaults();
        std::raise(SIGABRT);
      },
      KilledBySignal(SIGABRT), "crashed in no plugin's function");
}

TEST_F(FaultsTest, AnExitOfAPluginIsAFailure) {
  EXPECT_EXIT(
      {
        ExplainFaults();
        SetResumableRun("it's here");
        ScoreBy("exits_in_score");
      },
      ExitedWithCode(1), "kgrpo-host: exit\\(\\) was called in exits_in_score's score: a fault of that plugin");
}

TEST_F(FaultsTest, TheExitOfMainIsExpected) {
  EXPECT_EXIT(
      {
        ExplainFaults();
        ExpectExit();
        std::exit(3);
      },
      ExitedWithCode(3), "^$");
}

TEST_F(FaultsTest, AForkedChildMayExit) {
  EXPECT_EXIT(
      {
        ExplainFaults();
        if (fork() == 0) std::exit(0);
        wait(nullptr);
        ExpectExit();
        std::exit(0);
      },
      ExitedWithCode(0), "^$");
}

// Sends the signal to this process once a thread is in the plugin's score.
void InterruptDuring(const std::function<void()>& score, int signal) {
  std::thread(score).detach();
  SignalText calls;
  while (!AppendCallsUnderWay(calls)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  std::this_thread::sleep_for(std::chrono::milliseconds(100));  // from create to score
  std::raise(signal);
}

TEST_F(FaultsTest, CtrlCSaysAtOnceWhatItWaitsFor) {
  EXPECT_EXIT(
      {
        HandleSignals();
        InterruptDuring([&] { ScoreBy("hangs_in_score"); }, SIGINT);
        _exit(CancelRequested() ? 0 : 1);
      },
      ExitedWithCode(0), "kgrpo-host: stopping after hangs_in_score's score; press Ctrl-C again to end now\n");
  EXPECT_EXIT(
      {
        HandleSignals();
        NoteStepUnderWay(12);
        InterruptDuring([&] { ScoreBy("hangs_in_score"); }, SIGTERM);
        _exit(0);
      },
      ExitedWithCode(0), "kgrpo-host: stopping in step 12, in hangs_in_score's score; a second signal ends it");
  EXPECT_EXIT(
      {
        HandleSignals();
        std::raise(SIGINT);
        std::raise(SIGINT);
      },
      KilledBySignal(SIGINT), "^kgrpo-host: stopping; press Ctrl-C again to end now\n$");
}

TEST(PluginCall, NestsAndEnds) {
  const PluginName outer = {"outer"}, inner = {"inner"};
  EXPECT_EQ(CurrentCall().plugin, nullptr);
  {
    const PluginCall first(&outer, "implement");
    {
      const PluginCall second(&inner, "score");
      EXPECT_STREQ(CurrentCall().plugin->name, "inner");
      EXPECT_STREQ(CurrentCall().function, "score");
      std::thread([] { EXPECT_EQ(CurrentCall().plugin, nullptr) << "a thread's calls are its own"; }).join();
    }
    EXPECT_STREQ(CurrentCall().plugin->name, "outer");
    EXPECT_STREQ(CurrentCall().function, "implement");
  }
  EXPECT_EQ(CurrentCall().plugin, nullptr);
}

// Threads come and go by the thousand; slots are few, and are given back.
TEST(PluginCall, SlotsAreReused) {
  const PluginName plugin = {"reward_x"};
  for (int round = 0; round < 40; ++round) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 16; ++i) threads.emplace_back([&] { const PluginCall call(&plugin, "score"); });
    for (std::thread& thread : threads) thread.join();
  }
  SignalText none;
  EXPECT_FALSE(AppendCallsUnderWay(none));
  const PluginCall call(&plugin, "idle");
  EXPECT_TRUE(AppendCallsUnderWay(none));
}

}  // namespace
}  // namespace kgrpo
