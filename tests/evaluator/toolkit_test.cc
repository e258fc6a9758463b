// Mistakes in a toolkit or a host compiler are reported before anything is judged, with advice. The toolkits here are
// shell scripts.
#include "fake_toolkit.h"
#include "judge/compile/compiler.h"
#include "judge/compile/cuda_toolkit.h"
#include "judge/compile/nvcc_compile.h"
#include "judge/sandbox/sandbox.h"
#include "test.h"

namespace kgrpo::evaluator {
namespace {

// The message of the function's exception; "" if it throws nothing.
std::string ErrorOf(const std::function<void()>& body) { return test::MessageOf(body, KGRPO_ERROR_UNAVAILABLE, ""); }

std::string FindError(const fs::path& home) {
  return ErrorOf([&] { FindToolkit(home); });
}

TEST(Toolkit, OfScriptsIsFound) {
  const FakeToolkit fake;
  const CudaToolkit toolkit = FindToolkit(fake.home());
  EXPECT_EQ(toolkit.version, "13.0, V13.0.88");
  EXPECT_EQ(toolkit.architectures, (std::vector<int>{75, 90, 120}));
  EXPECT_EQ(toolkit.nvrtc, "");
}

TEST(Toolkit, MissingOrBrokenFolder) {
  const FakeToolkit fake;
  EXPECT_THAT(FindError(fake.home() / "none"),
              AllOf(HasSubstr("the variable KGRPO_CUDA_HOME"), HasSubstr("no such folder")));
  fs::remove_all(fake.home() / "include");
  EXPECT_THAT(FindError(fake.home()), HasSubstr("no include/cuda_fp16.h"));
  fs::remove(fake.home() / "bin/nvcc");
  EXPECT_THAT(FindError(fake.home()), HasSubstr("no bin/nvcc"));
}

TEST(Toolkit, NvccThatDoesNotRun) {
  const FakeToolkit fake;
  WriteScript(fake.home() / "bin/nvcc", "echo 'error while loading shared libraries'; exit 127\n");
  EXPECT_THAT(FindError(fake.home()), HasSubstr("bin/nvcc --version does not run"));
  std::ofstream(fake.home() / "bin/nvcc") << "\177ELF of another machine";
  EXPECT_THAT(FindError(fake.home()), HasSubstr("bin/nvcc --version does not run"));
}

// A compiler that waits, as on a busy machine, is not at its limit; one that computes is.
TEST(Toolkit, CompilersAreLimitedByProcessorTime) {
  const Sandbox sandbox(SandboxMode::kAuto, FindHelperDirectory(), {});
  const auto compile = [&](const std::string& commands) {
    FakeToolkit fake;
    fake.Nvcc("13.0, V13.0.88", "compute_90", commands);
    return CompileWithNvcc(FindToolkit(fake.home()), sandbox, "/", 90, {}, 0.5, false).diagnosis;
  };
  EXPECT_THAT(compile("sleep 2; echo 'it ended'; exit 1"), HasSubstr("it ended"));
  EXPECT_THAT(compile("while :; do :; done"), HasSubstr("limits of time and memory"));
}

TEST(Toolkit, OfAnotherMajorVersion) {
  FakeToolkit fake;
  for (const char* release : {"12.4, V12.4.131", "11.0, V11.0.194", "14.0, V14.0.1"}) {
    fake.Nvcc(release, "compute_75 compute_90", "exit 0");
    EXPECT_THAT(FindError(fake.home()),
                AllOf(HasSubstr(std::string("nvcc is of CUDA ") + release), HasSubstr("CUDA 13 is needed")));
  }
}

TEST(Toolkit, WithPartsMissing) {
  const FakeToolkit fake;
  fs::remove(fake.home() / "bin/ptxas");
  EXPECT_THAT(FindError(fake.home()), HasSubstr("no bin/ptxas"));
  fs::remove(fake.home() / "nvvm/bin/cicc");
  EXPECT_THAT(FindError(fake.home()), AllOf(HasSubstr("compiler is missing"), HasSubstr("nvvm/bin/cicc")));
}

TEST(Toolkit, ThatDoesNotKnowTheDevice) {
  const FakeToolkit fake;
  const CudaToolkit toolkit = FindToolkit(fake.home());
  EXPECT_EQ(ErrorOf([&] { toolkit.CheckArchitecture(90); }), "");
  EXPECT_THAT(ErrorOf([&] { toolkit.CheckArchitecture(130); }),
              AllOf(HasSubstr("compute capability 13.0"), HasSubstr("it knows 7.5, 9.0, 12.0"),
                    HasSubstr("install a newer toolkit"), HasSubstr("KGRPO_CUDA_HOME")));
  EXPECT_THAT(ErrorOf([&] { toolkit.CheckArchitecture(70); }),
              AllOf(HasSubstr("compute capability 7.0"), HasSubstr("older toolkit")));
}

class CompilerCreation : public testing::Test {
 protected:
  std::string Create(CompileRoute route, int compute_capability) {
    return ErrorOf([&] {
      const CudaToolkit toolkit = FindToolkit(fake_.home());
      const Sandbox sandbox(SandboxMode::kAuto, helpers_, toolkit.readable);
      Compiler(toolkit, sandbox, helpers_,
               {.route = route, .library_directory = helpers_, .compute_capability = compute_capability});
    });
  }

