// Exclusive use of devices: one user at a time, in the order of requests, and not while another process has the device.
#include "base/device_locks.h"

#include <kgrpo/sdk/gpu_uuid.h>
#include <kgrpo/sdk/host.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <deque>
#include <latch>

#include "base/cancel.h"
#include "base/services.h"
#include "test.h"

namespace kgrpo {
namespace {

using ::testing::SizeIs;

void Until(const std::function<bool()>& holds) {
  while (!holds()) std::this_thread::yield();
}

// Locks of which "cuda:0" has an identity, with files in a folder of the test's.
class MachineLocks : public ::testing::Test {
 protected:
  DeviceLocks::Options Options(const std::string& identity = "GPU-1") {
    return {.identity = [identity](const std::string& name) { return name == "cuda:0" ? identity : ""; },
            .directory = folder_.path() / "locks",
            .say =
                [this](const std::string& text) {
                  said_.push_back(text);
                  has_said_ = true;
                }};
  }
  bool IsFree() {
    MachineLock other(folder_.path() / "locks", "GPU-1");
    return other.TryTake();
  }

  TemporaryDirectory folder_;
  std::vector<std::string> said_;
  std::atomic<bool> has_said_ = false;
};

TEST(GpuUuidText, IsAsNvidiaSmiPrintsIt) {
  const unsigned char uuid[16] = {0x8a, 0x3f, 0x00, 0x0d, 0x1e, 0x55, 0x4b, 0x07,
                                  0x90, 0xff, 0x21, 0x6c, 0xd8, 0x34, 0xe2, 0xa9};
  EXPECT_EQ(GpuUuidText(uuid), "GPU-8a3f000d-1e55-4b07-90ff-216cd834e2a9");
}

TEST(DeviceLocks, OneAtATime) {
  HostServices services({});
  const Host host(services.ForInstance("x"));
  int inside = 0, most = 0;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      for (int j = 0; j < 50; ++j) {
        const DeviceLock lock(host, i % 2 == 0 ? "cuda:0" : "cuda");  // the same device
        most = std::max(most, ++inside);
        --inside;
      }
    });
  }
  threads.clear();
  EXPECT_EQ(most, 1);
}

TEST(DeviceLocks, NestedLocksAndForeignUnlocksAreErrors) {
  DeviceLocks locks;
  locks.Lock("cpu");
  locks.Lock("cuda:0");  // another device
  EXPECT_THROW(locks.Lock("cpu"), Error);
  EXPECT_THROW(locks.Lock("cuda"), Error);
  std::jthread([&] { EXPECT_THROW(locks.Unlock("cpu"), Error); }).join();
  locks.Unlock("cpu");
  EXPECT_THROW(locks.Unlock("cpu"), Error);
}

TEST(DeviceLocks, TwoDevicesAreUsedSideBySide) {
  DeviceLocks locks;
  std::latch both(2);
  const auto use = [&](const char* device) {
    locks.Lock(device);
    both.arrive_and_wait();  // returns only if the other one is inside too
    locks.Unlock(device);
  };
  std::jthread first([&] { use("cuda:0"); }), second([&] { use("cuda:1"); });
}

TEST(DeviceLocks, WhoWaitsIsNotPassedByWhoComesBack) {
  DeviceLocks locks;
  const double before = DeviceLocks::SecondsWaited();
  locks.Lock("cuda:0");
  std::atomic<int> served = 0;
  std::atomic<bool> asking = false;
  std::jthread evaluator([&] {
    asking = true;
    locks.Lock("cuda:0");
    ++served;
    locks.Unlock("cuda:0");
  });
  Until([&] { return asking.load(); });
  // It may not be in the line yet at the first tries, but in the end it is, and then it comes first.
  for (int tries = 0; served == 0; ++tries) {
    ASSERT_LT(tries, 1'000'000);
    std::this_thread::yield();
    locks.Unlock("cuda:0");
    locks.Lock("cuda:0");
  }
  locks.Unlock("cuda:0");
  EXPECT_GT(DeviceLocks::SecondsWaited(), before);
}

