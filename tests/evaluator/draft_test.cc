// Problems drafted from kernels: compared with the shipped problems, which were written by hand; error messages word
// for word.
#include "draft/draft.h"

#include <unistd.h>

#include "cuda_source/own_headers.h"
#include "draft/oracle_text.h"
#include "draft/problem_text.h"
#include "draft/sums.h"
#include "judge/compile/source_policy.h"
#include "judge/inputs/inputs.h"
#include "judge/verdict/oracle.h"
#include "test.h"

namespace kgrpo::evaluator {
namespace {

const Ask kNobody = [](const std::string&, const std::string&) { return std::string(); };

class DraftTest : public testing::Test {
 protected:
  DraftTest() : folder_(fs::path(testing::TempDir()) / ("draft_test_" + std::to_string(getpid()))) {
    fs::create_directories(folder_);
  }
  ~DraftTest() override { fs::remove_all(folder_); }

  // The drafted problem, as it is read from the files that are written.
  Problem Written(const CudaSource& source, const Draft& draft) {
    const OracleText oracle = MakeOracle(source, draft);
    const fs::path folder = folder_ / draft.name;
    fs::create_directories(folder);
    std::ofstream(folder / "reference.cu") << ReferenceText(source, draft);
    if (const std::string launcher = LauncherText(source, draft); !launcher.empty())
      std::ofstream(folder / "launcher.cu") << launcher;
    std::ofstream(folder / "oracle.cc") << oracle.text;
    std::ofstream(folder / "problem.yaml") << ProblemText(source, draft, oracle);
    return LoadProblem(folder.string());
  }

