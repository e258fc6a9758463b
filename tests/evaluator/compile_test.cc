// The two compile routes: the same PTX for the shipped problems, what the splitter understands, and the policy.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "evaluator_shared/cuda_toolkit.h"
#include "evaluator_shared/fast_compile.h"
#include "evaluator_shared/fatbin.h"
#include "evaluator_shared/nvcc_compile.h"
#include "evaluator_shared/source_policy.h"
#include "evaluator_shared/source_split.h"
#include "kgrpo/sdk/error.h"

namespace kgrpo::evaluator {
namespace {

using testing::HasSubstr;
using testing::Not;

// What a PTX text does, without comments, source positions and register numbers: its declarations in order, and how
// often each instruction occurs.
struct Essence {
  std::vector<std::string> declarations;
  std::map<std::string, int> instructions;
  int count = 0;
};

Essence EssenceOf(const std::string& ptx) {
  std::istringstream lines(ptx);
  std::string line;
  Essence essence;
  while (std::getline(lines, line)) {
    line = line.substr(0, line.find("//"));
    if (line.find(".section") != std::string::npos) break;
    std::istringstream words(line);
    std::string word, text;
    while (words >> word) text += (text.empty() ? "" : " ") + word;
    if (text.rfind(".param", 0) == 0 || text.rfind(".visible", 0) == 0 || text.rfind(".shared", 0) == 0 ||
        text.rfind(".maxntid", 0) == 0 || text.rfind(".target", 0) == 0) {
      essence.declarations.push_back(text);
    } else if (!text.empty() && text.back() == ';' && text[0] != '.' && text[0] != '{') {
      if (text[0] == '@') text = text.substr(text.find(' ') + 1);
      ++essence.instructions[text.substr(0, text.find(' '))];
      ++essence.count;
    }
  }
  return essence;
}

// NVRTC and nvcc are the same compiler behind two front ends: declarations agree to the letter. In a few loops their
// optimisers keep another induction variable, which moves the count of address arithmetic a little.
TEST(CompileRoutes, GiveTheSamePtxForShippedProblems) {
  const std::string helpers = FindHelperDirectory();
  const CudaToolkit toolkit = CudaToolkit::Find("");
  if (toolkit.nvrtc.empty()) GTEST_SKIP() << "this toolkit has no NVRTC";
  const Sandbox sandbox(SandboxMode::kAuto, helpers, toolkit.readable);
  FastCompiler fast(toolkit, sandbox, helpers, 90, 2, 60);
  std::set<std::string> families;
  std::set<std::filesystem::path> folders;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(KGRPO_SOURCE_DIR) + "/problems"))
    folders.insert(entry.path());
  int compared = 0, identical = 0;
  for (const std::filesystem::path& folder : folders) {
    if (!std::filesystem::exists(folder / "problem.yaml")) continue;
    const Problem problem = LoadProblem(folder.string());
    if (!families.insert(problem.family).second) continue;  // one a family: nvcc takes its time
    std::string why;
    const auto quick = fast.Compile(problem, problem.reference_source, &why);
    ASSERT_TRUE(quick.has_value()) << problem.name << ": " << why;
    ASSERT_TRUE(quick->Succeeded()) << problem.name << ": " << quick->diagnosis;
    const CompileOutcome slow = CompileWithNvcc(toolkit, sandbox, helpers, 90, problem, problem.reference_source, 120);
    ASSERT_TRUE(slow.Succeeded()) << problem.name << ": " << slow.diagnosis;
    const Essence a = EssenceOf(quick->kernel.ptx), b = EssenceOf(slow.kernel.ptx);
    EXPECT_EQ(a.declarations, b.declarations) << problem.name;
    int moved = 0;
    std::map<std::string, int> both = a.instructions;
    for (const auto& [name, times] : b.instructions) both[name] -= times;
    for (const auto& [name, difference] : both) moved += std::abs(difference);
    EXPECT_GT(a.count, 10) << problem.name;
    EXPECT_LE(moved, 0.08 * b.count) << problem.name;
    ++compared;
    identical += moved == 0 ? 1 : 0;
    ASSERT_EQ(quick->kernel.usage.size(), slow.kernel.usage.size());
    for (const auto& [name, usage] : quick->kernel.usage) {
      EXPECT_NEAR(usage.registers, slow.kernel.usage.at(name).registers, 4) << name;
      EXPECT_GT(usage.registers, 0) << name;
      EXPECT_EQ(usage.static_shared_bytes, slow.kernel.usage.at(name).static_shared_bytes) << name;
    }
  }
  EXPECT_GE(compared, 3);
  EXPECT_GE(2 * identical, compared) << "of " << compared;
  std::printf("%d of %d have the same instructions\n", identical, compared);
}