  FakeToolkit fake_;
  const std::string helpers_ = FindHelperDirectory();
};

TEST_F(CompilerCreation, NamesWhatTheRouteLacks) {
  EXPECT_EQ(Create(CompileRoute::kNvcc, 90), "");
  EXPECT_THAT(Create(CompileRoute::kNvcc, 130), HasSubstr("compute capability 13.0"));
  EXPECT_THAT(Create(CompileRoute::kFast, 90),
              AllOf(HasSubstr("has no NVRTC"), HasSubstr("install it"), HasSubstr("compile: nvcc")));
}

TEST_F(CompilerCreation, NamesAnNvrtcThatCannotBeLoaded) {
  fs::create_directories(fake_.home() / "lib64");
  std::ofstream(fake_.home() / "lib64/libnvrtc.so.13") << "no library";
  EXPECT_THAT(Create(CompileRoute::kFast, 90),
              AllOf(HasSubstr("libnvrtc.so.13 cannot be loaded"), HasSubstr("compile: nvcc")));
}

// The cause is named, and what the user named is not replaced by another in silence.
TEST(Toolkit, ThatTheUserNamedIsUsedOrRefused) {
  const FakeToolkit fake, broken;
  fs::remove(broken.home() / "bin/nvcc");
  const auto with = [](const char* name, const std::string& value, const std::function<std::string()>& body) {
    const char* before = std::getenv(name);
    const std::string kept = before != nullptr ? before : "";
    setenv(name, value.c_str(), 1);
    const std::string found = body();
    before != nullptr ? setenv(name, kept.c_str(), 1) : unsetenv(name);
    return found;
  };
  const auto find = [] { return ErrorOf([] { CudaToolkit::Find(); }); };
  const auto home = [] { return CudaToolkit::Find().home; };
  for (const char* name : {"KGRPO_CUDA_HOME", "CUDA_HOME", "CUDA_PATH"}) {
    const bool last = std::string(name) != "KGRPO_CUDA_HOME";
    const char* home_before = std::getenv("CUDA_HOME");
    const std::string kept = home_before != nullptr ? home_before : "";
    if (last) unsetenv("CUDA_HOME");
    EXPECT_THAT(with(name, broken.home(), find),
                AllOf(HasSubstr(name), HasSubstr(broken.home()), HasSubstr("no bin/nvcc")));
    EXPECT_THAT(with(name, "/no/such", find),
                AllOf(HasSubstr(name), HasSubstr("/no/such"), HasSubstr("no such folder")));
    EXPECT_EQ(with(name, fake.home(), home), fs::canonical(fake.home()));
    if (!kept.empty()) setenv("CUDA_HOME", kept.c_str(), 1);
  }
  EXPECT_THAT(with("TMPDIR", "/no/such", find), AllOf(HasSubstr("/no/such"), HasSubstr("TMPDIR")));
  EXPECT_THAT(with("TMPDIR", "relative", find), HasSubstr("not a whole path"));
}

TEST(HostCompiler, IsNamedWhereItIsMissing) {
  EXPECT_THAT(HostCompilerVersion(), testing::Not(""));
  const FakeToolkit folder;
  const std::string path = (folder.home() / "bin").string();
  EXPECT_THAT(ErrorOf([&] { HostCompilerVersion(path); }),
              AllOf(HasSubstr("gcc is not in " + path), HasSubstr("apt-get install g++")));
  WriteScript(folder.home() / "bin/gcc", "echo gcc 12.2.0\n");
  EXPECT_THAT(ErrorOf([&] { HostCompilerVersion(path); }), HasSubstr("g++ is not in " + path));
  WriteScript(folder.home() / "bin/g++", "exit 1\n");
  EXPECT_THAT(ErrorOf([&] { HostCompilerVersion(path); }), HasSubstr("--version does not run"));
  WriteScript(folder.home() / "bin/g++", "echo g++ 12.2.0\n");
  EXPECT_EQ(HostCompilerVersion(path), "g++ 12.2.0");
}

}  // namespace
}  // namespace kgrpo::evaluator
