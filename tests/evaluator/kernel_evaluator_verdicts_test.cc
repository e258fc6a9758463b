// Every verdict with a real kernel, compiled, run in the sandbox and interpreted; the known cheats; and after each of
// them an honest kernel, whose verdict must not be affected.
#include <atomic>
#include <chrono>
#include <thread>

#include "affine_candidates.h"
#include "kernel_evaluator_fixture.h"
#include "test.h"

namespace kgrpo::evaluator_sim {
namespace {

using evaluator::kHonest;
using evaluator::kKernel;
using evaluator::kLaunch;
using evaluator::WithBody;
using evaluator::WithKernel;

const char* const kHonestBody = "if (i < n) out[i] = 2.0f * x[i] + y[i];";

struct Case {
  const char* name;
  std::string source;
  const char* verdict;
  const char* says;
};

// Beside those of tests/judging/bugs.
TEST_F(KernelEvaluatorTest, KernelFaults) {
  const Case kCases[] = {
      {"null pointer", WithKernel("*(volatile int*)nullptr = i;"), "out_of_bounds", ""},
      {"trap", WithKernel("if (i == 3) __trap(); if (i < n) out[i] = 2.0f * x[i] + y[i];"), "trap", ""},
      {"endless", WithKernel("while (true) { if (*(volatile const float*)x > 1e30f) break; }"), "timeout",
       "warp instructions"},
      {"input overwritten", WithKernel("if (i < n) { out[i] = 2.0f * x[i] + y[i]; ((float*)x)[i] = 0; }"),
       "input_modified", "x"},
  };
  for (const Case& test : kCases) {
    const KernelEvaluation evaluation = Affine(test.source);
    EXPECT_EQ(evaluation.verdict, test.verdict) << test.name << ": " << evaluation.diagnosis;
    EXPECT_THAT(evaluation.diagnosis, HasSubstr(test.says)) << test.name;
    EXPECT_TRUE(evaluation.compiled) << test.name;
    EXPECT_FALSE(evaluation.correct) << test.name;
    EXPECT_EQ(evaluation.seconds, 0) << test.name;
  }
  ExpectReferenceIsCorrect();
}

// Variables count as device memory: nothing that they take is an error of the evaluator, whichever compiler is asked.
TEST_F(KernelEvaluatorTest, LargeVariables) {
  const auto with = [](const std::string& bytes) {
    return "__device__ char big[" + bytes + "ull];\n" +
           WithKernel(
               "for (size_t j = i; j < sizeof big; j += 4096ull * gridDim.x * blockDim.x) big[j] = 1;\n"
               "  if (i < n) out[i] = 2.0f * x[i] + y[i];");
  };
  for (const bool thorough : {false, true}) {
    const auto verdict = [&](const std::string& bytes) {
      const KernelEvaluation evaluation = Affine(with(bytes), thorough);
      if (!evaluation.correct) EXPECT_THAT(evaluation.diagnosis, HasSubstr("__device__ variables take " + bytes));
      return evaluation.verdict;
    };
    EXPECT_EQ(verdict("34359738368"), "out_of_memory");
    EXPECT_EQ(verdict("3221225472"), "out_of_memory");
    EXPECT_EQ(verdict("134217728"), "forbidden");
    EXPECT_EQ(verdict("4194304"), "correct");
  }
}

// Local arrays of all threads that run at once are bounded.
TEST_F(KernelEvaluatorTest, LargeLocalArrays) {
  const std::string flood =
      "#include <cooperative_groups.h>\n"
      "__global__ void k(const float* x, const float* y, float* out, int n) {\n"
      "  char own[400 * 1024];\n  for (int i = 0; i < sizeof own; i += 4096) own[i] = (char)(i + n);\n"
      "  cooperative_groups::this_grid().sync();\n  const int first = blockIdx.x * blockDim.x + threadIdx.x;\n"
      "  for (int i = first; i < n; i += gridDim.x * blockDim.x)\n"
      "    out[i] = 2.0f * x[i] + y[i] + (own[n * 4096 % sizeof own] == 99 ? 1e-30f : 0);\n}\n" +
      kLaunch +
      " { void* a[] = {&x, &y, &out, &n}; cudaLaunchCooperativeKernel((void*)k, dim3(132), dim3(256), a, 0, 0); }";
  const KernelEvaluation evaluation = Affine(flood);
  EXPECT_EQ(evaluation.verdict, "out_of_memory") << evaluation.diagnosis;
  EXPECT_THAT(evaluation.diagnosis, HasSubstr("local"));
}

// A constant that the kernel compares a size with chooses a size beyond it. What no size reaches is named: lines, or a
// comparison that selects a value without a branch.
TEST_F(KernelEvaluatorTest, LinesThatNoListedSizeRuns) {
  const auto branch = [](const char* condition) {
    return WithKernel("if (i >= n) return;\n  if (" + std::string(condition) +
                      ") {\n    __threadfence();\n    out[i] = 0;\n    return;\n  }\n  out[i] = 2.0f * x[i] + y[i];");
  };
  const auto select = [](const char* condition) {
    return WithKernel("if (i < n) out[i] = " + std::string(condition) + " ? 0 : 2.0f * x[i] + y[i];");
  };
  for (const std::string& source : {branch("n == 5000"), select("n == 5000"), branch("n > 4096 && n < 5000")}) {
    const KernelEvaluation evaluation = Affine(source);
    EXPECT_EQ(evaluation.verdict, "wrong") << source << evaluation.diagnosis;
    EXPECT_THAT(evaluation.diagnosis, HasSubstr("beyond a constant of the kernel,")) << source;
  }
  const auto line_of = [](const std::string& source, const char* text) {
    return std::to_string(std::count(source.begin(), source.begin() + static_cast<long>(source.find(text)), '\n') + 1);
  };
  const std::string far = branch("n > 2000000000"), selected = select("n > 2000000000");
  const KernelEvaluation never = Affine(far);
  EXPECT_EQ(never.verdict, "correct") << never.diagnosis;
  EXPECT_THAT(never.not_judged, testing::StartsWith("line " + line_of(far, "__threadfence")));
  EXPECT_THAT(never.not_judged, testing::EndsWith(", which no size reaches: n > 2000000000"));
  EXPECT_THAT(never.diagnosis, HasSubstr("Not judged: " + never.not_judged + "."));
  EXPECT_EQ(Affine(selected).not_judged,
            "line " + line_of(selected, "2000000000") + ", which no size reaches: n > 2000000000");

  const KernelEvaluation unlaunched = Affine("__global__ void Other(float* x) { *x = 1; }\n" + WithKernel(kHonestBody));
  EXPECT_EQ(unlaunched.not_judged, "line 1, which no size reaches");
  EXPECT_EQ(Affine(WithKernel(kHonestBody)).not_judged, "");
}

// Two launches, so that all blocks would have to run again: too long for a check of the one block whose branch no other
// size takes.
TEST_F(KernelEvaluatorTest, BranchesThatOnlyALongCallTakes) {
  const KernelEvaluation evaluation = Affine(
      "__global__ void Nothing() {}\n"
      "__global__ void k(const float* x, const float* y, float* out, int n) {\n"
      "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i >= n) return;\n  float s = 0, v = x[i];\n"
      "#pragma unroll 1\n"
      "  for (int turn = 0; turn < n / 4096; ++turn) s = 0.5f * s + v;\n"
      "  if (blockIdx.x == 2077) {\n    __threadfence();\n    s += y[i];\n  }\n"
      "  out[i] = 2.0f * v + y[i] + 0.0f * s;\n}\n" +
      kLaunch + " { Nothing<<<1, 1>>>(); " + kHonest + " }\n");
  EXPECT_EQ(evaluation.verdict, "correct") << evaluation.diagnosis;
  EXPECT_THAT(evaluation.not_judged, testing::StartsWith("races in the branches and loops at lines 8-"));
  EXPECT_THAT(evaluation.not_judged, testing::EndsWith(", which only the timing size takes"));
}

TEST_F(KernelEvaluatorTest, WrongResults) {
  const Case kCases[] = {
      {"zeros", WithKernel("if (i < n) out[i] = 0;"), "wrong", "constant"},
      {"identity", WithKernel("if (i < n) out[i] = x[i];"), "wrong", ""},
      {"nothing written", WithKernel("if (i < 0) out[i] = 0;"), "wrong", "never written"},
      {"one element missing",
       WithKernel("if (i < n - 1 || n == 1) out[i < n ? i : 0] = 2.0f * x[i < n ? i : 0] + y[i < n ? i : 0];"), "wrong",
       "never written"},
      {"half precision",
       "#include <cuda_fp16.h>\n" +
           WithKernel(
               "if (i < n) out[i] = __half2float(__hfma(__float2half(2.0f), __float2half(x[i]), __float2half(y[i])));"),
       "wrong", "tolerance"},
      {"special-cased shape", WithKernel("if (i < n && (n == 1000 || n == 256)) out[i] = 2.0f * x[i] + y[i];"), "wrong",
       "a size that is not shown"},
      {"first call computes, later calls skip",
       kKernel + "static int calls = 0;\n" + kLaunch + " { if (calls++ < 1) { " + kHonest +
           " } else { k<<<1, 1>>>(x, y, out, 1); } }",
       "wrong", ""},
      {"cached by size",
       kKernel + "static float* old_out[4096]; " + kLaunch +
           " { if (old_out[n % 4096]) { cudaMemcpy(out, old_out[n % 4096], n * 4, "
           "cudaMemcpyDeviceToDevice); k<<<1, 1>>>(x, y, out, 1); } else { " +
           kHonest + " old_out[n % 4096] = out; } }",
       "out_of_bounds", ""},
      {"skipped at the timing size", WithBody("k<<<n > 100000 ? 8 : (n + 255) / 256, 256>>>(x, y, out, n);"), "wrong",
       "never written"},
      {"no launch", WithBody(""), "no_launch", "launches no kernel"},
      {"decoy", WithBody("if (n < 0) { " + kHonest + " }"), "no_launch", ""},
  };
  for (const Case& test : kCases) {
    const KernelEvaluation evaluation = Affine(test.source);
    EXPECT_EQ(evaluation.verdict, test.verdict) << test.name << ": " << evaluation.diagnosis;
    EXPECT_THAT(evaluation.diagnosis, HasSubstr(test.says)) << test.name;
  }
  ExpectReferenceIsCorrect();
}

TEST_F(KernelEvaluatorTest, HostileHostCode) {
  const Case kCases[] = {
      {"null dereference", WithBody("*(volatile int*)nullptr = 1;"), "crash", "segmentation fault"},
      {"device pointer followed", WithBody("out[0] = x[0];"), "crash", "segmentation fault"},
      {"exit", WithBody("exit(0);"), "crash", "exit code 0"},
      {"abort", WithBody("abort();"), "crash", "abort"},
      {"endless loop", WithBody("volatile int i = 0; while (true) i = i + 1;"), "timeout", "2 seconds"},
      {"endless constructor",
       "struct S { S() { volatile int i = 0; while (true) i = i + 1; } } s;\n" + WithBody(kHonest), "timeout", ""},
      {"fork", "#include <unistd.h>\n" + WithBody("while (true) fork();"), "forbidden", ""},
      {"fork without a header", "extern \"C\" int fork();\n" + WithBody("while (true) fork();"), "forbidden", "clone"},
      {"exec",
       "extern \"C\" int execl(const char*, const char*, ...);\n" + WithBody("execl(\"/bin/sh\", \"sh\", (char*)0);"),
       "forbidden", "execve"},
      {"socket", "extern \"C\" int socket(int, int, int);\n" + WithBody("socket(2, 1, 0);"), "forbidden", "socket"},
      {"kill", "extern \"C\" int kill(int, int);\n" + WithBody("kill(-1, 9);"), "forbidden", "kill"},
      {"ptrace", "extern \"C\" long ptrace(int, ...);\n" + WithBody("ptrace(0, 0, 0, 0);"), "forbidden", "ptrace"},
      {"unlink", "extern \"C\" int unlink(const char*);\n" + WithBody("unlink(\"/tmp/x\");"), "forbidden", "unlink"},
      {"filter removed", "extern \"C\" int prctl(int, ...);\n" + WithBody("prctl(22, 0);"), "forbidden", "prctl"},
      {"forged bytes",
       "extern \"C\" long write(int, const void*, unsigned long);\n" +
           WithBody("char junk[4096]; for (int i = 0; i < 4096; ++i) junk[i] = (char)(i * 7); write(3, junk, 4096);"),
       "forbidden", "malformed data"},
      {"forged return",
       "extern \"C\" long write(int, const void*, unsigned long);\n" +
           WithBody(
               "struct { unsigned op, r; unsigned long a, b, c, p, u; } m = {3, 0, 0, 0, 0, 0, 0}; write(3, &m, sizeof "
               "m); exit(0);"),
       "no_launch", ""},
      {"terabyte of device memory", WithBody("void* p; cudaMalloc(&p, 1ull << 40); " + kHonest), "forbidden",
       "allocates device memory"},
      {"frees an output", WithBody(kHonest + "cudaFree(out);"), "crash", "frees"},
      {"copies beyond a buffer", WithBody("cudaMemcpy(out, x, 4ul * n + 4, cudaMemcpyDeviceToDevice);" + kHonest),
       "out_of_bounds", ""},
      {"endless copies",
       WithBody("while (n > 100000) cudaMemcpyAsync(out, x, 4ul * n, cudaMemcpyDeviceToDevice);" + kHonest), "timeout",
       "copies and memsets did not end within 2 seconds"},
      {"too many threads", WithBody("k<<<1, 2048>>>(x, y, out, n);"), "invalid_launch",
       "Kernel k cannot be launched with grid (1, 1, 1) and block (2048, 1, 1): a block has at most 1024 threads"},
      {"empty grid", WithBody("k<<<0, 256>>>(x, y, out, n);"), "invalid_launch", "0"},
      {"too much dynamic shared memory", WithBody("k<<<(n + 255) / 256, 256, 64 * 1024>>>(x, y, out, n);"),
       "invalid_launch", "cudaFuncSetAttribute"},
      {"Hopper's own instruction",
       "#include <cstdint>\n__global__ void w() { asm volatile(\"wgmma.fence.sync.aligned;\"); }\n" +
           WithBody("w<<<1, 128>>>(); " + kHonest),
       "unsupported", "wgmma.fence"},
      {"a tensor map",
       "#include <cuda.h>\n" +
           WithBody(
               "CUtensorMap map; cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 0, nullptr, nullptr, "
               "nullptr, nullptr, nullptr, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE, "
               "CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE); " +
               kHonest),
       "unsupported", "cuTensorMapEncodeTiled"},
      {"a managed variable",
       "\n__managed__ int one = 1;\n__global__ void w(int* p) { *p = one; }\n" + WithBody(kHonest), "unsupported",
       "kernel.cu:2: `__managed__` variables are not supported"},
      {"an API that is not offered",
       "extern \"C\" int cudaMallocManaged(void**, unsigned long, unsigned);\n" +
           WithBody("void* p; cudaMallocManaged(&p, 4, 1); " + kHonest),
       "unsupported", "cudaMallocManaged"},
  };
  for (const Case& test : kCases) {
    const KernelEvaluation evaluation = Affine(test.source);
    EXPECT_EQ(evaluation.verdict, test.verdict) << test.name << ": " << evaluation.diagnosis;
    EXPECT_THAT(evaluation.diagnosis, HasSubstr(test.says)) << test.name;
  }
  ExpectReferenceIsCorrect();
}

TEST_F(KernelEvaluatorTest, OutOfMemoryWhereAllocationIsAllowed) {
  const std::string kernel = row_sum_->problem.reference_source;
  const size_t brace = kernel.rfind("{ row_sum<<<");
  const KernelEvaluation evaluation = RowSum(kernel.substr(0, brace) + "{ void* p; cudaMalloc(&p, 1ull << 40); } ");
  EXPECT_EQ(evaluation.verdict, "out_of_memory") << evaluation.diagnosis;
  const KernelEvaluation many = RowSum(kernel.substr(0, brace) + "{ void* p; while (true) cudaMalloc(&p, 0); } ");
  EXPECT_EQ(many.verdict, "out_of_memory") << many.diagnosis;
  const KernelEvaluation small =
      RowSum(kernel.substr(0, brace) +
             "{ float* p; cudaMalloc(&p, 4 * rows); row_sum<<<(rows + 127) / 128, 128>>>(x, p, rows); "
             "cudaMemcpy(out, p, 4 * rows, cudaMemcpyDeviceToDevice); cudaFree(p); }");
  EXPECT_EQ(small.verdict, "correct") << small.diagnosis;
}

// A GPU reads texels of neighbouring faces there, in a way that is not documented.
TEST_F(KernelEvaluatorTest, ALinearFilterOfACubemapIsRefused) {
  const std::string source =
      "__global__ void k(cudaTextureObject_t t, float* out) { out[0] = texCubemap<float>(t, 1, 2, 3); }\n"
      "extern \"C\" void launch(const float* x, float* out, int rows) {\n"
      "  cudaArray_t array; cudaChannelFormatDesc channel = cudaCreateChannelDesc<float>();\n"
      "  cudaMalloc3DArray(&array, &channel, make_cudaExtent(8, 8, 6), cudaArrayCubemap);\n"
      "  cudaResourceDesc resource = {}; resource.resType = cudaResourceTypeArray; resource.res.array.array = array;\n"
      "  cudaTextureDesc texture = {}; texture.filterMode = cudaFilterModeLinear; texture.normalizedCoords = 1;\n"
      "  cudaTextureObject_t object; cudaCreateTextureObject(&object, &resource, &texture, nullptr);\n"
      "  k<<<1, 1>>>(object, out); cudaDestroyTextureObject(object); cudaFreeArray(array);\n}\n";
  const KernelEvaluation evaluation = RowSum(source);
  EXPECT_EQ(evaluation.verdict, "unsupported") << evaluation.diagnosis;
  EXPECT_NE(evaluation.diagnosis.find("a linear filter of a cubemap"), std::string::npos) << evaluation.diagnosis;
  std::string point = source;
  point.replace(point.find("cudaFilterModeLinear"), 20, "cudaFilterModePoint");
  EXPECT_EQ(RowSum(point).verdict, "uninitialised") << "nothing was copied to the array";
}

TEST_F(KernelEvaluatorTest, UnusualButCorrect) {
  const Case kCases[] = {
      {"side stream",
       WithBody("cudaStream_t s; cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking); k<<<(n + 255) / 256, 256, 0, "
                "s>>>(x, y, out, n);"),
       "correct", ""},
      {"constant memory",
       "__constant__ float factor[2];\n__global__ void k(const float* x, const float* y, float* out, int n) { int i = "
       "blockIdx.x * "
       "blockDim.x + threadIdx.x; if (i < n) out[i] = factor[1] * x[i] + y[i]; }\n" +
           kLaunch +
           " { float f[2] = {1, 2}; cudaMemcpyToSymbol(factor, f, "
           "sizeof f); " +
           kHonest + " }\n",
       "correct", ""},
      {"template",
       "template <int kFactor, typename T> __global__ void k(const T* x, const T* y, T* out, int n) { int i = "
       "blockIdx.x * blockDim.x + "
       "threadIdx.x; if (i < n) out[i] = kFactor * x[i] + y[i]; }\ntemplate <int B> void go(const float* x, const "
       "float* y, float* out, int n) { k<2, "
       "float><<<(n + B - 1) / B, B>>>(x, y, out, n); }\n" +
           kLaunch + " { if (n > 500) go<256>(x, y, out, n); else go<64>(x, y, out, n); }\n",
       "correct", ""},
      {"static kernel", "static " + kKernel.substr(1) + kLaunch + " { " + kHonest + " }\n", "correct", ""},
      {"unnamed namespace", "namespace { " + kKernel + " }\n" + kLaunch + " { " + kHonest + " }\n", "correct", ""},
      {"vectors",
       "__global__ void k(const float* x, const float* y, float* out, int n) { int i = 4 * (blockIdx.x * blockDim.x + "
       "threadIdx.x); if (i + 3 < n) { "
       "float4 a = *(const float4*)(x + i), b = *(const float4*)(y + i); *(float4*)(out + i) = make_float4(2 * a.x + "
       "b.x, 2 * a.y + b.y, 2 * a.z + b.z, "
       "2 * a.w + b.w); } else for (; i < n; ++i) out[i] = 2 * x[i] + y[i]; }\n" +
           kLaunch + " { k<<<(n + 1023) / 1024, 256>>>(x, y, out, n); }\n",
       "correct", ""},
      {"standard headers",
       "#include <algorithm>\n#include <cmath>\n#include <vector>\n" +
           WithBody("std::vector<int> v = {1, 256}; int b = std::max(v[0], v[1]); "
                    "k<<<(int)std::ceil(n / (double)b), b>>>(x, y, out, n);"),
       "correct", ""},
      {"error checks",
       "#include <cstdio>\n#define CHECK(e) do { cudaError_t err = (e); if (err != cudaSuccess) { printf(\"%s\\n\", "
       "cudaGetErrorString(err)); "
       "exit(1); } } while (0)\n" +
           WithBody(kHonest + " CHECK(cudaGetLastError()); CHECK(cudaDeviceSynchronize());"),
       "correct", ""},
      {"grid stride with device queries",
       "__global__ void k(const float* x, const float* y, float* out, int n) { for (int i = blockIdx.x * blockDim.x + "
       "threadIdx.x; i < n; i += gridDim.x * blockDim.x) out[i] = 2 * x[i] + y[i]; }\n" +
           kLaunch +
           " { int sms = 0; cudaDeviceGetAttribute(&sms, "
           "cudaDevAttrMultiProcessorCount, 0); k<<<sms * 8, 256>>>(x, y, out, n); }\n",
       "correct", ""},
  };
  for (const Case& test : kCases) {
    const KernelEvaluation evaluation = Affine(test.source);
    EXPECT_EQ(evaluation.verdict, test.verdict) << test.name << ": " << evaluation.diagnosis;
  }
}

// Within the tolerance every time, and yet not the same twice: state that outlives a call is found by the bytes.
TEST_F(KernelEvaluatorTest, NonDeterministic) {
  // Each call is off by another number of units in the last place than the one before.
  const std::string in_device_memory =
      "__device__ int calls = 0;\n__global__ void count() { ++calls; }\n"
      "__global__ void k(const float* x, const float* y, float* out, int n) { int i = blockIdx.x * blockDim.x + "
      "threadIdx.x; if (i < n) out[i] = (2.0f * x[i] + y[i]) * (1.0f + 1.1920929e-7f * (calls % 4)); }\n" +
      kLaunch + " { count<<<1, 1>>>(); " + kHonest + " }\n";
  // The host keeps count: from the second call on the first element is off by two units in the last place.
  const std::string in_host_memory =
      "__global__ void k(const float* x, const float* y, float* out, int n, float nudge) { int i = blockIdx.x * "
      "blockDim.x + threadIdx.x; if (i < n) out[i] = (2.0f * x[i] + y[i]) * (i == 0 ? nudge : 1.0f); }\n"
      "static int calls = 0;\n" +
      kLaunch + " { k<<<(n + 255) / 256, 256>>>(x, y, out, n, calls++ == 0 ? 1.0f : 1.0000002f); }\n";
  for (const std::string& source : {in_device_memory, in_host_memory}) {
    const KernelEvaluation evaluation = Affine(source);
    EXPECT_EQ(evaluation.verdict, "non_deterministic") << evaluation.diagnosis;
    EXPECT_EQ(evaluation.diagnosis, "A second call with the same inputs gives a different out.");
    EXPECT_TRUE(evaluation.compiled);
    EXPECT_FALSE(evaluation.correct);
    EXPECT_EQ(evaluation.seconds, 0);
  }
  ExpectReferenceIsCorrect();
}

// A kernel that must run whole gets no time if it exceeds the bound; an even kernel is counted however large it is.
TEST_F(KernelEvaluatorTest, NotTimed) {
  KernelEvaluator::Options options;
  options.timing_warp_instructions = 100'000;  // the even kernel executes some 400,000
  KernelEvaluator evaluator(options);
  const std::string by_data = WithKernel(
      "if (i < n) { float v = 2.0f * x[i] + y[i]; for (int k = 0; k < (int)(x[i] * 4); ++k) v = v * 1.0f; out[i] = v; "
      "if (y[i] > 1e30f) __threadfence(); }");
  const std::string two_launches =
      kKernel + kLaunch +
      " { k<<<(n + 511) / 512, 256>>>(x, y, out, n); k<<<(n + 255) / 256, 256>>>(x, y, out, n); }\n";
  for (const std::string& source : {by_data, two_launches}) {
    const KernelEvaluation evaluation = evaluator.Evaluate(*affine_, source, 1, false);
    EXPECT_EQ(evaluation.verdict, "not_timed") << evaluation.diagnosis;
    EXPECT_THAT(evaluation.diagnosis, HasSubstr("was not timed"));
    EXPECT_TRUE(evaluation.compiled);
    EXPECT_FALSE(evaluation.correct);
    EXPECT_EQ(evaluation.seconds, 0);
    EXPECT_EQ(Affine(source).verdict, "correct") << "within the usual bound";
  }
  const KernelEvaluation even = evaluator.Evaluate(*affine_, affine_->problem.reference_source, 1, false);
  EXPECT_EQ(even.verdict, "correct") << even.diagnosis;
}

// A stop is seen within a second, whatever the candidate makes the evaluator or its processes do.
TEST_F(KernelEvaluatorTest, AStopEndsWhateverRuns) {
  using Clock = std::chrono::steady_clock;
  std::atomic<bool> stop = false;
  KernelEvaluator::Options options;
  options.cancelled = [&stop] { return stop.load(); };
  KernelEvaluator evaluator(options);
  const std::pair<const char*, std::string> kCases[] = {
      {"kernel", WithKernel("while (true) { if (*(volatile const float*)x > 1e30f) break; }")},
      {"host code", WithBody("volatile int i = 0; while (true) i = i + 1;")},
      {"requests", WithBody("while (true) cudaMemcpyAsync(out, x, 4, cudaMemcpyDeviceToDevice);")},
      {"compiler",
       "template <int N> constexpr long Count() { long s = N; for (long i = 0; i < 8000000; ++i) s += i; return s; }\n"
       "template <int N> constexpr long kAll = Count<N>() + kAll<N - 1>;\ntemplate <> constexpr long kAll<0> = 0;\n"
       "static_assert(kAll<99> > 0);\n" +
           WithBody(kHonest)}};
  for (const auto& [name, source] : kCases) {
    stop = false;
    Clock::time_point stopped;
    std::jthread stopping([&] {
      std::this_thread::sleep_for(std::chrono::seconds(2));
      stopped = Clock::now();
      stop = true;
    });
    EXPECT_EQ(test::MessageOf([&] { evaluator.Evaluate(*affine_, source, 1, false); }, KGRPO_ERROR_CANCELLED),
              "stopped by the user")
        << name;
    stopping.join();
    EXPECT_LT(Clock::now() - stopped, std::chrono::seconds(3)) << name << ", on a busy machine";
  }
}

}  // namespace
}  // namespace kgrpo::evaluator_sim