  fs::path folder_;
};

std::vector<Problem> ShippedProblems() {
  std::vector<Problem> problems;
  for (const auto& entry : fs::directory_iterator(KGRPO_SOURCE_DIR "/problems"))
    problems.push_back(LoadProblem(entry.path().string()));
  return problems;
}

// The options that a user would have to give for a shipped problem: its sizes and scalars.
DraftOptions OptionsOf(const Problem& problem) {
  DraftOptions options;
  for (const Parameter& parameter : problem.parameters) {
    if (parameter.IsTensor()) continue;
    if (parameter.value.Symbols().empty()) {
      options["value"][parameter.name] = parameter.value.text();
    } else {
      options["size"][parameter.name] = std::to_string(parameter.value.EvaluateInteger(problem.timing));
    }
  }
  return options;
}

// Answers questions about shapes, and about sizes that no parameter tells, as the problem's author would.
Ask AuthorOf(const Problem& problem, int* asked) {
  return [&problem, asked](const std::string&, const std::string& option) {
    ++*asked;
    for (const Parameter& parameter : problem.parameters) {
      if (option != "--shape " + parameter.name + "=D,D") continue;
      std::string shape;
      for (const Expression& dimension : parameter.shape) shape += (shape.empty() ? "" : ",") + dimension.text();
      return shape;
    }
    for (const auto& [symbol, value] : problem.timing) {
      if (option == "--size " + symbol + "=N") return std::to_string(value);
    }
    return std::string();
  };
}

// Beyond the limit of a grid a kernel's loop repeats: sizes that leave it out would not show what goes wrong there.
TEST_F(DraftTest, SizesGoBeyondWhatLimitsTheGrid) {
  const CudaSource source("scale.cu", R"(
constexpr int kMostBlocks = 512;
__global__ void Scale(const float* x, float* out, int n) {
  for (int i = blockIdx.x * 128 + threadIdx.x; i < n; i += gridDim.x * 128) out[i] = 2 * x[i];
}
void scale(const float* x, float* out, int n) { Scale<<<min((n + 127) / 128, kMostBlocks), 128>>>(x, out, n); }
__global__ void Rows(const float* x, float* out, int rows, int cols) {
  for (int r = blockIdx.x; r < rows; r += gridDim.x) {
    float sum = 0;
    for (int c = 0; c < cols; ++c) sum += x[r * cols + c];
    out[r] = sum;
  }
}
void row_sums(const float* x, float* out, int rows, int cols) {
  int blocks = rows < 264 ? rows : 264;
  Rows<<<blocks, 1>>>(x, out, rows, cols);
}
)");
  const Draft one = MakeDraft(source, "scale", {{"function", {{"", "scale"}}}, {"size", {{"n", "1048576"}}}}, kNobody);
  EXPECT_THAT(Written(source, one).hidden,
              testing::IsSupersetOf({Bindings{{"n", 513}}, Bindings{{"n", 512 * 128 + 1}}}));
  const Draft two = MakeDraft(source, "row_sums",
                              {{"function", {{"", "row_sums"}}},
                               {"size", {{"rows", "65536"}, {"cols", "64"}}},
                               {"shape", {{"x", "rows,cols"}, {"out", "rows"}}}},
                              kNobody);
  EXPECT_THAT(Written(source, two).hidden, testing::Contains(Bindings{{"cols", 37}, {"rows", 265}}));
}

TEST_F(DraftTest, RolesTypesAndShapesAreThoseOfTheShippedProblems) {
  int tensors = 0, asked = 0;
  for (const Problem& problem : ShippedProblems()) {
    const CudaSource source("reference.cu", problem.reference_source);
    const Draft draft = MakeDraft(source, problem.name, OptionsOf(problem), AuthorOf(problem, &asked));
    ASSERT_EQ(draft.parameters.size(), problem.parameters.size()) << problem.name;
    const Problem drafted = Written(source, draft);
    EXPECT_EQ(drafted.Signature(), problem.Signature());
    for (size_t p = 0; p < problem.parameters.size(); ++p) {
      const Parameter &wanted = problem.parameters[p], &got = drafted.parameters[p];
      EXPECT_EQ(got.name, wanted.name) << problem.name;
      EXPECT_EQ(got.role, wanted.role) << problem.name << ": " << wanted.name;
      EXPECT_EQ(got.dtype, wanted.dtype) << problem.name << ": " << wanted.name;
      if (!wanted.IsTensor()) continue;
      ++tensors;
      // By elements: two dimensions may be drafted as one.
      EXPECT_EQ(got.Elements(drafted.timing), wanted.Elements(drafted.timing)) << problem.name << ": " << wanted.name;
    }
  }
  EXPECT_GT(tensors, 80);
  EXPECT_LT(asked, tensors * 2 / 3);  // the others were understood
}

// A translated oracle must give what the shipped problem's own gives, up to rounding in float64.
TEST_F(DraftTest, TranslatedOraclesAgreeWithThoseThatPeopleWrote) {
  int translated = 0;
  for (const Problem& problem : ShippedProblems()) {
    const CudaSource source("reference.cu", problem.reference_source);
    int asked = 0;
    const Draft draft = MakeDraft(source, problem.name, OptionsOf(problem), AuthorOf(problem, &asked));
    const OracleText oracle = MakeOracle(source, draft);
    if (!oracle.translated) {
      EXPECT_THAT(oracle.text, HasSubstr("// ORACLE TO BE WRITTEN"));
      EXPECT_THAT(oracle.why_not, HasSubstr("line "));
      continue;
    }
    ++translated;
    const Problem drafted = Written(source, draft);
    const auto theirs = Oracle::Load(problem, folder_.string()), ours = Oracle::Load(drafted, folder_.string());
    const Bindings& size = problem.visible[0];
    const std::vector<Argument> arguments = DrawArguments(problem, size, 7, 0);
    const std::vector<Expected> wanted = theirs->Run(problem, size, arguments),
                                got = ours->Run(drafted, size, arguments);
    for (size_t p = 0; p < wanted.size(); ++p) {
      ASSERT_EQ(got[p].reals.size(), wanted[p].reals.size());
      for (size_t i = 0; i < wanted[p].reals.size(); ++i)
        ASSERT_NEAR(got[p].reals[i], wanted[p].reals[i], 1e-6 * (1 + std::abs(wanted[p].reals[i]))) << problem.name;
    }
  }
  EXPECT_GE(translated, 1);
}

constexpr const char* kSaxpy =
    "// y = a x + y\n"
    "__global__ void saxpy(int n, float a, const float* x, float* y) {\n"
    "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  if (i < n) y[i] = a * x[i] + y[i];\n"
    "}\n";

TEST_F(DraftTest, AKernelAloneGetsALauncher) {
  const CudaSource source("saxpy.cu", kSaxpy);
  const Draft draft = MakeDraft(source, "saxpy", {{"size", {{"n", "4096"}}}, {"value", {{"a", "2"}}}}, kNobody);
  EXPECT_EQ(ReferenceText(source, draft), kSaxpy);
  EXPECT_EQ(LauncherText(source, draft),
            "// Calls saxpy, which is a kernel. Appended to sources that define it.\n"
            "extern \"C\" void launch(int n, float a, const float* x, float* y) {\n"
            "  saxpy<<<(n + 255) / 256, 256>>>(n, a, x, y);\n}\n");
  const Problem problem = Written(source, draft);
  EXPECT_EQ(problem.entry, "launch");
  EXPECT_EQ(problem.own_entry, "saxpy");
  EXPECT_THAT(problem.TaskText(), HasSubstr("float* y), or saxpy as the reference declares it. It"));
  // A source that defines the user's function gets the launcher; one that defines launch needs none.
  EXPECT_THAT(problem.WithLauncher(kSaxpy), HasSubstr("#line 1 \"launcher.cu\"\n// Calls saxpy"));
  const std::string launches = std::string(kSaxpy) + "extern \"C\" void launch(int n, float a) {}\n";
  EXPECT_EQ(problem.WithLauncher(launches), launches);
  EXPECT_EQ(problem.WithLauncher("void saxpy(int n);"), "void saxpy(int n);");
  EXPECT_EQ(problem.parameters[3].role, Role::kInout);
  EXPECT_EQ(problem.needed_bytes.Evaluate(problem.timing), 12 * 4096);
  EXPECT_EQ(problem.needed_flops.Evaluate(problem.timing), 2 * 4096);
  EXPECT_THAT(MakeOracle(source, draft).text, HasSubstr("    y[i] = a * x[i] + y[i];\n"));
}

// The launcher is somebody's: another name, a stream, pointers that lack const, size_t, and a main beside it.
TEST_F(DraftTest, ALauncherOfOtherTypesIsWrapped) {
  const CudaSource source(
      "scale.cu",
      "__global__ void scale(float* in, float* out, size_t count) {\n"
      "  for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += blockDim.x * gridDim.x)\n"
      "    out[i] = __expf(in[i]) * rsqrtf(2.0f);\n"
      "}\n"
      "void run(float* from, float* to, size_t count, cudaStream_t stream) {\n"
      "  scale<<<(count + 127) / 128, 128, 0, stream>>>(from, to, count);\n"
      "}\n"
      "int main() { return 0; }\n");
  const Draft draft = MakeDraft(source, "scale", {{"size", {{"count", "5000"}}}}, kNobody);
  EXPECT_THAT(LauncherText(source, draft),
              HasSubstr("extern \"C\" void launch(const float* from, float* to, long long count) {\n"
                        "  run(const_cast<float*>(from), to, static_cast<size_t>(count), 0);\n}\n"));
  EXPECT_EQ(EntryText(source, draft), "run: candidates define it, or what launcher.cu defines (run takes a stream)");
  EXPECT_EQ(ReferenceText(source, draft).find("main"), std::string::npos);
  EXPECT_THAT(MakeOracle(source, draft).text,
              HasSubstr("static double rsqrtf(double x) { return 1.0 / std::sqrt(x); }\n\n"
                        "extern \"C\" void oracle(const double* from, double* to, int64_t count) {\n"
                        "  for (int64_t i = 0; i < count; ++i) {\n"
                        "    to[i] = std::exp(from[i]) * rsqrtf(2.0);\n"));
  Written(source, draft);
}

TEST_F(DraftTest, TemplatesAndMacrosAreTranslated) {
  const CudaSource source("k.cu",
                          "#define ALPHA 0.5f\n"
                          "template <int B> __global__ void k(const float* x, float* y, int n) {\n"
                          "  int i = blockIdx.x * B + threadIdx.x;\n  if (i < n) y[i] = ALPHA * x[i];\n}\n"
                          "void go(const float* x, float* y, int n) { k<256><<<(n + 255) / 256, 256>>>(x, y, n); }\n");
  const Draft draft = MakeDraft(source, "k", {{"size", {{"n", "4096"}}}}, kNobody);
  EXPECT_THAT(MakeOracle(source, draft).text, HasSubstr("    y[i] = 0.5 * x[i];\n"));
}

// A launcher that copies its input to an array and binds a texture to it.
TEST_F(DraftTest, ALauncherThatBindsATextureIsRead) {
  const CudaSource source(
      "upscale.cu",
      "__global__ void upscale(cudaTextureObject_t image, float* out, int width, int height) {\n"
      "  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;\n"
      "  if (x < width && y < height) out[y * width + x] = tex2D<float>(image, (x + 0.5f) / 2, (y + 0.5f) / 2);\n}\n"
      "void launch(const float* in, float* out, int width, int height) {\n"
      "  cudaArray_t array;\n  cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();\n"
      "  cudaMallocArray(&array, &format, width / 2, height / 2);\n"
      "  cudaMemcpy2DToArray(array, 0, 0, in, width * 2, width * 2, height / 2, cudaMemcpyDeviceToDevice);\n"
      "  cudaResourceDesc resource = {};\n  resource.resType = cudaResourceTypeArray;\n"
      "  resource.res.array.array = array;\n  cudaTextureDesc texture = {};\n  cudaTextureObject_t image = 0;\n"
      "  cudaCreateTextureObject(&image, &resource, &texture, nullptr);\n"
      "  dim3 block(16, 16), grid((width + 15) / 16, (height + 15) / 16);\n"
      "  upscale<<<grid, block>>>(image, out, width, height);\n"
      "  cudaDestroyTextureObject(image);\n  cudaFreeArray(array);\n}\n");
  const DraftOptions options = {{"size", {{"width", "256"}, {"height", "192"}}},
                                {"shape", {{"in", "height/2,width/2"}, {"out", "height,width"}}}};
  const Problem problem = Written(source, MakeDraft(source, "upscale", options, kNobody));
  ASSERT_EQ(problem.parameters.size(), 4u);
  EXPECT_EQ(problem.parameters[0].role, Role::kInput);
  EXPECT_EQ(problem.parameters[1].role, Role::kOutput);
  EXPECT_TRUE(problem.allow_device_malloc);
}
TEST_F(DraftTest, WhatIsNoMapIsASkeleton) {
  const auto why = [&](const std::string& body) {
    const CudaSource source("k.cu", "__global__ void k(const float* x, float* y, int n) {\n" + body + "}\n");
    const DraftOptions options = {{"size", {{"n", "64"}}}, {"shape", {{"x", "n"}, {"y", "n"}}}};
    const Draft draft = MakeDraft(source, "k", options, kNobody);
    const OracleText oracle = MakeOracle(source, draft);
    EXPECT_FALSE(oracle.translated);
    EXPECT_THAT(oracle.text, HasSubstr("// ORACLE TO BE WRITTEN"));
    return oracle.why_not;
  };
  const std::string index = "int i = blockIdx.x * blockDim.x + threadIdx.x;\n";
  EXPECT_EQ(why(index + "if (i < n) y[i] = x[i + 1];\n"), "line 3: x at another index than the element's");
  EXPECT_EQ(why(index + "if (i < n) y[i] = x[i];\ny[0] = 1;\n"), "line 4: statements after the guard");
  EXPECT_EQ(why(index + "if (i < n) y[i] = __shfl_sync(~0u, x[i], 0);\n"), "line 3: __shfl_sync");
  EXPECT_EQ(why(index + "y[i] = x[i];\n"), "line 3: no guard");
  EXPECT_EQ(why(index + "y[0] = 0;\nif (i < n) y[i] = x[i];\n"), "line 3: a statement between the index and its guard");
  EXPECT_EQ(why(index + "if (i < n) y[i] = x[i] * blockDim.x;\n"), "line 3: blockDim");
}

// What people write: each is drafted without editing, its output found, its launch derived.
TEST_F(DraftTest, TheFormsOfPublicKernelsAreRead) {
  const std::string index = "  int i = blockIdx.x * 256 + threadIdx.x;\n", guard = "  if (i < n) y[i] = 2 * x[i];\n}\n";
  const std::string body = index + guard;
  const std::string plain = "__global__ void k(const float* x, float* y, int n) {\n" + body;
  struct Case {
    std::string text;
    DraftOptions options;
    std::string launcher;  // a part of launcher.cu; "" for a problem without one
    std::string output;    // dtype and elements of y
  };
  const std::string by_256 = "  k<<<(n + 255) / 256, 256>>>(x, y, n);";
  const Case cases[] = {
      {"#define FLOAT4(v) (reinterpret_cast<float4*>(&(v))[0])\n"
       "__global__ void k(float* x, float* y, int n) {\n"
       "  int i = 4 * (blockIdx.x * 256 + threadIdx.x);\n"
       "  if ((i + 3) < n) { float4 v = FLOAT4(x[i]); v.x *= 2; FLOAT4(y[i]) = v; }\n}\n",
       {},
       "  k<<<(n + 1023) / 1024, 256>>>(const_cast<float*>(x), y, n);",
       "float32 4096"},
      {"template <int B> __global__ void k(const float* x, float* y, int n) {\n"
       "  int i = blockIdx.x * B + threadIdx.x;\n" +
           guard +
           "template __global__ void k<256>(const float*, float*, int);\n"
           "void go(const float* x, float* y, int n) { k<256><<<(n + 255) / 256, 256>>>(x, y, n); }\n",
       {},
       "",
       "float32 4096"},
      {"__global__ void k(const signed char* x, signed char* y, int n) {\n" + body, {}, by_256, "int8 4096"},
      {"__global__ void k(const short* x, unsigned short* y, int n) {\n" + body, {}, by_256, "uint16 4096"},
      {"__global__ void k(const uint* x, unsigned long long* y, int n) {\n" + body,
       {},
       "k<<<(n + 255) / 256, 256>>>(reinterpret_cast<const uint*>(x), reinterpret_cast<unsigned long long*>(y), n);",
       "int64 4096"},
      {"__global__ void k(const float4* x, half2* y, int n) {\n" + body,
       {},
       "k<<<(n + 255) / 256, 256>>>(reinterpret_cast<const float4*>(x), reinterpret_cast<half2*>(y), n);",
       "float16 8192"},
      {"namespace cg = cooperative_groups;\n" + plain, {}, by_256, "float32 4096"},
      {"namespace mine {\n" + plain + "}\n", {}, "  mine::k<<<", "float32 4096"},
      {"struct V { float a; };\n__device__ V operator+(V p, V q) { return V{p.a + q.a}; }\n" + plain,
       {},
       by_256,
       "float32 4096"},
      {"__global__ void k(const float* x, float* y, int n) {\n" + index + "  if (i < n) y[i] = 2 * \\\n x[i];\n}\n",
       {},
       by_256,
       "float32 4096"},
      {"__global__ void k(const float* x, float* y, int n) {\n"
       "  int i = blockIdx.x * 1024 + threadIdx.x * 4;\n"
       "  for (int e = 0; e < 4; ++e)\n    if (i + e < n) y[i + e] = x[i + e];\n}\n",
       {},
       "  k<<<(n + 1023) / 1024, 256>>>(x, y, n);",
       "float32 4096"},
      {"template <typename T, int B = 128> __global__ void __launch_bounds__(B) k(const T* x, T* y, int n) {\n"
       "  int i = blockIdx.x * B + threadIdx.x;\n" +
           guard,
       {{"function", {{"", "k<double>"}}}},
       "  k<double, 128><<<(n + 127) / 128, 128>>>(x, y, n);",
       "float64 4096"},
      {"template <int B> __global__ void k(const float* x, float* y, int n) {\n"
       "  int i = blockIdx.x * B + threadIdx.x;\n" +
           guard + "int main() { const int threads = 32 * 2; k<threads><<<7, threads>>>(0, 0, 0); }\n",
       {},
       "  k<64><<<(n + 63) / 64, 64>>>(x, y, n);",
       "float32 4096"},
      {plain,
       {{"grid", {{"", "2*cdiv(n, 512),min(n, 4)"}}}, {"shape", {{"y", "cdiv(n, 2)*2"}}}},
       "  k<<<dim3(2*(((n) + (512) - 1) / (512)),((n) < (4) ? (n) : (4))), 256>>>(x, y, n);",
       "float32 4096"},
      {"__global__ void k(const float* x, float* y, int n) {\n  auto grid = cg::this_grid();\n" + body,
       {},
       "  void* arguments[] = {&argument_x, &argument_y, &argument_n};\n"
       "  cudaLaunchCooperativeKernel(reinterpret_cast<void*>(k), (n + 255) / 256, 256, arguments, 0, 0);\n",
       "float32 4096"},
      {plain + "void go(const float* x, float* y, int n) {\n  void* all[] = {(void*)&x, (void*)&y, (void*)&n};\n"
               "  cudaLaunchCooperativeKernel((void*)k, dim3(8), dim3(256), all, 0, 0);\n}\n",
       {},
       "",
       "float32 4096"},
      {"#ifdef WIDE\ntypedef double real;\n#elif defined(NARROW) && N > 1\ntypedef half real;\n#else\n"
       "typedef float real;\n#endif\n__global__ void k(const real* x, real* y, int n) {\n" +
           body,
       {},
       "(x, y, n);",
       "float32 4096"},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.text);
    const CudaSource source("k.cu", one.text);
    DraftOptions options = one.options;
    options["size"] = {{"n", "4096"}};
    const Draft draft = MakeDraft(source, "k", options, kNobody);
    const std::string launcher = LauncherText(source, draft);
    EXPECT_EQ(launcher.empty(), one.launcher.empty());
    EXPECT_THAT(launcher, HasSubstr(one.launcher));
    const Problem problem = Written(source, draft);
    const Parameter& y = problem.parameters[1];
    EXPECT_EQ(y.role, Role::kOutput);
    EXPECT_EQ(Info(y.dtype).name + (" " + std::to_string(y.Elements(problem.timing))), one.output);
    EXPECT_EQ(problem.parameters[0].role, Role::kInput);
    fs::remove_all(folder_ / "k");
  }
}

// The dimensions of an input that are reduced away, not those that only some input has; and what the code computes in.
TEST_F(DraftTest, GuessesHowManyTermsASumHasAndInWhichPrecision) {
  struct Case {
    std::string parameters, body;
    DraftOptions options;
    std::string terms;
    std::optional<DType> precision;
  };
  const DraftOptions matrix = {{"shape", {{"a", "m,k"}, {"b", "k,n"}, {"c", "m,n"}}},
                               {"size", {{"m", "64"}, {"n", "32"}, {"k", "128"}}}};
  const std::string of_matrix = "const half* a, const half* b, half* c, int m, int n, int k";
  const Case cases[] = {
      {of_matrix, "c[0] = a[0] + b[0];", matrix, "k", std::nullopt},
      {of_matrix, "half sum = 0; sum += a[1]; c[0] = sum + b[0];", matrix, "k", DType::kFloat16},
      {of_matrix, "float sum = 0; sum += b[1]; c[0] = a[0];", matrix, "k", std::nullopt},
      {of_matrix, "c[0] = __hfma(a[0], b[0], c[0]);", matrix, "k", DType::kFloat16},
      {of_matrix, "wmma::fragment<wmma::accumulator, 16, 16, 16, half> f; c[0] = a[0] + b[0];", matrix, "k",
       DType::kFloat16},
      {of_matrix, "asm(\"mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {};\"); c[0] = a[0] + b[0];", matrix, "k",
       DType::kFloat16},
      {of_matrix,
       "c[0] = a[0] + b[0];",
       {{"shape", {{"a", "m*k"}, {"b", "k*n"}, {"c", "m*n"}}}, {"size", matrix.at("size")}},
       "k",
       std::nullopt},
      // Sparse rows: the columns are gathered, the values are summed by rows.
      {"const int* at, const float* v, const float* x, float* y, int rows, int cols, int values",
       "y[0] = v[0] * x[at[0]];",
       {{"shape", {{"at", "values"}, {"v", "values"}, {"x", "cols"}, {"y", "rows"}}},
        {"size", {{"rows", "64"}, {"cols", "1000"}, {"values", "640"}}},
        {"range", {{"at", "0,cols-1"}}}},
       "ceil_div(values, rows)",
       std::nullopt},
      {"const int* at, const float* w, float* y, int n, int d, int rows",
       "y[0] = w[at[0]];",
       {{"shape", {{"at", "n"}, {"w", "rows,d"}, {"y", "n,d"}}},
        {"size", {{"n", "64"}, {"d", "16"}, {"rows", "999"}}},
        {"range", {{"at", "0,rows-1"}}}},
       "1",
       std::nullopt},
      {"const float* x, float* y, int n, int d",
       "float s = x[0]; s += __shfl_xor_sync(~0u, s, 1); y[0] = s;",
       {{"shape", {{"x", "n,d"}, {"y", "n,d"}}}, {"size", {{"n", "64"}, {"d", "16"}}}},
       "d",
       std::nullopt},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.body);
    const CudaSource source("k.cu", "__global__ void k(" + one.parameters + ") {\n" + one.body + "\n}\n");
    DraftOptions options = one.options;
    options["grid"] = {{"", "1"}};
    const Draft draft = MakeDraft(source, "k", options, kNobody);
    EXPECT_EQ(TermsOf(draft, source.text()), one.terms);
    EXPECT_EQ(LowPrecisionOf(draft, source.text()), one.precision);
    if (one.precision) {
      EXPECT_EQ(Written(source, draft).tolerance.accumulation, one.precision);
    }
    fs::remove_all(folder_ / "k");
  }
}