TEST(CompileRoutes, EveryShippedProblemTakesTheFastOne) {
  for (const auto& entry : std::filesystem::directory_iterator(std::string(KGRPO_SOURCE_DIR) + "/problems")) {
    if (!std::filesystem::exists(entry.path() / "problem.yaml")) continue;
    const SplitSource split = Split(LoadProblem(entry.path().string()).reference_source);
    EXPECT_TRUE(split.understood) << entry.path() << ": " << split.why_not;
  }
}

TEST(SourceSplit, KeepsLinesAndDividesCode) {
  const SplitSource split = Split(
      "#include <cuda_fp16.h>\n"
      "constexpr int kTile = 16;  // both\n"
      "__device__ float twice(float x) { return 2 * x; }\n"
      "template <int N>\n"
      "__global__ void __launch_bounds__(256) k(float* x, int n) {\n"
      "  if (threadIdx.x < N) x[0] = twice(x[0]);\n"
      "}\n"
      "static int blocks(int n) { return (n + 15) / 16; }\n"
      "extern \"C\" void launch(float* x, int n) {\n"
      "  k<kTile><<<blocks(n), dim3(16, 16), 0>>>(x, n);\n"
      "}\n");
  ASSERT_TRUE(split.understood) << split.why_not;
  EXPECT_EQ(split.kernel_templates, std::vector<std::string>{"k"});
  EXPECT_THAT(split.device, HasSubstr("return 2 * x"));
  EXPECT_THAT(split.device, HasSubstr("kTile = 16"));
  EXPECT_THAT(split.device, Not(HasSubstr("launch(float")));
  EXPECT_THAT(split.device, Not(HasSubstr("blocks")));
  EXPECT_THAT(split.host, Not(HasSubstr("2 * x")));
  EXPECT_THAT(split.host, Not(HasSubstr("threadIdx")));
  EXPECT_THAT(
      split.host,
      HasSubstr("::kgrpo_cuda::Launch(k<kTile>, ::kgrpo_cuda::Configuration(blocks(n), dim3(16, 16), 0))(x, n);"));
  EXPECT_EQ(std::count(split.device.begin(), split.device.end(), '\n'), 11);
  EXPECT_EQ(std::count(split.host.begin(), split.host.end(), '\n'), 11);
}

TEST(SourceSplit, LeavesLiteralsAndCommentsAlone) {
  const SplitSource split = Split(
      "extern \"C\" void launch(float* x, int n) { const char* s = \"k<<<1, 1>>>(\\\"x\\\")\"; /* k<<<1>>>() */ char c "
      "= '\"'; (void)s; "
      "const char* r = R\"(} \" <<<)\"; (void)r; (void)c; }\n");
  ASSERT_TRUE(split.understood) << split.why_not;
  EXPECT_THAT(split.host, Not(HasSubstr("kgrpo_cuda")));
}

