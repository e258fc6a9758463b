// A CUDA toolkit made of shell scripts in a temporary folder, for tests of broken toolkits.
#ifndef KGRPO_TESTS_EVALUATOR_FAKE_TOOLKIT_H
#define KGRPO_TESTS_EVALUATOR_FAKE_TOOLKIT_H

#include <unistd.h>
#include "judge/compile/cuda_toolkit.h"
#include "test.h"

namespace kgrpo::evaluator {

// Writes an executable file.
inline void WriteScript(const std::filesystem::path& path, const std::string& text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path) << "#!/bin/sh\n" << text;
  std::filesystem::permissions(path, std::filesystem::perms(0755));
}

// Deletes its folder when it is destroyed.
class FakeToolkit {
 public:
  FakeToolkit() {
    static std::atomic<int> counter = 0;
    home_ = testing::TempDir() + "/kgrpo_toolkit_" + std::to_string(getpid()) + "_" + std::to_string(counter++);
    std::filesystem::create_directories(home_ / "include");
    std::filesystem::permissions(home_, std::filesystem::perms(0755));
    std::ofstream(home_ / "include/cuda_fp16.h") << "";
    WriteScript(home_ / "nvvm/bin/cicc", "exit 0\n");
    WriteScript(home_ / "bin/ptxas", "exit 0\n");
    Nvcc("13.0, V13.0.88", "compute_75 compute_90 compute_120", "exit 0");
  }
  ~FakeToolkit() { std::filesystem::remove_all(home_); }
  FakeToolkit(const FakeToolkit&) = delete;
  FakeToolkit& operator=(const FakeToolkit&) = delete;

  // `compile`: the script's commands for a compilation.
  void Nvcc(const std::string& release, const std::string& architectures, const std::string& compile) {
    WriteScript(home_ / "bin/nvcc", "case \"$1\" in\n--version) echo 'Cuda compilation tools, release " + release +
                                        "';;\n--list-gpu-arch) for a in " + architectures +
                                        "; do echo $a; done;;\n--dryrun) echo '#$ CICC_PATH=" + home_.string() +
                                        "/nvvm/bin';;\n*) " + compile + ";;\nesac\n");
  }

  const std::filesystem::path& home() const { return home_; }

 private:
  std::filesystem::path home_;
};

// The toolkit that KGRPO_CUDA_HOME names, set to this folder meanwhile.
inline CudaToolkit FindToolkit(const std::filesystem::path& home) {
  struct Restore {
    ~Restore() { before ? setenv("KGRPO_CUDA_HOME", before->c_str(), 1) : unsetenv("KGRPO_CUDA_HOME"); }
    std::optional<std::string> before;
  } restore;
  if (const char* before = std::getenv("KGRPO_CUDA_HOME")) restore.before = before;
  setenv("KGRPO_CUDA_HOME", home.c_str(), 1);
  return CudaToolkit::Find();
}

}  // namespace kgrpo::evaluator

#endif