TEST(DeviceLocks, AStopDoesNotKeepTheLastCheckpointFromTheDevice) {
  DeviceLocks locks;
  locks.Lock("cpu");
  std::atomic<bool> got = false;
  std::jthread checkpoint([&] {
    locks.Lock("cpu");
    got = true;
    locks.Unlock("cpu");
  });
  RequestCancel();
  EXPECT_FALSE(got);
  locks.Unlock("cpu");
  checkpoint.join();
  EXPECT_TRUE(got);
  ClearCancel();
}

TEST_F(MachineLocks, KeepOtherProcessesAway) {
  DeviceLocks locks(Options());
  locks.Lock("cpu");
  EXPECT_TRUE(IsFree()) << "only what has an identity is the machine's";
  locks.Lock("cuda");
  EXPECT_FALSE(IsFree());
  locks.Unlock("cuda:0");
  EXPECT_TRUE(IsFree());
  EXPECT_THAT(said_, IsEmpty());
  struct stat status;
  ASSERT_EQ(stat((folder_.path() / "locks").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0700U);
}

TEST_F(MachineLocks, WaitForTheOtherProcessAndSaySoOnce) {
  MachineLock other(folder_.path() / "locks", "GPU-1");
  DeviceLocks locks(Options());
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(other.TryTake());
    std::atomic<bool> got = false;
    std::jthread evaluator([&] {
      locks.Lock("cuda:0");
      got = true;
      locks.Unlock("cuda:0");
    });
    Until([&] { return has_said_.load(); });  // the first time it waits; the second time, it may still be on its way
    EXPECT_FALSE(got);
    other.Release();
    evaluator.join();
    EXPECT_TRUE(got);
  }
  ASSERT_THAT(said_, SizeIs(1));
  EXPECT_THAT(said_[0], HasSubstr("device cuda:0 is in use by another process"));
  EXPECT_THAT(said_[0], HasSubstr("GPU-1.lock"));
}

TEST_F(MachineLocks, WaitersAreServedInTheOrderOfArrival) {
  const fs::path directory = folder_.path() / "locks";
  std::deque<MachineLock> locks;
  for (int i = 0; i < 12; ++i) EXPECT_EQ(locks.emplace_back(directory, "GPU-1").TryTake(), i == 0);
  for (int turn = 0; turn < 40; ++turn) {  // who comes back stands behind all others
    locks[turn % 12].Release();
    for (int i = 11; i >= 0; --i) EXPECT_EQ(locks[i].TryTake(), i == (turn + 1) % 12) << turn << " " << i;
  }
  locks[2].Release();  // a waiter that gives up
  locks[4].Release();
  EXPECT_FALSE(locks[2].TryTake());
  EXPECT_TRUE(locks[5].TryTake());
}

