// The two compile routes make the same machine code: a third of the shipped problems' references and a fifth of the
// catalogue's honest kernels (all where KGRPO_TEST_ALL_KERNELS is set), if the fast route accepts them, compiled by
// both.
#include "machine_code.h"
#include "../fixtures/fatbin.h"
#include "../judging/catalogue.h"
#include "judge/compile/cuda_toolkit.h"
#include "judge/compile/entry_shim.h"
#include "judge/compile/fast_compile.h"
#include "judge/compile/nvcc_compile.h"
#include "test.h"

namespace kgrpo::evaluator {
namespace {

// Known differences in a kernel's code between the two routes, by the kernel's file. There are none.
const std::map<std::string, std::string> kKnownExceptions = {};

struct Kernel {
  std::string name, problem, source;
};

class MachineCode : public testing::Test {
 protected:
  void SetUp() override {
    try {
      toolkit_ = CudaToolkit::Find();
    } catch (const Error& error) {
      GTEST_SKIP() << "there is no nvcc: " << error.what();
    }
    if (toolkit_.nvrtc.empty()) GTEST_SKIP() << "the toolkit in " << toolkit_.home << " has no NVRTC";
    sandbox_.emplace(SandboxMode::kAuto, helpers_, toolkit_.readable);
    fast_.emplace(toolkit_, *sandbox_, helpers_, 90, 2, 120, false, std::function<bool()>());
  }

  CompileOutcome Nvcc(const Problem& problem, const std::string& source, bool as_nvrtc) {
    return CompileWithNvcc(toolkit_, *sandbox_, helpers_, 90,
                           {EntryPrologue(problem), source, EntryEpilogue(problem), {}, {}}, 300, as_nvrtc);
  }

  // Compiles by both routes and returns what differs; nothing where the fast one leaves it to nvcc.
  std::optional<std::string> Difference(const Kernel& kernel) {
    const Problem problem = LoadProblem(kernel.problem);
    std::string why;
    const std::optional<CompileOutcome> quick = fast_->Compile(problem, kernel.source, &why);
    if (!quick) return std::nullopt;
    if (!quick->Succeeded()) return "by the fast route: " + quick->diagnosis;
    const CompileOutcome slow = Nvcc(problem, kernel.source, true);
    if (!slow.Succeeded()) return "by nvcc: " + slow.diagnosis;
    const std::vector<std::string> cubins = test::CubinsOf(slow.kernel.object);
    if (cubins.size() != 1) return "nvcc made " + std::to_string(cubins.size()) + " cubins";
    if (quick->kernel.usage.size() != slow.kernel.usage.size()) return std::string("not the same kernels");
    for (const auto& [name, usage] : quick->kernel.usage) {
      const auto other = slow.kernel.usage.find(name);
      if (other == slow.kernel.usage.end()) return "nvcc knows no kernel " + name;
      const auto figures = [](const KernelUsage& of) {
        return std::vector<int>{of.registers, of.stack_bytes, of.spill_bytes, of.static_shared_bytes,
                                of.constant_bytes};
      };
      if (usage.registers == 0) return name + " has no registers";
      if (figures(usage) != figures(other->second))
        return name + " needs " + testing::PrintToString(figures(usage)) + ", by nvcc " +
               testing::PrintToString(figures(other->second));
    }
    for (const auto* ptx : {&quick->kernel.ptx, &slow.kernel.ptx}) {
      if (ptx->find(".loc\t") == std::string::npos) return std::string("PTX without line information");
    }
    return MachineCodeDifference(quick->kernel.cubin, cubins[0]);
  }

  // How many of the kernels took the fast route; each of them must be the same.
  int ExpectTheSame(const std::vector<Kernel>& kernels) {
    std::atomic<size_t> next = 0;
    std::atomic<int> compared = 0;
    std::mutex mutex;
    const auto work = [&] {
      for (size_t i = next++; i < kernels.size(); i = next++) {
        const std::optional<std::string> difference = Difference(kernels[i]);
        const std::lock_guard<std::mutex> lock(mutex);
        if (!difference) continue;
        ++compared;
        if (kKnownExceptions.count(kernels[i].name) > 0) {
          EXPECT_NE(*difference, "") << kernels[i].name << " is an exception no longer";
        } else {
          EXPECT_EQ(*difference, "") << kernels[i].name;
        }
      }
    };
    std::thread other(work);
    work();
    other.join();
    return compared;
  }

  const std::string helpers_ = FindHelperDirectory();
  CudaToolkit toolkit_;
  std::optional<Sandbox> sandbox_;
  std::optional<FastCompiler> fast_;
};

// nvcc takes seconds for each kernel.
size_t Every(size_t usual) { return std::getenv("KGRPO_TEST_ALL_KERNELS") == nullptr ? usual : 1; }

TEST_F(MachineCode, IsTheSameForShippedProblems) {
  std::set<fs::path> folders;
  for (const auto& entry : fs::directory_iterator(std::string(KGRPO_SOURCE_DIR) + "/problems"))
    if (fs::exists(entry.path() / "problem.yaml")) folders.insert(entry.path());
  EXPECT_GT(folders.size(), 30u);
  std::vector<Kernel> kernels;
  size_t number = 0;
  for (const fs::path& folder : folders) {
    if (number++ % Every(3) != 0) continue;
    kernels.push_back({folder.filename(), folder.string(), LoadProblem(folder.string()).reference_source});
  }
  EXPECT_EQ(ExpectTheSame(kernels), static_cast<int>(kernels.size())) << "not all took the fast route";
}

TEST_F(MachineCode, IsTheSameForHonestKernels) {
  std::vector<Kernel> kernels;
  size_t honest = 0;
  for (const judging::Entry& entry : judging::Catalogue()) {
    if (!entry.is_cheat && honest++ % Every(5) == 0) kernels.push_back({entry.name, entry.problem, entry.source});
  }
  EXPECT_GT(ExpectTheSame(kernels), 70 / static_cast<int>(Every(5)));
}

// Why nvcc is told how wide pointers to shared memory are. Where this fails, nvcc need not be told any more.
TEST_F(MachineCode, DiffersWhereNvccHasItsOwnPointersToSharedMemory) {
  for (const judging::Entry& entry : judging::Catalogue()) {
    if (entry.name != "honest/running_maximum_double_buffer") continue;
    const Problem problem = LoadProblem(entry.problem);
    const CompileOutcome as_nvrtc = Nvcc(problem, entry.source, true), own = Nvcc(problem, entry.source, false);
    ASSERT_TRUE(as_nvrtc.Succeeded() && own.Succeeded()) << as_nvrtc.diagnosis << own.diagnosis;
    EXPECT_NE(
        MachineCodeDifference(test::CubinsOf(as_nvrtc.kernel.object).at(0), test::CubinsOf(own.kernel.object).at(0)),
        "");
    return;
  }
  FAIL() << "honest/running_maximum_double_buffer is missing";
}

}  // namespace
}  // namespace kgrpo::evaluator
