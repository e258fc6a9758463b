// What a draft takes from the file besides the function's signature: calls, guards, branches, casts.
#include "draft/call_site.h"
#include "draft/draft.h"
#include "draft/oracle_text.h"
#include "draft/problem_text.h"
#include "test.h"

namespace kgrpo::evaluator {
namespace {

using testing::ElementsAre, testing::HasSubstr, testing::Not, testing::Pair;

const Ask kNoAnswer = [](const std::string&, const std::string&) { return std::string(); };

Draft Drafted(const CudaSource& source, const std::string& function, DraftOptions options) {
  options["function"][""] = function;
  return MakeDraft(source, "drafted", options, kNoAnswer);
}

const DraftParameter& Named(const Draft& draft, const std::string& name) {
  for (const DraftParameter& parameter : draft.parameters) {
    if (parameter.source.name == name) return parameter;
  }
  throw std::runtime_error("no parameter " + name);
}

std::string MissingOf(const std::string& text, const DraftOptions& options) {
  const CudaSource source("k.cu", text);
  return test::MessageOf([&] { MakeDraft(source, "k", options, kNoAnswer); }, 0, "none");
}

// Sizes, shapes, scalars and the launch stand in the same file: nothing is asked for.
TEST(DraftGuesses, TheCallInTheFileTellsTheRest) {
  const CudaSource source(
      "blur.cu",
      "#define BX 32\n"
      "__global__ void blur(const float* in, float* out, int w, int h, float k) {\n"
      "  extern __shared__ float t[];\n"
      "  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;\n"
      "  t[threadIdx.x] = 0;\n"
      "  for (int d = 0; d < 3; ++d) if (x < w && y < h) out[y * w + x] = k * in[(y + d) * w + x];\n"
      "}\n"
      "static int UpDiv(int a, int b) { return (a + b - 1) / b; }\n"
      "int main(int argc, char** argv) {\n"
      "  const int width = 1 << 11;\n  int height = argc > 1 ? atoi(argv[1]) : 1024;\n"
      "  size_t bytes = (size_t)width * (height + 2) * sizeof(float);\n  float *d_in, *d_out;\n"
      "  CHECK(cudaMalloc((void**)&d_in, bytes));\n  cudaMalloc(&d_out, sizeof(*d_out) * height * width);\n"
      "  dim3 block(BX, 8);\n  dim3 grid((width + block.x - 1) / block.x, ceil(height / 8.0));\n"
      "  size_t shared = BX * sizeof(float);\n"
      "  blur<<<grid, block, shared>>>(d_in, d_out, width, height, 0.5f);\n}\n");
  const Draft draft = MakeDraft(source, "blur", {}, kNoAnswer);
  EXPECT_THAT(draft.sizes, ElementsAre(Pair("w", 2048), Pair("h", 1024)));
  EXPECT_EQ(Named(draft, "k").value, "0.5");
  EXPECT_EQ(Draft::Elements(Named(draft, "in")), "w*(h+2)");
  EXPECT_EQ(draft.grid, "(w+32-1)/32,(((h) + (8) - 1) / (8))");
  EXPECT_EQ(draft.block, "32,8");
  EXPECT_EQ(draft.shared, "128");
  EXPECT_THAT(draft.guesses, testing::Contains("w is 2048, as in the call in line 19 (--size w=N)"));
  // The guesses stand before everything else.
  EXPECT_THAT(ProblemText(source, draft, {}),
              testing::StartsWith("# Guessed from the kernel, to be checked:\n#   w is 2048"));
  // An option overrules the call.
  const Draft given =
      MakeDraft(source, "blur", {{"size", {{"w", "64"}}}, {"grid", {{"", "w"}}}, {"block", {{"", "9"}}}}, kNoAnswer);
  EXPECT_THAT(given.sizes, ElementsAre(Pair("w", 64), Pair("h", 1024)));
  EXPECT_EQ(given.grid, "w");
  EXPECT_EQ(given.block, "9");
}

// A kernel without a parameter for its size: the caller's variable is the size, and the launch function takes it.
TEST(DraftGuesses, TheCallersVariableIsTheSize) {
  const CudaSource source(
      "add.cu",
      "__global__ void add(float* a, float* b, float* c) {\n"
      "  int i = blockIdx.x * 256 + threadIdx.x;\n  c[i] = a[i] + b[i];\n}\n"
      "int main() {\n  const int N = 1048576; float *da, *db, *dc;\n"
      "  cudaMalloc(&da, N * sizeof(float)); cudaMalloc(&db, sizeof(float) * N); cudaMalloc(&dc, 4 * N);\n"
      "  add<<<N / 256, 256>>>(da, db, dc);\n}\n");
  const Draft draft = MakeDraft(source, "add", {}, kNoAnswer);
  EXPECT_THAT(draft.sizes, ElementsAre(Pair("N", 1048576)));
  EXPECT_THAT(draft.multiples, ElementsAre(Pair("N", 256)));
  EXPECT_EQ(Draft::Elements(Named(draft, "c")), "N");
  EXPECT_THAT(LauncherText(source, draft),
              HasSubstr("launch(const float* a, const float* b, float* c, int N) {\n"
                        "  add<<<N/256, 256>>>(const_cast<float*>(a), const_cast<float*>(b), c);"));
}

TEST(DraftGuesses, CallsThatTellLittleAreAskedAbout) {
  const std::string kernel =
      "__global__ void k(const float* x, float* y, int n) {\n"
      "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < n) y[i] = x[i];\n}\n";
  EXPECT_THAT(MissingOf(kernel + "void f(int m) { k<<<m, 256>>>(a, b, m); }\n", {}), HasSubstr("--size n=N"));
  EXPECT_THAT(MissingOf(kernel + "void f(S s) { k<<<s.blocks, s->threads>>>(s.a, s.b, s.n); }\n", {}),
              HasSubstr("--size n=N"));
  const CudaSource source("k.cu", kernel + "void f(S s) { k<<<s.blocks, 128>>>(s.a, s.b, s.n); k<<<(((; }\n");
  EXPECT_EQ(Drafted(source, "k", {{"size", {{"n", "4096"}}}}).grid, "(n + 255) / 256");
}

// Through the function that launches, from the one that calls it.
TEST(DraftGuesses, ConstantsAreFollowedThroughCallers) {
  const CudaSource source(
      "k.cu",
      "__global__ void k(const float* x, float* y, int n, float a) {\n"
      "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < n) y[i] = a * x[i];\n}\n"
      "void run(float* x, float* y, int count, double a) { k<<<(count + 127) / 128, 128>>>(x, y, count, a); }\n"
      "int main() { int m = 1 << 10; run(p, q, 2 * m, 1.5); run(run, run); }\n");
  const Draft draft = Drafted(source, "k", {});
  EXPECT_THAT(draft.sizes, ElementsAre(Pair("n", 2048)));
  EXPECT_EQ(Named(draft, "a").value, "1.5");
  EXPECT_EQ(draft.grid, "(n+127)/128");
}

TEST(DraftGuesses, AGuardTellsTheThreads) {
  const CudaSource source("sums.cu",
                          "__global__ void sums(const float* x, float* s, int n) {\n"
                          "  int i = blockIdx.x * 256 + threadIdx.x;\n  float v = i < n ? x[i] : 0;\n"
                          "  if (threadIdx.x == 0) s[blockIdx.x] = v;\n}\n");
  const Draft draft = Drafted(source, "sums", {{"size", {{"n", "4096"}}}, {"shape", {{"s", "cdiv(n,256)"}}}});
  EXPECT_EQ(draft.grid, "(n + 255) / 256");
}

TEST(DraftGuesses, AHaloIsNoSize) {
  const std::string kernel =
      "#define RADIUS 7\n__global__ void stencil(const float* in, float* out) {\n"
      "  int g = blockIdx.x * blockDim.x + threadIdx.x;\n  out[g] = (g < RADIUS) ? 0 : in[g - RADIUS];\n}\n";
  const std::string missing = MissingOf(kernel, {});
  EXPECT_THAT(missing, HasSubstr("--shape in=D,D"));
  EXPECT_THAT(missing, HasSubstr("--shape out=D,D"));
  const CudaSource fixed("k.cu",
                         "#define N 4096\n__global__ void k(const float* in, float* out) {\n"
                         "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < N) out[i] = in[i];\n}\n");
  const Draft draft = Drafted(fixed, "k", {});
  EXPECT_EQ(Draft::Elements(Named(draft, "out")), "4096");
  EXPECT_THAT(draft.guesses, testing::Contains(HasSubstr("made of the file's constants")));
}

// A write before a read in the text makes an output, unless no thread that writes comes to the read.
TEST(DraftGuesses, BranchesDecideRoles) {
  const auto role = [](const std::string& body) {
    const CudaSource source("k.cu",
                            "__global__ void k(float* y, int n) {\n  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                            "  if (i >= n) return;\n" +
                                body + "}\n");
    return Named(Drafted(source, "k", {{"size", {{"n", "4096"}}}}), "y").role;
  };
  EXPECT_EQ(role("y[i] = 0;\n  y[i] = y[i] + 1;\n"), Role::kOutput);
  EXPECT_EQ(role("if (i == 0) {\n y[i] = 0;\n } else {\n y[i] = y[i] + 1;\n }\n"), Role::kInout);
  EXPECT_EQ(role("if (i == 0) y[i] = 0;\n else y[i] = y[i] + 1;\n"), Role::kInout);
  EXPECT_EQ(role("if (i == 0) {\n y[i] = 0;\n return;\n }\n y[i] = y[i] + 1;\n"), Role::kInout);
  EXPECT_EQ(role("if (i == 0) {\n y[i] = 0;\n } else if (i == 1) {\n y[i] = 2;\n } else {\n y[i] += 1;\n }\n"),
            Role::kInout);
  EXPECT_EQ(role("if (i == 0) {\n y[i] = 0;\n } else {\n y[i] = 1;\n }\n y[i] = y[i] + 1;\n"), Role::kOutput);
  EXPECT_EQ(role("struct { float y; } b = {1};\n  y[i] = b.y;\n"), Role::kOutput);
}

TEST(DraftGuesses, OffsetsAndVectors) {
  const CudaSource rows(
      "rows.cu",
      "__global__ void rows(const int* offsets, const float* v, float* out, int segments) {\n"
      "  int s = blockIdx.x * blockDim.x + threadIdx.x;\n  if (s >= segments) return;\n  float t = 0;\n"
      "  for (int j = offsets[s]; j < offsets[s + 1]; ++j) t += v[j];\n  out[s] = t;\n}\n");
  const Draft draft =
      Drafted(rows, "rows", {{"size", {{"segments", "100"}, {"nnz", "1000"}}}, {"shape", {{"v", "nnz"}}}});
  EXPECT_EQ(Draft::Elements(Named(draft, "offsets")), "(segments+1)");
  EXPECT_THAT(ProblemText(rows, draft, {}), HasSubstr("shape: [segments+1], distribution: offsets, high: nnz}"));
  const CudaSource pairs("pairs.cu",
                         "__global__ void pairs(const half* a, half* y, int n) {\n"
                         "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                         "  if (i < n / 2) ((half2*)y)[i] = reinterpret_cast<const half2*>(a)[i];\n}\n");
  const Draft vectors = Drafted(pairs, "pairs", {{"size", {{"n", "4096"}}}, {"shape", {{"a", "n"}, {"y", "n"}}}});
  EXPECT_THAT(vectors.multiples, ElementsAre(Pair("n", 2)));
}

// Names that C++ allows and the launcher must not confuse.
TEST(DraftGuesses, AParameterMayHaveTheKernelsName) {
  const CudaSource source("k.cu",
                          "__global__ void lower(const float* x, float* lower, int n) {\n"
                          "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < n) lower[i] = x[i];\n}\n");
  EXPECT_THAT(LauncherText(source, Drafted(source, "lower", {{"size", {{"n", "4096"}}}})), HasSubstr("  ::lower<<<"));
}

TEST(DraftGuesses, MacrosWithinFunctionsAndInactiveCode) {
  const CudaSource source("k.cu",
                          "#ifdef OTHER_VENDOR\n#include \"other.h\"\nvoid k() {\n#else\n"
                          "__device__ float order(float a) { return a; }\n"
                          "__global__ void k(const float* x, float* y, int n) {\n#endif\n"
                          "#define ORDER(a) order(a)\n"
                          "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < n) y[i] = ORDER(x[i]);\n}\n"
                          "double report(double k, int n) { std::cout << k << n; return k < n; }\n");
  const std::string reference = ReferenceText(source, Drafted(source, "k", {{"size", {{"n", "4096"}}}}));
  EXPECT_THAT(reference, HasSubstr("float order(float a)"));
  EXPECT_THAT(reference, Not(HasSubstr("other.h")));
  EXPECT_THAT(reference, Not(HasSubstr("report")));
}

}  // namespace
}  // namespace kgrpo::evaluator