TEST(SourceSplit, SaysWhatItLeavesToNvcc) {
  const std::pair<const char*, const char*> kCases[] = {
      {"#define K __global__\nK void k() {}\n", "line 1: a macro that holds __global__"},
      {"#ifdef __CUDA_ARCH__\n#endif\n", "line 1: a directive that depends on the compiler"},
      {"\nnamespace {\n__global__ void k() {}\n}\n", "line 2: an unnamed namespace"},
      {"int f() { return 1; \n", "line 1: a bracket that does not close"},
      {"/* never ends", "line 1: a literal or comment that does not end, or a continued line"},
      {"int a = 1 \\\n + 2;", "line 1: a literal or comment that does not end, or a continued line"},
      {"#define GO(k) k<<<1, 1>>>()\n", "line 1: a macro that launches"},
      {"asm(\".incbin \\\"/etc/passwd\\\"\");\n", "line 1: assembly at namespace scope"},
  };
  for (const auto& [source, why] : kCases) {
    const SplitSource split = Split(source);
    EXPECT_FALSE(split.understood) << source;
    EXPECT_EQ(split.why_not, why) << source;
  }
}

TEST(SourceSplit, SurvivesAnything) {
  std::ifstream file(std::string(KGRPO_SOURCE_DIR) + "/tests/evaluator/problems/append_offset/reference.cu");
  std::stringstream text;
  text << file.rdbuf();
  const std::string good = text.str();
  uint64_t state = 9;
  for (int i = 0; i < 3000; ++i) {
    std::string source = good;
    for (int edits = 0; edits < 4; ++edits) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      source[(state >> 33) % source.size()] = "<>(){}[];\"'\\/*#\n:=ax"[(state >> 58) % 20];
    }
    const SplitSource split = Split(source.substr(0, (state >> 20) % (source.size() + 1)));
    if (split.understood) {
      EXPECT_EQ(std::count(split.device.begin(), split.device.end(), '\n'),
                std::count(split.host.begin(), split.host.end(), '\n'));
    }
    CheckIncludes(source, {});
  }
}

TEST(Fatbin, RefusesMalformedObjects) {
  for (const std::string& object :
       {std::string(), std::string("\177ELF"), std::string(4096, '\xff'), std::string(64, '\0')}) {
    EXPECT_THROW(ExtractPtx(object), Error);
    EXPECT_THROW(DefinedFunctions(object), Error);
  }
}

TEST(CompilerOutput, IsTrimmedAndQuoted) {
  std::string output = "ptxas info    : x\nkernel.cu(3): warning #177-D: unused\n  int a;\n      ^\n\n";
  for (int i = 0; i < 30; ++i) output += "/scratch/kernel.cu(" + std::to_string(i) + "): error: bad \x1b[31mthing\n";
  const std::string quoted = QuoteCompilerOutput(output, "/scratch");
  EXPECT_THAT(quoted, testing::StartsWith("\n| kernel.cu(0): error: bad [31mthing\n| kernel.cu(1)"));
  EXPECT_EQ(std::count(quoted.begin(), quoted.end(), '|'), 5);
  EXPECT_LT(QuoteCompilerOutput("error: " + std::string(100000, 'x'), "").size(), 300u);
}

TEST(PtxasUsage, ReadsWhatPtxasPrints) {
  const auto usage = ParsePtxasUsage(
      "ptxas info    : 0 bytes gmem\n"
      "ptxas info    : Compiling entry function '_Z1kPf' for 'sm_90'\n"
      "ptxas info    : Function properties for _Z1kPf\n"
      "    8 bytes stack frame, 4 bytes spill stores, 12 bytes spill loads\n"
      "ptxas info    : Used 40 registers, used 1 barriers, 8 bytes cumulative stack size, 2048 bytes smem\n");
  ASSERT_EQ(usage.size(), 1u);
  const KernelUsage& k = usage.at("_Z1kPf");
  EXPECT_EQ(k.registers, 40);
  EXPECT_EQ(k.stack_bytes, 8);
  EXPECT_EQ(k.spill_store_bytes, 4);
  EXPECT_EQ(k.spill_load_bytes, 12);
  EXPECT_EQ(k.static_shared_bytes, 2048);
}

}  // namespace
}  // namespace kgrpo::evaluator