// A kernel to evaluate takes headers of its own folder, not those outside of it; places are those of the files.
TEST_F(DraftTest, KernelsAreReadWithTheHeadersOfTheirFolder) {
  fs::create_directories(folder_ / "mine/parts");
  std::ofstream(folder_ / "secret.h") << "int secret;\n";
  std::ofstream(folder_ / "mine/own.cuh") << "#pragma once\n#include \"parts/deep.h\"\n";
  std::ofstream(folder_ / "mine/parts/deep.h") << "#include \"../own.cuh\"\n#include \"../../secret.h\"\nint deep;";
  fs::create_symlink(folder_ / "secret.h", folder_ / "mine/link.h");
  const std::string kernel = "#include <cstdint>\n#include \"own.cuh\"\n#include \"link.h\"\nint last;\n";
  std::ofstream(folder_ / "mine/k.cu") << kernel;
  std::string written;
  const std::string text = cuda_source::ReadKernelWithOwnHeaders((folder_ / "mine/k.cu").string(), {}, &written);
  EXPECT_EQ(written, kernel) << "one reading gives both: the file may be a pipe";
  EXPECT_EQ(text,
            "#include <cstdint>\n#line 1 \"own.cuh\"\n\n#line 1 \"parts/deep.h\"\n\n"
            "#include \"../../secret.h\"\nint deep;\n#line 3 \"own.cuh\"\n#line 3 \"kernel.cu\"\n"
            "#include \"link.h\"\nint last;\n");
  const auto place = [&](const std::string& words) {
    const auto line = std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(text.find(words)), '\n');
    const cuda_source::SourcePlace found = cuda_source::PlacesOfLines(text, "kernel.cu")[static_cast<size_t>(line)];
    return found.file + ":" + std::to_string(found.line);
  };
  EXPECT_EQ(place("int last"), "kernel.cu:4");
  EXPECT_EQ(place("int deep"), "parts/deep.h:3");
  EXPECT_EQ(place("#include <cstdint>"), "kernel.cu:1");
  EXPECT_THAT(CheckIncludes(text, {}).why, testing::StartsWith("parts/deep.h:2: #include of \"../../secret.h\""));
  EXPECT_THAT(cuda_source::ReadKernelWithOwnHeaders((folder_ / "mine/k.cu").string(), {folder_.string()}),
              HasSubstr("int secret;"));
}