// None fails, and none is there beside another.
TEST_F(MachineLocks, TwelveProcessesTakeTurns) {
  constexpr int kProcesses = 12, kUses = 20;
  struct Shared {
    std::atomic<int> inside, uses;
  };
  void* page = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto* shared = new (page) Shared{};
  const DeviceLocks::Options options = Options();
  std::vector<pid_t> processes;
  for (int p = 0; p < kProcesses; ++p) {
    processes.push_back(fork());
    if (processes.back() != 0) continue;
    DeviceLocks locks(options);
    for (int use = 0; use < kUses; ++use) {
      locks.Lock("cuda:0");
      if (++shared->inside != 1) _exit(1);
      usleep(1000);
      ++shared->uses;
      --shared->inside;
      locks.Unlock("cuda:0");
    }
    _exit(0);
  }
  for (const pid_t process : processes) {
    int status = 0;
    waitpid(process, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(shared->uses, kProcesses * kUses);
  munmap(page, sizeof(Shared));
}

TEST_F(MachineLocks, AreGivenBackByTheDeath) {
  const fs::path directory = folder_.path() / "locks";
  MachineLock lock(directory, "GPU-1");
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    MachineLock own(directory, "GPU-1");
    const char taken = own.TryTake() ? 'y' : 'n';
    if (write(ready[1], &taken, 1) != 1) _exit(1);
    for (;;) pause();
  }
  char taken = 0;
  ASSERT_EQ(read(ready[0], &taken, 1), 1);
  EXPECT_EQ(taken, 'y');
  EXPECT_FALSE(lock.TryTake());
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(lock.TryTake());
  close(ready[0]);
  close(ready[1]);
}

TEST_F(MachineLocks, AStopEndsTheWaitForAnotherProcess) {
  MachineLock other(folder_.path() / "locks", "GPU-1");
  ASSERT_TRUE(other.TryTake());
  DeviceLocks locks(Options());
  RequestCancel();
  locks.Lock("cuda:0");  // goes on without it: what is left to do is a checkpoint
  locks.Unlock("cuda:0");
  ClearCancel();
  other.Release();
  EXPECT_TRUE(other.TryTake()) << "and left its place in the line";
}

TEST_F(MachineLocks, AFolderThatIsSomeoneElsesIsNotUsed) {
  fs::create_directory_symlink(folder_.path(), folder_.path() / "locks");
  DeviceLocks locks(Options());
  for (int i = 0; i < 2; ++i) {
    locks.Lock("cuda:0");
    locks.Unlock("cuda:0");
  }
  ASSERT_THAT(said_, SizeIs(1));
  EXPECT_THAT(said_[0], HasSubstr("it is not a folder of this user"));
  EXPECT_THAT(said_[0], HasSubstr("another run on device cuda:0 may disturb this one's timing"));
}

TEST(MachineLockDirectory, IsTheUsersUnlessTheVariableNamesOne) {
  unsetenv("KGRPO_LOCK_DIR");
  EXPECT_EQ(MachineLockDirectory(), "/tmp/kgrpo-" + std::to_string(geteuid()));
  setenv("KGRPO_LOCK_DIR", "/run/gpus", 1);
  EXPECT_EQ(MachineLockDirectory(), "/run/gpus");
  unsetenv("KGRPO_LOCK_DIR");
}

// A host that writes down what is asked of it.
struct Recorder {
  std::vector<std::string> calls;
  kgrpo_host_interface api{};
  kgrpo_host host{};
  Recorder() {
    api.struct_size = sizeof(api);
    api.lock_device = [](void* context, kgrpo_str device) -> kgrpo_error* {
      static_cast<Recorder*>(context)->calls.push_back("lock " + Copy(device));
      return nullptr;
    };
    api.unlock_device = [](void* context, kgrpo_str device) {
      static_cast<Recorder*>(context)->calls.push_back("unlock " + Copy(device));
    };
    host = {this, [](void* context, kgrpo_str) -> const void* { return &static_cast<Recorder*>(context)->api; }};
  }
};

TEST(DeviceTurn, SettlesBeforeEveryUnlocking) {
  Recorder host;
  {
    DeviceTurn turn(
        Host(&host.host), "cuda:1", [&] { host.calls.push_back("settle"); },
        [&](double seconds) { host.calls.push_back(seconds >= 0 && seconds < 60 ? "used" : "wrong time"); });
    EXPECT_FALSE(turn.SliceIsOver());
    turn.Pause();
    turn.Pause();
    turn.Resume();
    turn.Resume();
  }
  EXPECT_THAT(host.calls, ElementsAre("lock cuda:1", "settle", "unlock cuda:1", "used", "lock cuda:1", "settle",
                                      "unlock cuda:1", "used"));
}

TEST(DeviceTurn, UnlocksWhereTheDeviceFails) {
  Recorder host;
  {
    DeviceTurn turn(Host(&host.host), "cpu", [] { throw Error(KGRPO_ERROR_UNAVAILABLE, "fell off the bus"); });
    EXPECT_THROW(turn.Pause(), Error);
    turn.Resume();
  }
  EXPECT_THAT(host.calls, ElementsAre("lock cpu", "unlock cpu", "lock cpu", "unlock cpu"));
}

}  // namespace
}  // namespace kgrpo
