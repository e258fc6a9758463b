// Wrong kernels that only cases beyond the listed sizes and values find, and correct ones that such cases must not
// accuse: whole numbers, drawn sizes and scalars, unusual values, the same addresses, a tolerance narrower than
// rounding.
#include "kernel_evaluator_fixture.h"
#include "test.h"

namespace kgrpo::evaluator_sim {
namespace {

constexpr uint64_t kKey = 0x51f0a7c3;

// A problem's files beside reference.cu: `parameters` with the scalars, and what follows them in problem.yaml.
struct Files {
  std::string name, parameters, rest, reference, oracle;
};

class FurtherCasesTest : public KernelEvaluatorTest {
 protected:
  static OpenProblem Open(const Files& files) {
    const std::filesystem::path folder = std::filesystem::path(cache_directory_) / files.name;
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "problem.yaml") << "name: " << files.name
                                           << "\ntitle: t\nfamily: f\nsplit: train\ntraits: []\ndescription: d\n"
                                              "parameters:\n"
                                           << files.parameters << files.rest;
    std::ofstream(folder / "reference.cu") << files.reference;
    if (!files.oracle.empty()) std::ofstream(folder / "oracle.cc") << files.oracle;
    return OpenProblem(folder.string(), cache_directory_, false);
  }
  static KernelEvaluation Judge(const OpenProblem& open, const std::string& source, uint64_t key = kKey,
                                bool thorough = false) {
    return evaluator_->Evaluate(open, source, key, thorough);
  }
  static KernelEvaluation Shipped(const std::string& problem, const std::string& source) {
    return Judge(OpenProblem(std::string(KGRPO_SOURCE_DIR) + "/problems/" + problem, cache_directory_, false), source);
  }
};

// Sums of many positive terms round by more than one term: only whole numbers show that one is left out, and only a
// large size that it is left out there.
TEST_F(FurtherCasesTest, WholeNumbersShowALostTerm) {
  const auto scan = [](const std::string& sum, const std::string& exclusive) {
    return "__global__ void scan(const float* x, float* out, int n, bool exclusive) {\n"
           "  __shared__ " +
           sum +
           " sums[1024];\n"
           "  const int each = (n + 1023) / 1024, first = threadIdx.x * each, last = min(n, first + each);\n"
           "  " +
           sum +
           " s = 0;\n  for (int i = first; i < last; ++i) s += x[i];\n"
           "  sums[threadIdx.x] = s; __syncthreads();\n  " +
           sum +
           " before = 0;\n"
           "  for (int t = 0; t < threadIdx.x; ++t) before += sums[t];\n"
           "  for (int i = first; i < last; ++i) {\n"
           "    if (exclusive) out[i] = before;\n    before += x[i];\n    if (!exclusive) out[i] = before;\n  }\n}\n"
           "extern \"C\" void launch(const float* x, float* out, int n) { scan<<<1, 1024>>>(x, out, n, " +
           exclusive + "); }\n";
  };
  const OpenProblem open =
      Open({"scan",
            "  - {name: x, role: input, dtype: float32, shape: [n], distribution: uniform, low: 0, high: 1}\n"
            "  - {name: out, role: output, dtype: float32, shape: [n]}\n"
            "  - {name: n, role: scalar, dtype: int32, value: n}\n",
            "sizes: {visible: [{n: 1000}], hidden: [{n: 1}, {n: 3333}], timing: {n: 262144}}\n"
            "accumulations: \"n\"\nneeds: {bytes: \"8*n\", flops: 0}\n",
            scan("float", "false"), ""});
  const KernelEvaluation wrong = Judge(open, scan("double", "n > 65536"), kKey, true);
  EXPECT_EQ(wrong.verdict, "wrong") << wrong.diagnosis;
  EXPECT_THAT(wrong.diagnosis, testing::StartsWith("At the timing size, with whole numbers: "));
  const KernelEvaluation right = Judge(open, scan("double", "false"), kKey, true);
  EXPECT_EQ(right.verdict, "correct") << right.diagnosis;
}

// The count is so large that it hides mean and variance.
TEST_F(FurtherCasesTest, SmallElementsBesideLargeOnes) {
  const auto statistics = [](const std::string& step) {
    return "__global__ void k(const float* x, float* out, int n) {\n"
           "  float s = 0, q = 0;\n  int terms = 0;\n"
           "  for (int i = 0; i < n; i += " +
           step +
           ") s += x[i], ++terms;\n"
           "  const float mean = s / terms;\n"
           "  for (int i = 0; i < n; i += " +
           step +
           ") q += (x[i] - mean) * (x[i] - mean);\n"
           "  out[0] = mean; out[1] = q / terms; out[2] = n;\n}\n"
           "extern \"C\" void launch(const float* x, float* out, int n) { k<<<1, 1>>>(x, out, n); }\n";
  };
  const OpenProblem open = Open({"statistics",
                                 "  - {name: x, role: input, dtype: float32, shape: [n]}\n"
                                 "  - {name: out, role: output, dtype: float32, shape: [3]}\n"
                                 "  - {name: n, role: scalar, dtype: int32, value: n}\n",
                                 "sizes: {visible: [{n: 30000}], hidden: [{n: 1000}, {n: 3333}], timing: {n: 40000}}\n"
                                 "accumulations: \"n\"\nneeds: {bytes: \"4*n\", flops: 0}\n",
                                 statistics("1"),
                                 "extern \"C\" void oracle(const double* x, double* out, int64_t n) {\n"
                                 "  double s = 0, q = 0;\n  for (int64_t i = 0; i < n; ++i) s += x[i];\n"
                                 "  for (int64_t i = 0; i < n; ++i) q += (x[i] - s / n) * (x[i] - s / n);\n"
                                 "  out[0] = s / n; out[1] = q / n; out[2] = n;\n}\n"});
  EXPECT_EQ(Judge(open, statistics("(n > 20000 ? 2 : 1)")).verdict, "wrong");
  for (uint64_t key = 1; key <= 4; ++key) {
    const KernelEvaluation right = Judge(open, statistics("1") + "\n", key);
    EXPECT_EQ(right.verdict, "correct") << right.diagnosis;
  }
}

// A sum that cancels rounds by more than its value says.
TEST_F(FurtherCasesTest, SumsThatCancel) {
  const std::string serial =
      "__global__ void sum(const float* x, float* total, int n) {\n  float s = 0;\n"
      "  for (int i = 0; i < n; ++i) s += x[i];\n  *total = s;\n}\n"
      "extern \"C\" void launch(const float* x, float* total, int n) { sum<<<1, 1>>>(x, total, n); }\n";
  const OpenProblem open = Open({"sum",
                                 "  - {name: x, role: input, dtype: float32, shape: [n]}\n"
                                 "  - {name: total, role: output, dtype: float32, shape: [1]}\n"
                                 "  - {name: n, role: scalar, dtype: int32, value: n}\n",
                                 "sizes: {visible: [{n: 4099}], hidden: [{n: 1}, {n: 3333}], timing: {n: 5000}}\n"
                                 "accumulations: \"n\"\nneeds: {bytes: \"4*n\", flops: 0}\n",
                                 serial,
                                 "extern \"C\" void oracle(const double* x, double* total, int64_t n) {\n"
                                 "  for (int64_t i = 0; i < n; ++i) total[0] += x[i];\n}\n"});
  for (uint64_t key = 1; key <= 20; ++key) {
    const KernelEvaluation right = Judge(open, serial, key);
    EXPECT_EQ(right.verdict, "correct") << key << ": " << right.diagnosis;
  }
  std::string half = serial;
  half.replace(half.find("s += x[i]"), 9, "s = __half2float(__float2half(s + x[i]))");
  EXPECT_EQ(Judge(open, "#include <cuda_fp16.h>\n" + half).verdict, "wrong");
}

TEST_F(FurtherCasesTest, AScalarThatIsIgnored) {
  const std::string blend =
      "__global__ void k(const float* a, const float* b, float* out, float alpha, int n) {\n"
      "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
      "  if (i < n) out[i] = fminf(1, fmaxf(-1, ALPHA * a[i] + (1 - ALPHA) * b[i]));\n}\n"
      "extern \"C\" void launch(const float* a, const float* b, float* out, float alpha, int n) {\n"
      "  k<<<(n + 255) / 256, 256>>>(a, b, out, alpha, n);\n}\n";
  EXPECT_EQ(Shipped("blend_chunks", "#define ALPHA 0.25f\n" + blend).verdict, "wrong");
  EXPECT_EQ(Shipped("blend_chunks", "#define ALPHA alpha\n" + blend).verdict, "correct");
}

// A softmax of one block a row, which keeps `each` elements a thread, by `largest` of the row.
std::string Softmax(const std::string& each, const std::string& largest) {
  return "__global__ void k(const float* x, float* out, int cols) {\n"
         "  const float* row = x + (size_t)blockIdx.x * cols;\n"
         "  const int most = " +
         each +
         " * 256, end = cols < most ? cols : most;\n"
         "  __shared__ float part[256];\n"
         "  float m = row[0];\n"
         "  for (int c = threadIdx.x; c < end; c += 256) m = fmaxf(m, row[c]);\n"
         "  part[threadIdx.x] = m; __syncthreads();\n"
         "  for (int t = 0; t < 256; ++t) m = fmaxf(m, part[t]);\n"
         "  __syncthreads();\n  m = " +
         largest +
         ";\n  float s = 0;\n"
         "  for (int c = threadIdx.x; c < end; c += 256) s += expf(row[c] - m);\n"
         "  part[threadIdx.x] = s; __syncthreads();\n  s = 0;\n"
         "  for (int t = 0; t < 256; ++t) s += part[t];\n"
         "  for (int c = threadIdx.x; c < end; c += 256) out[(size_t)blockIdx.x * cols + c] = expf(row[c] - m) / "
         "s;\n}\n"
         "extern \"C\" void launch(const float* x, float* out, int rows, int cols) { k<<<rows, 256>>>(x, out, cols); "
         "}\n";
}

TEST_F(FurtherCasesTest, RowsThatEndAtTheTimingSize) {
  const KernelEvaluation wrong = Shipped("softmax_long", Softmax("32", "m"));
  EXPECT_EQ(wrong.verdict, "wrong");
  EXPECT_THAT(wrong.diagnosis, testing::StartsWith("At a size that is not shown: "));
  EXPECT_THAT(wrong.diagnosis, HasSubstr("never written"));
}

TEST_F(FurtherCasesTest, ASpreadThatOverflows) {
  const KernelEvaluation wrong = Shipped("softmax_long", Softmax("1000", "row[0]"));
  EXPECT_EQ(wrong.verdict, "wrong");
  EXPECT_THAT(wrong.diagnosis, HasSubstr("with a wide spread in x"));
  const KernelEvaluation right = Shipped("softmax_long", Softmax("1000", "m"));
  EXPECT_EQ(right.verdict, "correct") << right.diagnosis;
}

// A deviation of zero: the reference adds an epsilon, the candidate does not.
TEST_F(FurtherCasesTest, ConstantRows) {
  const auto norm = [](const std::string& epsilon) {
    return "__global__ void k(const float* x, float* out, int rows, int cols) {\n"
           "  const int r = blockIdx.x * blockDim.x + threadIdx.x;\n  if (r >= rows) return;\n"
           "  const float* row = x + (size_t)r * cols;\n  float s = 0, q = 0;\n"
           "  for (int c = 0; c < cols; ++c) s += row[c];\n  const float mean = s / cols;\n"
           "  for (int c = 0; c < cols; ++c) q += (row[c] - mean) * (row[c] - mean);\n"
           "  for (int c = 0; c < cols; ++c) out[(size_t)r * cols + c] = (row[c] - mean) / sqrtf(q / cols" +
           epsilon +
           ");\n}\n"
           "extern \"C\" void launch(const float* x, float* out, int rows, int cols) { k<<<(rows + 31) / 32, 32>>>(x, "
           "out, rows, cols); }\n";
  };
  const OpenProblem open =
      Open({"norm",
            "  - {name: x, role: input, dtype: float32, shape: [rows, cols]}\n"
            "  - {name: out, role: output, dtype: float32, shape: [rows, cols]}\n"
            "  - {name: rows, role: scalar, dtype: int32, value: rows}\n"
            "  - {name: cols, role: scalar, dtype: int32, value: cols}\n",
            "sizes: {visible: [{rows: 32, cols: 64}], hidden: [{rows: 3, cols: 100}], timing: {rows: 64, cols: 128}}\n"
            "accumulations: cols\nneeds: {bytes: \"8*rows*cols\", flops: 0}\n",
            norm(" + 1e-5f"),
            "extern \"C\" void oracle(const double* x, double* out, int64_t rows, int64_t cols) {\n"
            "  for (int64_t r = 0; r < rows; ++r) {\n    double s = 0, q = 0;\n"
            "    for (int64_t c = 0; c < cols; ++c) s += x[r * cols + c];\n"
            "    for (int64_t c = 0; c < cols; ++c) q += (x[r * cols + c] - s / cols) * (x[r * cols + c] - s / cols);\n"
            "    for (int64_t c = 0; c < cols; ++c)\n"
            "      out[r * cols + c] = (x[r * cols + c] - s / cols) / std::sqrt(q / cols + 1e-5);\n  }\n}\n"});
  const KernelEvaluation wrong = Judge(open, norm(" + 1e-30f")), right = Judge(open, norm(" + 1e-5f"));
  EXPECT_EQ(wrong.verdict, "wrong");
  EXPECT_EQ(right.verdict, "correct") << right.diagnosis;
}

TEST_F(FurtherCasesTest, StateKeptByAddress) {
  const std::string kernel =
      "__global__ void k(const float* x, const float* y, float* out, int n) {\n"
      "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < n) out[i] = 2.0f * x[i] + y[i];\n}\n"
      "extern \"C\" void launch(const float* x, const float* y, float* out, int n) {\n"
      "  static const float* done = nullptr;\n";
  const KernelEvaluation wrong =
      Affine(kernel + "  if (done != x) k<<<(n + 255) / 256, 256>>>(x, y, out, n);\n  done = x;\n}\n");
  EXPECT_EQ(wrong.verdict, "wrong");
  EXPECT_THAT(wrong.diagnosis, HasSubstr("out was never written"));
  EXPECT_EQ(Affine(kernel + "  k<<<(n + 255) / 256, 256>>>(x, y, out, n);\n  done = x;\n}\n").verdict, "correct");
}

// A byte may equal the poison by chance: what was stored decides.
TEST_F(FurtherCasesTest, ElementsThatEqualThePoison) {
  const auto quantise = [](const std::string& value) {
    return "__global__ void k(const float* x, unsigned char* y, int n) { int i = blockIdx.x * blockDim.x + "
           "threadIdx.x; if (i < n) y[i] = (unsigned char)(" +
           value +
           "); }\n"
           "extern \"C\" void launch(const float* x, unsigned char* y, int n) { k<<<(n + 255) / 256, 256>>>(x, y, n); "
           "}\n";
  };
  const OpenProblem open =
      Open({"quantise",
            "  - {name: x, role: input, dtype: float32, shape: [n], distribution: uniform, low: 0, high: 1}\n"
            "  - {name: y, role: output, dtype: uint8, shape: [n]}\n"
            "  - {name: n, role: scalar, dtype: int32, value: n}\n",
            "sizes: {visible: [{n: 100000}], hidden: [{n: 1000}], timing: {n: 200000}}\n"
            "tolerance: {differing: 0.01}\nneeds: {bytes: \"5*n\", flops: 0}\n",
            quantise("256 * x[i]"),
            "extern \"C\" void oracle(const double* x, int64_t* y, int64_t n) {\n"
            "  for (int64_t i = 0; i < n; ++i) y[i] = (int64_t)(256 * x[i]);\n}\n"});
  for (uint64_t key = 1; key <= 4; ++key) {
    const KernelEvaluation right = Judge(open, quantise("fmaxf(256 * x[i] - 0.003f, 0.f)"), key);
    EXPECT_EQ(right.verdict, "correct") << right.diagnosis;
  }
}

// The tolerance is below the rounding of float32: that is not the kernel's fault, and the reference's evaluation says
// so.
TEST_F(FurtherCasesTest, AToleranceNarrowerThanRounding) {
  const auto kernel = [](const std::string& value) {
    return "__global__ void k(const float* x, float* y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i "
           "< n) y[i] = " +
           value +
           "; }\n"
           "extern \"C\" void launch(const float* x, float* y, int n) { k<<<(n + 255) / 256, 256>>>(x, y, n); }\n";
  };
  const OpenProblem open = Open({"narrow",
                                 "  - {name: x, role: input, dtype: float32, shape: [n]}\n"
                                 "  - {name: y, role: output, dtype: float32, shape: [n]}\n"
                                 "  - {name: n, role: scalar, dtype: int32, value: n}\n",
                                 "sizes: {visible: [{n: 1000}], hidden: [{n: 33}], timing: {n: 20}}\n"
                                 "tolerance: {relative: 5e-8, absolute: 0}\nneeds: {bytes: \"8*n\", flops: 0}\n",
                                 kernel("expf(x[i])"),
                                 "extern \"C\" void oracle(const double* x, double* y, int64_t n) {\n"
                                 "  for (int64_t i = 0; i < n; ++i) y[i] = std::exp(x[i]);\n}\n"});
  const KernelEvaluation reference = Judge(open, open.problem.reference_source);
  EXPECT_EQ(reference.verdict, "wrong");
  EXPECT_THAT(reference.diagnosis, HasSubstr("The tolerance is narrower than the rounding of the reference"));
  const std::string off = Judge(open, kernel("expf(x[i]) + 0.01f")).verdict;
  EXPECT_EQ(off, "wrong");
  const KernelEvaluation other = Judge(open, kernel("exp2f(x[i] * 1.44269504f)"));
  EXPECT_THAT(other.diagnosis, testing::Not(testing::StartsWith("At n=1000: "))) << other.verdict;
}

// The tolerance is that of one rounding to 16 bits. Expected values at the timing size are not rounded to it before; a
// reference that stands for the oracle is.
TEST_F(FurtherCasesTest, HalvesAreRoundedOnce) {
  const auto scaled = [](const std::string& value) {
    return "#include <cuda_fp16.h>\n__global__ void k(const float* x, __half* y, int n) {\n"
           "  int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = __float2half(" +
           value +
           "); }\nextern \"C\" void launch(const float* x, __half* y, int n) { k<<<(n + 255) / 256, 256>>>(x, y, n); "
           "}\n";
  };
  for (const std::string oracle : {"extern \"C\" void oracle(const double* x, double* y, int64_t n) {\n"
                                   "  for (int64_t i = 0; i < n; ++i) y[i] = x[i] * 1.7 + 0.3;\n}\n",
                                   ""}) {
    const OpenProblem open =
        Open({"halves",
              "  - {name: x, role: input, dtype: float32, shape: [n], distribution: uniform, low: 1, high: 2}\n"
              "  - {name: y, role: output, dtype: float16, shape: [n]}\n"
              "  - {name: n, role: scalar, dtype: int32, value: n}\n",
              "sizes: {visible: [{n: 100}], hidden: [{n: 33}], timing: {n: 60000}}\n"
              "tolerance: {relative: 0.0005, absolute: 1e-6}\nneeds: {bytes: \"6*n\", flops: 0}\n",
              scaled("x[i] * 1.7f + 0.3f"), oracle});
    const KernelEvaluation right = Judge(open, scaled("fmaf(x[i] - 1.f, 1.7f, 2.f)"));
    EXPECT_EQ(right.verdict, "correct") << right.diagnosis;
    EXPECT_EQ(Judge(open, scaled("1.002f * (x[i] * 1.7f + 0.3f)")).verdict, "wrong");
  }
}

// At a size that a constant of the kernel chose, outputs have the scale of the oracle's conditioning, as everywhere:
// the two halves of a row cancel.
TEST_F(FurtherCasesTest, SumsThatCancelBeyondAConstant) {
  const auto difference = [](const std::string& sum, const std::string& beyond) {
    return "__device__ void Row(const float* x, float* out, int cols) {\n"
           "  __shared__ double parts[16];\n  " +
           sum +
           " s = 0;\n  for (int c = threadIdx.x; c < cols; c += 16) s += c < cols / 2 ? x[c] : -x[c];\n"
           "  parts[threadIdx.x] = s;\n  __syncthreads();\n  if (threadIdx.x > 0) return;\n"
           "  double total = 0;\n  for (int t = 0; t < 16; ++t) total += parts[t];\n  *out = total;\n}\n"
           "__global__ void k(const float* x, float* out, int cols) {\n"
           "  Row(x + blockIdx.x * (size_t)cols, out + blockIdx.x, cols);\n  if (cols < 5000 || threadIdx.x > 0) "
           "return;\n"
           "  out[blockIdx.x] " +
           beyond +
           ";\n}\n"
           "extern \"C\" void launch(const float* x, float* out, int rows, int cols) { k<<<rows, 16>>>(x, out, cols); "
           "}\n";
  };
  const OpenProblem open = Open(
      {"difference",
       "  - {name: x, role: input, dtype: float32, shape: [rows, cols], distribution: large_offset, offset: 100}\n"
       "  - {name: out, role: output, dtype: float32, shape: [rows]}\n"
       "  - {name: rows, role: scalar, dtype: int32, value: rows}\n"
       "  - {name: cols, role: scalar, dtype: int32, value: cols}\n",
       "sizes: {visible: [{rows: 1, cols: 1000}], hidden: [{rows: 2, cols: 600}], timing: {rows: 64, cols: 1200}}\n"
       "accumulations: \"cols\"\nneeds: {bytes: \"4*rows*cols\", flops: 0}\n",
       difference("double", "*= 1"),
       "extern \"C\" void oracle(const double* x, double* out, int64_t rows, int64_t cols) {\n"
       "  for (int64_t r = 0; r < rows; ++r)\n    for (int64_t c = 0; c < cols; ++c)\n"
       "      out[r] += c < cols / 2 ? x[r * cols + c] : -x[r * cols + c];\n}\n"});
  const KernelEvaluation right = Judge(open, difference("float", "*= 1.000001f"));
  EXPECT_EQ(right.verdict, "correct") << right.diagnosis;
  EXPECT_EQ(right.not_judged, "");
  const KernelEvaluation wrong = Judge(open, difference("float", "= 0"));
  EXPECT_EQ(wrong.verdict, "wrong");
  EXPECT_THAT(wrong.diagnosis, HasSubstr("beyond a constant of the kernel,"));
}

// Without an oracle the reference says what is right. At a size above the timing size, which it refuses, nothing does:
// kernels that take it are no error.
TEST_F(FurtherCasesTest, AReferenceThatRefusesADrawnSize) {
  const auto reversed = [](const std::string& first) {
    return "__global__ void k(const float* x, float* y, int n) {\n  " + first +
           "\n  for (int i = threadIdx.x; i < n; i += 256) y[i] = x[n - 1 - i];\n}\n"
           "extern \"C\" void launch(const float* x, float* y, int n) { k<<<1, 256>>>(x, y, n); }\n";
  };
  const OpenProblem open = Open({"reversed",
                                 "  - {name: x, role: input, dtype: float32, shape: [n]}\n"
                                 "  - {name: y, role: output, dtype: float32, shape: [n]}\n"
                                 "  - {name: n, role: scalar, dtype: int32, value: n}\n",
                                 "sizes: {visible: [{n: 700}], hidden: [{n: 33}, {n: 100}], timing: {n: 1000}}\n"
                                 "needs: {bytes: \"8*n\", flops: 0}\n",
                                 reversed("if (n > 1000) __trap();"), ""});
  const KernelEvaluation reference = Judge(open, open.problem.reference_source);
  EXPECT_EQ(reference.verdict, "correct") << reference.diagnosis;
  EXPECT_EQ(reference.undecided.size(), 1u);
  const KernelEvaluation right = Judge(open, reversed(""));
  EXPECT_EQ(right.verdict, "correct") << right.diagnosis;
}

}  // namespace
}  // namespace kgrpo::evaluator_sim