// reference.cu has what the kernel needs, of the file and of its own headers; errors name the header's line.
TEST_F(DraftTest, OwnHeadersAreReadAndUnusedCodeIsLeftOut) {
  std::ofstream(folder_ / "own.cuh") << "#pragma once\n#include <cublas_v2.h>\n#include <cstdio>\n"
                                        "static cublasHandle_t handle;\n#define UNUSED handle\n"
                                        "#define TWO 2\n__device__ float twice(float v) { return TWO * v; }\n";
  const std::string kernel =
      "__global__ void k(const float* x, float* y, int n) {\n"
      "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < n) y[i] = twice(x[i]);\n}\n";
  std::ofstream(folder_ / "k.cu") << "// Doubles.\n#include <torch/extension.h>\n#include \"own.cuh\"\n"
                                  << kernel
                                  << "BINDING(k, float)\ntorch::Tensor run(torch::Tensor x) { return handle; }\n"
                                     "PYBIND11_MODULE(NAME, m) { m.def(\"run\", &run); }\n";
  const std::string file = (folder_ / "k.cu").string();
  const CudaSource source(file, cuda_source::ReadWithOwnHeaders(file, {}));
  const Draft draft = MakeDraft(source, "k", {{"function", {{"", "k"}}}, {"size", {{"n", "4096"}}}}, kNobody);
  EXPECT_EQ(ReferenceText(source, draft),
            "// Doubles.\n\n#include <cstdint>\n#include <cstdio>\n#define TWO 2\n"
            "__device__ float twice(float v) { return TWO * v; }\n" +
                kernel);
  EXPECT_EQ(source.PlaceOf(source.Find("twice")->begin), (folder_ / "own.cuh").string() + ":7");
  EXPECT_EQ(source.PlaceOf(source.Find("k")->begin), file + ":4");
}

