// evaluator_cuda/profiler.h with a fake ncu: how it is found and called, and how its error messages are reported. The
// real one needs a GPU (device_evaluator_gpu_test.cc).
#include "evaluator_cuda/profiler.h"

#include "test.h"

#include <sys/stat.h>
#include <unistd.h>

namespace kgrpo::evaluator_cuda {
namespace {

using evaluator::Sandbox;
using evaluator::SandboxMode;

const std::string kHelpers = std::string(KGRPO_BINARY_DIR) + "/lib/kgrpo/evaluator";

class ProfilerTest : public testing::Test {
 protected:
  ProfilerTest() : folder_("/tmp/profiler_test_" + std::to_string(getpid())), path_(std::getenv("PATH")) {
    std::filesystem::create_directories(folder_ + "/bin");
    std::filesystem::create_directories(folder_ + "/candidate");
    options_.helper_directory = kHelpers;
    options_.cuda_home = folder_ + "/toolkit";
    options_.runtime_library = "/usr/lib/libcudart.so.13";
    options_.compute_capability = 90;
    options_.sandbox_off = true;
    setenv("PATH", (folder_ + "/bin:" + path_).c_str(), 1);
  }
  ~ProfilerTest() override {
    setenv("PATH", path_.c_str(), 1);
    std::filesystem::remove_all(folder_);
  }

  // A program that says its version, and else does `body`, with all its arguments in $all.
  void Install(const std::string& body) {
    const std::string file = folder_ + "/bin/ncu";
    std::ofstream(file) << "#!/bin/sh\nif [ \"$1\" = --version ]; then echo 'NVIDIA (R) Nsight Compute Command Line "
                           "Profiler'; echo 'Version 2025.3.0.0 (build 1) (public-release)'; exit 0; fi\nall=\"$*\"\n"
                        << body << "\n";
    chmod(file.c_str(), 0755);
  }

  std::string FailureOf(const Sandbox& sandbox) {
    return test::MessageOf([&] { Profiler(sandbox, options_).Run(folder_ + "/candidate"); }, KGRPO_ERROR_UNAVAILABLE,
                           "");
  }

  const std::string folder_, path_;
  Profiler::Options options_;
  const Sandbox off_{SandboxMode::kOff, kHelpers};
};

constexpr char kTable[] =
    "echo '\"ID\",\"Kernel Name\",\"gpu__time_duration.sum\"'; echo '\"\",\"\",\"ns\"'; echo '\"0\",\"k\",\"1,024\"'";

TEST_F(ProfilerTest, RunsNcuOnTheCandidate) {
  Install("case \"$all\" in *'--profile-from-start off'*'kgrpo_cuda_profile /usr/lib/libcudart.so.13 '*/candidate) " +
          std::string(kTable) + ";; *) echo \"==ERROR== called as $all\"; exit 1;; esac");
  Profiler profiler(off_, options_);
  EXPECT_EQ(profiler.Describe(), "Nsight Compute 2025.3.0.0 (" + folder_ + "/bin/ncu)");
  EXPECT_FALSE(profiler.has_worked());
  const std::vector<ProfiledKernel> kernels = profiler.Run(folder_ + "/candidate");
  ASSERT_EQ(kernels.size(), 1u);
  EXPECT_EQ(kernels[0].counts.at("gpu__time_duration.sum"), 1024);
  EXPECT_TRUE(profiler.has_worked());
}

TEST_F(ProfilerTest, LeavesOutMetricsThatNcuDoesNotKnow) {
  Install(
      "case \"$all\" in *gmma*) echo '==ERROR== Failed to find metric "
      "regex:^smsp__average_warps_issue_stalled_gmma_per_issue_active\\.(ratio)$'; exit 1;; esac\n"
      "case \"$all\" in *long_scoreboard*) " +
      std::string(kTable) + ";; esac");
  EXPECT_EQ(Profiler(off_, options_).Run(folder_ + "/candidate").size(), 1u);
  Install("echo '==ERROR== Failed to find metric of_nobody'; exit 1");
  EXPECT_THAT(FailureOf(off_), HasSubstr("profiled no kernel")) << "and does not try for ever";
}

TEST_F(ProfilerTest, SaysWhyNothingWasProfiled) {
  Install("echo '==ERROR== ERR_NVGPUCTRPERM - The user does not have permission'; exit 1");
  EXPECT_THAT(FailureOf(off_), AllOf(HasSubstr("NVreg_RestrictProfilingToAdminUsers=0"), HasSubstr("or run as root")));
  Install("echo '==ERROR== The application returned an error code (1).'; exit 1");
  EXPECT_THAT(FailureOf(off_), HasSubstr("ncu says: The application returned an error code (1)."));
  Install("echo 'Segmentation fault'; exit 139");
  EXPECT_THAT(FailureOf(off_), HasSubstr("exit code 139 and profiled no kernel; its last words:\nSegmentation fault"));
}

TEST_F(ProfilerTest, IsMissedWhereItIsNotInstalled) {
  setenv("PATH", (folder_ + "/bin").c_str(), 1);
  if (std::filesystem::exists("/opt/nvidia/nsight-compute")) GTEST_SKIP() << "it is installed here";
  EXPECT_THAT(FailureOf(off_), AllOf(HasSubstr("ncu is not installed"), HasSubstr(folder_ + "/toolkit/bin/ncu")));
}

// Inside namespaces it may have sockets, and writes nowhere but to its own /tmp; without namespaces it does not run.
TEST_F(ProfilerTest, RunsInsideTheSandbox) {
  options_.sandbox_off = false;
  Install(
      "touch \"$0.touched\" 2>/dev/null && { echo '==ERROR== could write'; exit 1; }\n"
      "touch \"$HOME/own\" || { echo '==ERROR== nowhere to write'; exit 1; }\n"
      "[ $(id -u) = 65534 ] || { echo '==ERROR== is somebody'; exit 1; }\n" +
      std::string(kTable));
  const Sandbox sandbox(SandboxMode::kAuto, kHelpers);
  if (sandbox.has_namespaces()) {
    EXPECT_EQ(FailureOf(sandbox), "");
  } else {
    EXPECT_THAT(FailureOf(sandbox), HasSubstr("which candidates may only have inside namespaces"));
  }
}

}  // namespace
}  // namespace kgrpo::evaluator_cuda
