// The two compile routes: the kernels that they accept, their messages, the splitter, and the policy.
#include "judge/compile/compiler.h"
#include "judge/compile/cuda_toolkit.h"
#include "judge/compile/elf_tables.h"
#include "judge/compile/source_policy.h"
#include "judge/compile/source_split.h"
#include "test.h"

namespace kgrpo::evaluator {
namespace {

TEST(CompileRoutes, EveryShippedProblemTakesTheFastOne) {
  for (const auto& entry : std::filesystem::directory_iterator(std::string(KGRPO_SOURCE_DIR) + "/problems")) {
    if (!std::filesystem::exists(entry.path() / "problem.yaml")) continue;
    const SplitSource split = Split(LoadProblem(entry.path().string()).reference_source);
    EXPECT_TRUE(split.understood) << entry.path() << ": " << split.why_not;
  }
}

TEST(SourcePolicy, ThePageListsTheHeaders) {
  std::ifstream file(KGRPO_SOURCE_DIR "/docs/evaluator_sim.md");
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  std::istringstream headers(IncludePolicy({}));
  std::string header;
  std::getline(headers, header);  // cuda/std/*
  while (std::getline(headers, header)) EXPECT_THAT(page, testing::HasSubstr("`" + header + "`"));
}

TEST(SourcePolicy, AllowsCoreHeadersAlone) {
  for (const char* header : {"cuda/barrier", "cuda/pipeline", "cuda/atomic", "cuda/ptx", "cuda/std/array",
                             "cuda/std/type_traits", "exception", "span", "cstdint"})
    EXPECT_EQ(CheckIncludes("#include <" + std::string(header) + ">\n", {}).why, "") << header;
  for (const char* header :
       {"cuda/std/__cccl/dialect.h", "cuda/std/", "cuda/std/../../etc/passwd", "cuda/std/detail/x",
        "cuda/memory_resource", "cuda/experimental/launch", "cuda/__ptx/ptx_helper_functions.h", "cub/cub.cuh"}) {
    EXPECT_THAT(CheckIncludes("\n#include <" + std::string(header) + ">\n", {}).why, testing::StartsWith("line 2: "))
        << header;
  }
  EXPECT_EQ(CheckIncludes("#include <fstream>\n", {}).why,
            "line 1: #include of \"fstream\" is not allowed; allowed are CUDA's core headers, and headers of the C and "
            "C++ standard libraries that need no files or threads: docs/evaluator_sim.md lists them");
  EXPECT_EQ(CheckIncludes("#include <cub/cub.cuh>\n", {"cub"}).why, "");
  EXPECT_NE(IncludePolicy({}), IncludePolicy({"cub"}));
  EXPECT_EQ(IncludePolicy({"thrust", "cub"}), IncludePolicy({"cub", "thrust"}));
}

// A compiler of the configured fast route, which takes nvcc where it is asked for the reference.
class BothRoutes : public testing::Test {
 protected:
  void SetUp() override {
    if (toolkit_.nvrtc.empty()) GTEST_SKIP() << "the toolkit in " << toolkit_.home << " has no NVRTC";
    compiler_ = std::make_unique<Compiler>(toolkit_, sandbox_, helpers_,
                                           Compiler::Options{.seconds = 300, .library_directory = helpers_});
  }
  CompileOutcome Compile(const std::string& source, bool reference) {
    return compiler_->Compile(problem_, source, reference);
  }
  const Compiler& compiler() const { return *compiler_; }

  std::unique_ptr<Compiler> compiler_;