std::string ErrorOf(const std::string& text, const DraftOptions& options) {
  return test::MessageOf(
      [&] {
        const CudaSource source("k.cu", text);
        MakeDraft(source, "k", options, kNobody);
      },
      0, "none");
}

TEST_F(DraftTest, WhatIsMissingOrUnknownIsSaid) {
  EXPECT_EQ(ErrorOf(kSaxpy, {}),
            "the kernel does not tell these values; add these options:\n"
            "  --size n=N: the value of the size n for timing, such as 1048576\n"
            "  --value a=X: the value of the scalar a");
  EXPECT_EQ(ErrorOf(kSaxpy, {{"size", {{"m", "1"}}}}), "k.cu:2: --size m: saxpy has no parameter of that name");
  EXPECT_EQ(ErrorOf(kSaxpy, {{"size", {{"n", "many"}}}, {"value", {{"a", "1"}}}}),
            "--size n=many: expected a whole number from 1 up");
  EXPECT_EQ(ErrorOf("int f() { return 1; }\n", {}), "k.cu:1: there is no __global__ function");
  EXPECT_EQ(ErrorOf("__global__ void a(float* x) {}\n__global__ void b(float* x) {}\n", {}),
            "k.cu:2: there are several kernels (a, b): choose one by --function NAME");
  EXPECT_EQ(ErrorOf("template <int N>\n__global__ void a(float* x) {}\n", {}),
            "k.cu:1: a is a template: choose its arguments by --function 'a<N>', with values in place of the names");
  EXPECT_THAT(ErrorOf("__global__ void a(float4 x) {}\n", {}),
              HasSubstr("k.cu:1: a: the parameter x is of type float4, which problems do not have"));
  EXPECT_THAT(ErrorOf("__global__ void a(float* x) { /* never ends\n", {}), HasSubstr("k.cu:1: "));
}

}  // namespace
}  // namespace kgrpo::evaluator
