// Escapes from the sandbox, each tried by a real program; fewer protections on systems that lack some; limits; output
// caps.
#include "judge/sandbox/sandbox.h"

#include <unistd.h>

#include "judge/cache/evaluation_memory.h"
#include "judge/compile/cuda_toolkit.h"
#include "process/subprocess.h"
#include "test.h"

namespace kgrpo::evaluator {
namespace {

class SandboxTest : public testing::Test {
 protected:
  SandboxTest() : sandbox_(SandboxMode::kAuto, FindHelperDirectory()), scratch_(sandbox_) {}

  process::Subprocess::Result Shell(const std::string& script, double seconds = 20,
                                    uint64_t memory = uint64_t{1} << 30) {
    SandboxCommand command;
    command.argv = {"/bin/sh", "-c", script};
    command.environment = {"PATH=/usr/bin:/bin"};
    command.scratch = scratch_.path();
    command.memory_bytes = memory;
    command.cpu_seconds = 5;
    command.file_bytes = 1 << 20;
    return process::Subprocess::Run(sandbox_.Wrap(command), seconds, 10000);
  }

  Sandbox sandbox_;
  ScratchFolder scratch_;
};

TEST_F(SandboxTest, RunsAndWritesItsScratchOnly) {
  EXPECT_TRUE(Shell("echo hello > result").Succeeded());
  EXPECT_TRUE(std::filesystem::exists(scratch_.path() + "/result"));
  const std::string outside = testing::TempDir() + "/sandbox_test_outside_" + std::to_string(getpid());
  Shell("echo hello > " + outside);
  EXPECT_FALSE(std::filesystem::exists(outside));
  EXPECT_FALSE(Shell("echo x > /usr/x || echo x > /etc/x").Succeeded());
}

TEST_F(SandboxTest, SeesNothingOfTheUser) {
  if (!sandbox_.has_namespaces()) GTEST_SKIP() << sandbox_.description();
  EXPECT_FALSE(Shell("cat /etc/passwd").Succeeded());
  EXPECT_FALSE(Shell("ls /root || ls /home").Succeeded());
  EXPECT_THAT(Shell("ls /tmp").output, testing::Not(HasSubstr("sandbox_test")));
  // Its own process numbers only, one of them this shell.
  EXPECT_EQ(Shell("kill -0 " + std::to_string(getpid())).exit_code == 0, false);
  EXPECT_THAT(Shell("cat /proc/net/dev | grep -c :").output, testing::StartsWith("1"));  // loopback alone
}

// A profiler's processes speak through the loopback device and named pipes; its other rights are a compiler's.
TEST_F(SandboxTest, SocketsAndPipesForWhoAsksAndInsideNamespacesOnly) {
  if (!sandbox_.has_filter()) GTEST_SKIP() << sandbox_.description();
  const auto attempt = [this](bool sockets, const std::string& call) {
    SandboxCommand command;
    // The exit code says whether it went well.
    command.argv = {"/usr/bin/perl", "-e", "$x = q(/tmp/x); exit(syscall(" + call + ") < 0 ? 1 : 0)"};
    command.environment = {"PATH=/usr/bin:/bin"};
    command.sockets = sockets;
    return process::Subprocess::Run(sandbox_.Wrap(command), 20, 10000).Succeeded();
  };
  // On x86-64: socket(AF_INET, SOCK_STREAM), mknod of a named pipe and of the device /dev/null, unshare of nothing.
  const std::string socket = "41, 2, 1, 0", pipe = "133, $x, 010600, 0", device = "133, $x, 020600, 259";
  EXPECT_FALSE(attempt(false, socket));
  EXPECT_EQ(attempt(true, socket), sandbox_.has_namespaces());
  EXPECT_FALSE(attempt(false, pipe));
  EXPECT_EQ(attempt(true, pipe), sandbox_.has_namespaces());
  EXPECT_FALSE(attempt(true, device));
  EXPECT_FALSE(attempt(true, "272, 0"));
}

TEST_F(SandboxTest, EnvironmentIsEmptied) {
  setenv("KGRPO_TEST_SECRET", "sesame", 1);
  EXPECT_THAT(Shell("env").output, testing::Not(HasSubstr("sesame")));
  unsetenv("KGRPO_TEST_SECRET");
}

TEST_F(SandboxTest, DescriptorsStayOutside) {
  const std::string path = testing::TempDir() + "/sandbox_test_open_" + std::to_string(getpid());
  std::ofstream file(path);
  EXPECT_THAT(Shell("ls -l /proc/self/fd").output, testing::Not(HasSubstr("sandbox_test_open")));
  std::filesystem::remove(path);
}

TEST_F(SandboxTest, SystemCallsAreFiltered) {
  // Perl is in every Debian base; 41 is socket, 101 ptrace, 425 io_uring_setup on x86-64.
  if (access("/usr/bin/perl", X_OK) != 0) GTEST_SKIP() << "no perl";
  for (const char* number :
       {"41, 2, 1, 0", "101, 0, 0, 0", "425, 1, 0", "250, 0, 0", "165, 0, 0, 0", "272, 0x10000000"}) {
    const process::Subprocess::Result result =
        Shell(std::string("perl -e 'exit(syscall(") + number + ") == -1 ? 7 : 0)'");
    EXPECT_EQ(result.exit_code, 7) << number << " " << result.output;
  }
}

TEST_F(SandboxTest, LimitsHold) {
  EXPECT_FALSE(Shell("head -c 3000000 /dev/zero > big").Succeeded());
  const process::Subprocess::Result sleeper = Shell("sleep 100", 1);
  EXPECT_TRUE(sleeper.timed_out);
  const process::Subprocess::Result loop = Shell("while true; do :; done", 30);
  EXPECT_FALSE(loop.timed_out) << "the CPU limit comes first";
  EXPECT_FALSE(loop.Succeeded());
  if (access("/usr/bin/perl", X_OK) == 0) {
    EXPECT_FALSE(Shell("perl -e '$x = \"a\" x 2000000000; print length $x'", 20, uint64_t{256} << 20).Succeeded());
  }
}

TEST_F(SandboxTest, OutputIsCut) {
  const process::Subprocess::Result result = Shell("yes | head -c 1000000");
  EXPECT_EQ(result.output.size(), 10000u);
  EXPECT_TRUE(result.output_cut);
  EXPECT_TRUE(Shell("yes", 1).timed_out) << "a flood does not hide the end of the time";
}

TEST_F(SandboxTest, NothingSurvivesTheCommand) {
  Shell("sleep 77.125 & exit 0");
  const process::Subprocess::Result found =
      process::Subprocess::Run({{"sh", "-c", "grep -la '77.125' /proc/[0-9]*/cmdline 2>/dev/null | grep -v self"}}, 10);
  EXPECT_THAT(found.output, testing::Not(HasSubstr("sleep")));
  Shell("sleep 78.125", 0.5);
  const process::Subprocess::Result after =
      process::Subprocess::Run({{"sh", "-c",
                                 "for f in /proc/[0-9]*/comm; do read c < $f; d=${f%comm}; [ "
                                 "\"$c\" = sleep ] && tr '\\0' ' ' < ${d}cmdline; done"}},
                               10);
  EXPECT_THAT(after.output, testing::Not(HasSubstr("78.125")));
}

TEST_F(SandboxTest, OffStillRuns) {
  Sandbox off(SandboxMode::kOff, FindHelperDirectory());
  EXPECT_THAT(off.description(), HasSubstr("off"));
  SandboxCommand command;
  command.argv = {"/bin/sh", "-c", "echo fine"};
  command.environment = {"PATH=/usr/bin:/bin"};
  command.compiler_filter = false;
  EXPECT_EQ(process::Subprocess::Run(off.Wrap(command), 10).output, "fine\n");
}

TEST(SandboxDegrades, WithoutBubblewrap) {
  // A PATH without bwrap: the rest must work, be described, and be refused by strict.
  const std::string path = std::getenv("PATH");
  setenv("PATH", "/nonexistent", 1);
  const std::string helpers = FindHelperDirectory();
  {
    Sandbox sandbox(SandboxMode::kAuto, helpers);
    EXPECT_FALSE(sandbox.has_namespaces());
    EXPECT_TRUE(sandbox.has_filter());
    EXPECT_THAT(sandbox.description(),
                testing::ContainsRegex("; missing: namespaces \\(install the package bubblewrap\\)"));
    EXPECT_LT(sandbox.description().size(), 300u) << sandbox.description();
    ScratchFolder scratch(sandbox);
    SandboxCommand command;
    command.argv = {"/bin/sh", "-c", "echo x > mine && cat mine"};
    command.environment = {"PATH=/usr/bin:/bin"};
    command.scratch = scratch.path();
    EXPECT_EQ(process::Subprocess::Run(sandbox.Wrap(command), 10).output, "x\n");
    // The user's files are closed to reads too, or the description says that they are not.
    const std::string secret = testing::TempDir() + "/sandbox_test_secret_" + std::to_string(getpid());
    std::ofstream(secret) << "sesame";
    command.argv = {"/bin/sh", "-c",
                    "cat " + secret + "; ls " + testing::TempDir() + "; cat /proc/1/environ /etc/passwd; true"};
    command.argv[2] = "exec 2>/dev/null; " + command.argv[2];  // messages name the file
    const std::string read = process::Subprocess::Run(sandbox.Wrap(command), 10).output;
    std::filesystem::remove(secret);
    if (sandbox.description().find("landlock against reads") != std::string::npos) {
      EXPECT_THAT(read, testing::AllOf(testing::Not(HasSubstr("sesame")), testing::Not(HasSubstr("sandbox_test")),
                                       testing::Not(HasSubstr("root:"))));
    } else {
      EXPECT_THAT(sandbox.description(), HasSubstr("host code can read every file that"));
    }
  }
  EXPECT_THAT(test::MessageOf([&] { Sandbox strict(SandboxMode::kStrict, helpers); }, KGRPO_ERROR_UNAVAILABLE),
              HasSubstr("sandbox: strict is asked for, but this machine lacks namespaces (bwrap is not installed)"));
  setenv("PATH", path.c_str(), 1);
}

// As an ordinary user, and as root of a container where it is the only one: no file can be given to nobody there, and
// nobody cannot be become.
TEST(SandboxDegrades, WithoutRightsOrOtherUsers) {
  const std::string user = geteuid() == 0 ? "setpriv --reuid 12345 --regid 12345 --clear-groups" : "env";
  for (const std::string& how : {user, std::string("unshare --user --map-root-user")}) {
    const auto as = [&how](const std::string& command) {
      return process::Subprocess::Run({{"/bin/sh", "-c", "exec " + how + " " + command}}, 120);
    };
    if (!as("true").Succeeded()) continue;  // this machine allows no user namespaces
    const process::Subprocess::Result result = as(std::filesystem::read_symlink("/proc/self/exe").string() +
                                                  " --gtest_filter=SandboxDegrades.WithoutBubblewrap");
    EXPECT_TRUE(result.Succeeded()) << how << ": " << result.output;
  }
}

TEST(EvaluationCacheTest, KeepsAndSurvives) {
  const std::string path = testing::TempDir() + "/cache_test_" + std::to_string(getpid()) + ".sqlite";
  {
    EvaluationCache one(path), two(path);
    EXPECT_FALSE(one.Find("a"));
    one.Keep("a", "1");
    two.Keep("a", "2");  // the first stays
    EXPECT_EQ(two.Find("a"), "1");
  }
  {
    EvaluationCache again(path);
    EXPECT_EQ(again.Find("a"), "1");
  }
  std::filesystem::remove(path + "-wal");
  std::filesystem::remove(path + "-shm");
  std::ofstream(path, std::ios::trunc) << "this is no database at all, but text that is longer than a header of one "
                                          "hundred bytes, which SQLite reads first";
  {
    EvaluationCache fresh(path);
    EXPECT_FALSE(fresh.Find("a"));
    fresh.Keep("b", "3");
    EXPECT_EQ(fresh.Find("b"), "3");
  }
  EXPECT_TRUE(std::filesystem::exists(path + ".damaged"));
  EXPECT_THROW(EvaluationCache("/no/such/folder/cache.sqlite"), Error);
  for (const char* end : {"", ".damaged", "-wal", "-shm"}) std::filesystem::remove(path + end);
}

}  // namespace
}  // namespace kgrpo::evaluator