 private:
  const std::string helpers_ = FindHelperDirectory();
  const CudaToolkit toolkit_ = CudaToolkit::Find();
  const Sandbox sandbox_{SandboxMode::kAuto, helpers_, toolkit_.readable};
  const Problem problem_ = LoadProblem(std::string(KGRPO_SOURCE_DIR) + "/tests/evaluator/problems/affine");
};

constexpr char kAffine[] =
    "__global__ void K(const float* x, const float* y, float* out, int n) {\n"
    "  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  if (i < n) out[i] = fmaf(2.0f, x[i], y[i]);\n}\n"
    "extern \"C\" void launch(const float* x, const float* y, float* out, int n) {\n"
    "  K<<<(n + 127) / 128, 128>>>(x, y, out, n);\n}\n";

TEST_F(BothRoutes, AreTold) {
  EXPECT_THAT(compiler().Describe(),
              testing::MatchesRegex("thorough: nvcc [^;]*; quick: NVRTC and g\\+\\+, and nvcc .*"));
}

// By the configured fast route, whether it compiles them itself or leaves them to nvcc, and by nvcc.
TEST_F(BothRoutes, TakeTheAllowedHeaders) {
  const std::string body = kAffine;
  const std::pair<std::string, std::string> kCases[] = {
      {"fast", "#include <exception>\n#include <span>\n#include <stdexcept>\n#include <vector>\n" + body},
      {"fast",
       "#include <cstdint>\n__device__ bool Aligned(const void* p) {\n"
       "  return reinterpret_cast<std::uintptr_t>(p) % 16 == 0;\n}\n" +
           body},
      {"nvcc",
       "#include <cuda/atomic>\n#include <cuda/barrier>\n#include <cuda/pipeline>\n#include <cuda/ptx>\n"
       "#include <cuda/std/array>\n#include <cuda/std/type_traits>\n"
       "__global__ void L(float* x, unsigned* count) {\n"
       "  __shared__ cuda::barrier<cuda::thread_scope_block> all;\n"
       "  if (threadIdx.x == 0) init(&all, blockDim.x);\n  __syncthreads();\n  all.arrive_and_wait();\n"
       "  const cuda::std::array<float, 2> pair = {1.0f, 2.0f};\n"
       "  const unsigned at = cuda::atomic_ref<unsigned, cuda::thread_scope_device>(*count).fetch_add(1);\n"
       "  x[at] = cuda::ptx::get_sreg_laneid() + pair[at % 2];\n}\n" +
           body}};
  for (const auto& [route, source] : kCases) {
    const CompileOutcome configured = Compile(source, false);
    EXPECT_TRUE(configured.Succeeded()) << source << configured.diagnosis;
    EXPECT_EQ(configured.kernel.route, route) << source;
    if (route == "nvcc") continue;
    const CompileOutcome reference = Compile(source, true);
    EXPECT_TRUE(reference.Succeeded()) << source << reference.diagnosis;
    EXPECT_EQ(reference.kernel.route, "nvcc");
  }
}

// A source that one route takes and the other refuses would get another verdict by --quick. Each differs from kAffine.
TEST_F(BothRoutes, AgreeOnWhatCompiles) {
  const auto with = [](const std::string& before, const std::string& in_kernel, const std::string& in_launch) {
    std::string source = before + kAffine;
    source.insert(source.find("  if (i < n)"), in_kernel);
    source.insert(source.find("  K<<<"), in_launch);
    return source;
  };
  const std::pair<bool, std::string> kCases[] = {
      {true, with("", "", "  auto f = [=] __device__(float a) { return a; };\n  (void)f;\n")},
      {true, with("template <class F> __global__ void G(F f, float* x) { x[0] = f(1.0f); }\n", "",
                  "  G<<<1, 1>>>([=] __device__(float a) { return a; }, out);\n")},
      {true, with("#if CUDART_VERSION < 9000\n#error old\n#endif\n", "", "")},
      {true, with("#include <cmath>\n#ifndef M_PI\n#error none\n#endif\n", "", "")},
      {true,
       with("#ifdef NOPE\n#include \"nope.h\"\n#elif 1\n#include <cmath>\n#else\n#include <cub/cub.cuh>\n#endif\n", "",
            "")},
      {true, with("#if defined(__HIP_PLATFORM_AMD__)\n#include <hip/hip_runtime.h>\n#endif\n", "", "")},
      {true, with("\xEF\xBB\xBF", "", "")},
      {true, with("#define F(a) \\\r\n  (a)\r\n", "  i == F(i);\r\n", "")},
      {false, with("", "  if (x[0] == FLT_MAX) return;\n", "")},
      {false, with("", "  if (uint32_t(i) == 7u) return;\n", "")},
      {false, with("", "", "  assert(n > 0);\n")},
      {false, with("", "", "  const int a[] = {1.5};\n  (void)a;\n")},
      {false, with("constexpr int kTable[2] = {1, 2};\n", "  if (kTable[i % 2] == 3) return;\n", "")},
      {false, with("__device__ float f(float a) { return a; }\nfloat f(float a) { return a; }\n", "", "")}};
  for (const auto& [compiles, source] : kCases) {
    for (const bool reference : {false, true}) {
      const CompileOutcome outcome = Compile(source, reference);
      EXPECT_EQ(outcome.Succeeded(), compiles) << source << outcome.kernel.route << outcome.diagnosis;
    }
  }
}

// Which branch of a conditional is read only the compiler knows: it decides whether an #include in it is refused.
TEST_F(BothRoutes, RefuseHeadersThatTheyReach) {
  const std::pair<const char*, const char*> kCases[] = {
      {"#ifndef NOPE\n#include <cublas_v2.h>\n#endif\n", "line 2: the library cublas"},
      {"#ifdef __CUDA_ARCH__\n#include <fstream>\n#endif\n", "line 2: #include of \"fstream\""},
      {"#ifndef __CUDA_ARCH__\n#include <fstream>\n#endif\n", "line 2: #include of \"fstream\""},
      {"#define H <fstream>\n#if 1\n#include H\n#endif\n", "line 3: #include must name a header plainly"}};
  for (const auto& [before, why] : kCases) {
    for (const bool reference : {false, true}) {
      const CompileOutcome outcome = Compile(before + std::string(kAffine), reference);
      EXPECT_EQ(outcome.verdict, "forbidden") << before;
      EXPECT_THAT(outcome.diagnosis, testing::StartsWith(why)) << before;
    }
  }
}

// What only a main function needs may ask for any header; what the kernel needs may not.
TEST_F(BothRoutes, JudgeWhatTheLaunchFunctionNeeds) {
  const std::string main =
      "\nint main() {\n  timeval t;\n  gettimeofday(&t, nullptr);\n  std::ofstream f(\"x\");\n  launch(0, 0, 0, "
      "1);\n}\n";
  const std::string headers = "#include <sys/time.h>\n#include <fstream>\n#include \"helper_cuda.h\"\n";
  for (const bool reference : {false, true}) {
    const CompileOutcome whole = Compile(headers + kAffine + main, reference);
    EXPECT_TRUE(whole.Succeeded()) << whole.diagnosis;
    EXPECT_EQ(whole.kernel.source, headers + kAffine + main);
    EXPECT_THAT(whole.kernel.ptx, testing::ContainsRegex("\\.loc\t1 6"));  // the kernel's third line
    std::string needs = headers + kAffine;
    needs.insert(needs.find("  K<<<"), "  checkCudaErrors(cudaSuccess);\n");
    const CompileOutcome refused = Compile(needs + main, reference);
    EXPECT_EQ(refused.verdict, "forbidden");
    EXPECT_THAT(refused.diagnosis, testing::StartsWith("line 1: #include of \"sys/time.h\""));
    EXPECT_EQ(Compile(headers + kAffine, reference).verdict, "forbidden") << "nothing else is left out";
  }
}

TEST_F(BothRoutes, NameDynamicParallelism) {
  const std::string source = std::string(kAffine) + "__global__ void P(float* x) { K<<<1, 1>>>(x, x, x, 1); }\n";
  for (const bool reference : {false, true}) {
    const CompileOutcome outcome = Compile(source, reference);
    EXPECT_EQ(outcome.verdict, "unsupported");
    EXPECT_THAT(outcome.diagnosis, HasSubstr("dynamic parallelism"));
  }
}

// Registers, spills, shared, stack and constant bytes of one kernel among two, by both routes.
TEST_F(BothRoutes, SayWhatAKernelNeeds) {
  const std::string source =
      "__constant__ float table[100];\n"
      "__global__ void __launch_bounds__(1024, 2) Crowded(float* x, int n) {\n"
      "  __shared__ float rows[256];\n  float own[64], held[80];\n"
      "  for (int i = 0; i < 80; ++i) held[i] = x[i * n + threadIdx.x];\n"
      "  for (int i = 0; i < 64; ++i) own[(i * n) % 64] = x[i] + table[i];\n"
      "  rows[threadIdx.x % 256] = own[n % 64];\n  __syncthreads();\n"
      "  for (int i = 0; i < 80; ++i) x[i * n + threadIdx.x] = held[i] * held[79 - i] + rows[i];\n}\n" +
      std::string(kAffine);
  std::map<std::string, double> of_route[2];
  for (const bool reference : {false, true}) {
    const CompileOutcome outcome = Compile(source, reference);
    ASSERT_TRUE(outcome.Succeeded()) << outcome.diagnosis;
    EXPECT_EQ(outcome.kernel.route, reference ? "nvcc" : "fast");
    const auto metrics = UsageMetrics(outcome.kernel.usage);
    std::map<std::string, double>& by_name = of_route[reference ? 1 : 0];
    by_name.insert(metrics.begin(), metrics.end());
    EXPECT_EQ(by_name["registers of Crowded"], 32);
    EXPECT_GT(by_name["spill_bytes of Crowded"], 0);
    EXPECT_GE(by_name["stack_bytes of Crowded"], 64 * 4);
    EXPECT_EQ(by_name["static_shared_bytes of Crowded"], 1024);
    EXPECT_GE(by_name["constant_bytes of Crowded"], 400);
    EXPECT_EQ(by_name["spill_bytes of K"], 0);
    EXPECT_EQ(by_name["stack_bytes of K"], 0);
    EXPECT_GT(by_name["registers of K"], 0);
    EXPECT_LT(by_name["registers of K"], 32);
    for (const char* figure : {"registers", "spill_bytes", "static_shared_bytes", "stack_bytes", "constant_bytes"})
      EXPECT_EQ(by_name[figure], by_name[std::string(figure) + " of Crowded"]) << figure;
    EXPECT_THAT(outcome.kernel.ptx, HasSubstr(".loc"));
  }
  EXPECT_EQ(of_route[0], of_route[1]);
}

// A candidate can make a compiler print anything; the machine code's headers and exit codes decide.
TEST_F(BothRoutes, BelieveNothingThatACandidatePrints) {
  const std::string crowded =
      "__global__ void __launch_bounds__(256) Crowded(float* x, int n) {\n  float held[100];\n#pragma unroll\n"
      "  for (int i = 0; i < 100; ++i) held[i] = x[i * n + threadIdx.x];\n  __syncthreads();\n#pragma unroll\n"
      "  for (int i = 0; i < 100; ++i) x[i * n + threadIdx.x] = held[99 - i];\n}\n" +
      std::string(kAffine);
  const std::string printed =
      "#pragma message(\"ptxas info    : Compiling entry function '_Z7CrowdedPfi' for 'sm_90'\")\n"
      "#pragma message(\"ptxas info    : Used 16 registers, used 1 barriers, 64 bytes smem\")\n"
      "#pragma message(\"ptxas info    : Compiling entry function 'nobody' for 'sm_90'\")\n"
      "#pragma message(\"sandbox_launcher: no landlock, ptxas error, signal terminated program\")\n";
  for (const bool reference : {false, true}) {
    const CompileOutcome twin = Compile(crowded, reference), forged = Compile(crowded + printed, reference);
    ASSERT_TRUE(twin.Succeeded() && forged.Succeeded()) << twin.diagnosis << forged.diagnosis;
    EXPECT_GT(twin.kernel.usage.at("_Z7CrowdedPfi").registers, 64);
    EXPECT_EQ(UsageMetrics(forged.kernel.usage), UsageMetrics(twin.kernel.usage));
    const CompileOutcome refused =
        Compile(crowded + printed + "#error sandbox_launcher: cannot change user\n", reference);
    EXPECT_EQ(refused.verdict, "not_compiled");
    EXPECT_THAT(refused.diagnosis, HasSubstr("cannot change user"));
  }
}

// Code in a section of nvcc's is neither read nor a fault of the evaluator.
TEST_F(BothRoutes, ReadNoSectionsThatHostAssemblyWrites) {
  const std::string head = "asm(\".section .nv_fatbin,\\\"a\\\"\\n.long 0x12345678\\n.fill 64,1,7\\n.text\\n\");\n";
  for (const bool reference : {false, true}) {
    const CompileOutcome outcome = Compile(head + kAffine, reference), plain = Compile(kAffine, reference);
    ASSERT_TRUE(outcome.Succeeded()) << outcome.diagnosis;
    EXPECT_EQ(UsageMetrics(outcome.kernel.usage), UsageMetrics(plain.kernel.usage));
    // A second table of dynamic symbols, of garbage: whatever the linker makes of it, there is a verdict.
    const std::string table = "asm(\".section .more,\\\"a\\\",@11\\n.fill 640,1,255\\n.text\\n\");\n";
    const CompileOutcome symbols = Compile(table + kAffine, reference);
    EXPECT_TRUE(symbols.Succeeded() || symbols.verdict == "forbidden" || symbols.verdict == "not_compiled")
        << symbols.verdict << symbols.diagnosis;
  }
}

// A problem with launcher.cu takes sources that define the user's function; any problem takes those that define launch.
TEST_F(BothRoutes, TakeTheUsersFunctionOrLaunch) {
  Problem problem = LoadProblem(std::string(KGRPO_SOURCE_DIR) + "/tests/evaluator/problems/affine");
  const std::string source = kAffine;
  const std::string kernel = source.substr(0, source.find("extern"));
  const std::string own = kernel +
                          "cudaError_t affine(float* x, float* y, float* out, int n, cudaStream_t stream) {\n"
                          "  K<<<(n + 127) / 128, 128, 0, stream>>>(x, y, out, n);\n  return cudaGetLastError();\n}\n";
  problem.own_entry = "affine";
  problem.launcher =
      "extern \"C\" void launch(const float* x, const float* y, float* out, int n) {\n"
      "  affine(const_cast<float*>(x), const_cast<float*>(y), out, n, 0);\n}\n";
  for (const bool reference : {false, true}) {
    const auto compile = [&](const std::string& text) { return compiler_->Compile(problem, text, reference); };
    const CompileOutcome outcome = compile(own);
    EXPECT_TRUE(outcome.Succeeded()) << outcome.diagnosis;
    EXPECT_EQ(outcome.kernel.source, own);
    EXPECT_EQ(outcome.kernel.route, reference ? "nvcc" : "fast");
    EXPECT_TRUE(compile(source).Succeeded());
    EXPECT_THAT(compile(kernel).diagnosis, HasSubstr("float* out, int n), nor affine."));
  }
  problem.own_entry = problem.launcher = "";
  problem.entry = "affine";
  EXPECT_TRUE(compiler_->Compile(problem, source, false).Succeeded());
}

// <cub/cub.cuh> includes NVTX, whose dlsym is not the kernel's.
TEST_F(BothRoutes, TakeCubWhereItIsAllowed) {
  Problem problem = LoadProblem(std::string(KGRPO_SOURCE_DIR) + "/tests/evaluator/problems/affine");
  problem.allowed_libraries = {"cub"};
  const CompileOutcome outcome = compiler_->Compile(problem, "#include <cub/cub.cuh>\n" + std::string(kAffine), false);
  EXPECT_TRUE(outcome.Succeeded()) << outcome.diagnosis;
}

// As with nvcc's --expt-relaxed-constexpr; a member takes nvcc.
TEST_F(BothRoutes, TakeConstexprFunctionsInDeviceCode) {
  const std::string affine = kAffine;
  const auto with = [&](const std::string& before, const std::string& factor) {
    std::string source = affine;
    return before + source.replace(source.find("2.0f"), 4, factor);
  };
  const std::pair<std::string, std::string> kCases[] = {
      {"fast", with("template <typename T>\nstatic constexpr T Twice(T v) { return 2 * v; }\n", "Twice(1.0f)")},
      {"nvcc", with("struct Two { static constexpr float Of(float v) { return 2 * v; } };\n", "Two::Of(1.0f)")}};
  for (const auto& [route, source] : kCases) {
    for (const bool reference : {false, true}) {
      const CompileOutcome outcome = Compile(source, reference);
      EXPECT_TRUE(outcome.Succeeded()) << outcome.diagnosis;
      EXPECT_EQ(outcome.kernel.route, reference ? "nvcc" : route);
    }
  }
}

// Hopper's own instructions, and the driver's function for tensor maps, of which an evaluator decides.
TEST_F(BothRoutes, TakeHoppersInstructionsAndTensorMaps) {
  const std::string source =
      "#include <cuda.h>\n#include <cudaTypedefs.h>\n"
      "__global__ void W(const __grid_constant__ CUtensorMap map) {\n"
      "  asm volatile(\"wgmma.fence.sync.aligned;\");\n}\n"
      "void Map(CUtensorMap* map, void* x) {\n  cuuint64_t size = 64;\n  cuuint32_t box = 64, one = 1;\n"
      "  cuTensorMapEncodeTiled(map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 1, x, &size, &size, &box, &one,\n"
      "      CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,\n"
      "      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);\n}\n"
      "void* Find() {\n  void* f = nullptr;\n  cudaDriverEntryPointQueryResult r;\n"
      "  cudaGetDriverEntryPointByVersion(\"cuTensorMapEncodeTiled\", &f, 12000, cudaEnableDefault, &r);\n"
      "  return f;\n}\n" +
      std::string(kAffine);
  for (const bool reference : {false, true}) {
    const CompileOutcome outcome = Compile(source, reference);
    ASSERT_TRUE(outcome.Succeeded()) << outcome.diagnosis;
    EXPECT_THAT(outcome.kernel.ptx, HasSubstr(".target sm_90a"));
    EXPECT_THAT(outcome.kernel.ptx, HasSubstr("wgmma.fence"));
    EXPECT_THAT(outcome.kernel.undefined, testing::Contains("cuTensorMapEncodeTiled"));
    EXPECT_EQ(UsageMetrics(outcome.kernel.usage).empty(), false);
  }
  EXPECT_THAT(Compile(kAffine, true).kernel.ptx, Not(HasSubstr("sm_90a")));
  const std::string other =
      "extern \"C\" int cuInit(unsigned);\nint Start() { return cuInit(0); }\n" + std::string(kAffine);
  EXPECT_EQ(Compile(other, true).verdict, "forbidden");
}

// Evaluators decide by these symbols: evaluator_cuda gives candidates with streams of their own other workers.
TEST_F(BothRoutes, SayWhichSymbolsTheObjectLeavesToOthers) {
  const std::string source = std::string(kAffine) +
                             "cudaStream_t Another() {\n  cudaStream_t stream = nullptr;\n"
                             "  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);\n  return stream;\n}\n";
  for (const bool reference : {false, true}) {
    const CompileOutcome plain = Compile(kAffine, reference), streams = Compile(source, reference);
    ASSERT_TRUE(streams.Succeeded()) << streams.diagnosis;
    EXPECT_THAT(streams.kernel.undefined, testing::Contains(testing::StartsWith("cudaStreamCreateWithFlags")));
    EXPECT_THAT(plain.kernel.undefined, testing::Contains(HasSubstr("LaunchKernel")));
    EXPECT_THAT(plain.kernel.undefined, testing::Not(testing::Contains(testing::StartsWith("cudaStreamCreate"))));
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

TEST(SourceSplit, ReadsWhatPeopleWrite) {
  const SplitSource split = Split(
      "namespace cg = cooperative_groups;\n"
      "struct V { float a; };\n__device__ V operator+(V p, V q) { return V{p.a + q.a}; }\n"
      "template <typename T> __global__ void k(T* x) { *x = 1 + \\\n 1; }\n"
      "template __global__ void k<float>(float*);\n"
      "extern \"C\" void launch(float* x) { k<float><<<1, 1>>>(x); }\n");
  ASSERT_TRUE(split.understood) << split.why_not;
  EXPECT_THAT(split.device, HasSubstr("V operator+"));
  EXPECT_THAT(split.host, Not(HasSubstr("V operator+")));
  EXPECT_THAT(split.host, HasSubstr("template __global__ void k<float>(float*);"));
  EXPECT_EQ(split.kernel_templates, std::vector<std::string>{"k"});
}

TEST(SourceSplit, FollowsTheTextsOwnConditionals) {
  const SplitSource split = Split(
      "#define WIDE 1\n#if WIDE\n__global__ void k(float4* x) {\n#else\n__global__ void k(float* x) {\n#endif\n"
      "#ifdef DEBUG_BUILD\n{{{ don't\n#endif\n}\n");
  ASSERT_TRUE(split.understood) << split.why_not;
  EXPECT_EQ(std::count(split.device.begin(), split.device.end(), '\n'), 10);
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
      {"#ifdef __CUDA_ARCH__\n#endif\n", "line 1: a conditional that depends on the compiler or its headers"},
      {"#define SM __CUDA_ARCH__\n", "line 1: a directive that depends on the compiler"},
      {"#ifndef M_PI\n#define M_PI 3\n#endif\n", "line 1: a conditional that depends on the compiler or its headers"},
      {"\nint f(uint32_t x) { return x; }\n", "line 2: uint32_t without its header"},
      {"__device__ int f(int x) { return x; }\nint f(int x) { return x; }\n", "line 1: both sides have a function f"},
      {"\nnamespace {\n__global__ void k() {}\n}\n", "line 2: an unnamed namespace"},
      {"int f() { return 1; \n", "line 1: a bracket that does not close"},
      {"/* never ends", "line 1: a literal, comment or spliced token that does not end"},
      {"int lo\\\nng;", "line 1: a literal, comment or spliced token that does not end"},
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

TEST(ElfTables, RefusesMalformedObjects) {
  for (const std::string& object :
       {std::string(), std::string("\177ELF"), std::string(4096, '\xff'), std::string(64, '\0')}) {
    EXPECT_THROW(SectionsOf(object, ".text"), Error);
    EXPECT_THROW(UsageOf(object, ""), Error);
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

// Refused, not a stack overflow.
TEST(SourceSplit, RefusesManyLevels) {
  for (const std::string begin : {"extern \"C\" {", "namespace a {"}) {
    std::string source;
    for (int i = 0; i < 300000; ++i) source += begin;
    EXPECT_THAT(Split(source + std::string(300000, '}')).why_not, HasSubstr("brackets nested deeper than 256 levels"));
  }
}

// A type of two types, of two each, and so on: the text that its name stands for would have half a gigabyte.
TEST(KernelNames, AreShortOrNotDemangled) {
  std::string name = "_Z1fI1P", types;
  for (int i = 0; i < 26; ++i) name += "IS0_";
  for (const char c : std::string("123456789ABCDEFGHIJKLMNOPQ")) types += std::string("ES") + c + "_";
  name += "Iii" + types + "EEvPT_";
  EXPECT_EQ(KernelName(name), name);
  EXPECT_EQ(KernelName("_Z9transposeIfLi32EEvPKT_PS0_ii"), "transpose<float, 32>");
  EXPECT_EQ(KernelName("_Z1kPKfi"), "k");
  EXPECT_EQ(KernelName("f"), "f") << "of C, and no float";
}

TEST(UsageMetrics, TellsKernelsApart) {
  std::map<std::string, KernelUsage> usage = {{"_Z1kPf", {10, 0, 0, 0, 0}}};
  EXPECT_EQ(UsageMetrics(usage).size(), 5u);  // one kernel needs no names
  usage["_Z1kPi"].registers = 20;             // an overload
  usage["k\xc3\xa4\n"].registers = 30;
  usage[std::string(100, 'l')].registers = 5;
  const auto metrics = UsageMetrics(usage);
  const std::map<std::string, double> by_name(metrics.begin(), metrics.end());
  EXPECT_EQ(by_name.size(), metrics.size()) << "a name twice";
  EXPECT_EQ(by_name.at("registers"), 30);
  EXPECT_EQ(by_name.at("registers of k"), 10);
  EXPECT_EQ(by_name.at("registers of k #2"), 20);
  EXPECT_EQ(by_name.at("registers of k???"), 30);
  EXPECT_EQ(by_name.at("registers of " + std::string(60, 'l')), 5);
  for (int i = 0; i < 50; ++i) usage["many" + std::to_string(i)] = {};
  EXPECT_EQ(UsageMetrics(usage).size(), 5u + 8 * 5);
}

}  // namespace
}  // namespace kgrpo::evaluator
