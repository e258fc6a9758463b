// Candidates in Triton, recorded by the Triton of the tests' Python and judged by the interpreter: right kernels in
// several styles, planted faults, and what a launch function may not do.
#include <cstdlib>

#include "judge/compile/triton_recorder.h"
#include "kernel_evaluator_fixture.h"
#include "test.h"

namespace kgrpo::evaluator_sim {
namespace {

constexpr char kTritonImports[] = "import torch\nimport triton\nimport triton.language as tl\n\n\n";
constexpr char kTritonKernel[] = R"(@triton.jit
def affine(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out + at, 2.0 * tl.load(x + at, mask=mask) + tl.load(y + at, mask=mask), mask=mask)


)";
constexpr char kTritonLaunch[] = R"(def launch(x, y, out, n):
    affine[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, y, out, n, BLOCK=256)
)";

std::string Edited(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

class TritonFormTest : public KernelEvaluatorTest {
 protected:
  static void SetUpTestSuite() {
    KernelEvaluatorTest::SetUpTestSuite();
    KernelEvaluator::Options options;
    options.python = KGRPO_TEST_PYTHON;
    options.compile_seconds = 60;
    with_triton_ = new KernelEvaluator(options);
    has_triton_ = std::system(KGRPO_TEST_PYTHON " -I -c 'import triton' > /dev/null 2>&1") == 0;
  }
  static void TearDownTestSuite() {
    delete with_triton_;
    KernelEvaluatorTest::TearDownTestSuite();
  }
  void SetUp() override {
    if (!has_triton_) GTEST_SKIP() << "no Triton in " KGRPO_TEST_PYTHON;
  }

  static KernelEvaluation Judge(const OpenProblem& open, const std::string& source) {
    return with_triton_->Evaluate(open, source, 1, false);
  }
  static KernelEvaluation JudgeAffine(const std::string& source) { return Judge(*affine_, source); }

  static inline KernelEvaluator* with_triton_ = nullptr;
  static inline bool has_triton_ = false;
};

const std::string kTriton = std::string(kTritonImports) + kTritonKernel + kTritonLaunch;

TEST(TritonForm, IsKnownByItsImport) {
  EXPECT_TRUE(evaluator::IsTriton(kTriton));
  EXPECT_TRUE(
      evaluator::IsTriton("\xEF\xBB\xBF"
                          "from triton import jit\n"));
  EXPECT_TRUE(evaluator::IsTriton("try:\n    import triton.language as tl\n"));
  EXPECT_FALSE(evaluator::IsTriton("// import triton\nvoid launch() {}\n"));
  EXPECT_FALSE(evaluator::IsTriton("import tritonic\nimporttriton\nfrom x import y\n"));
  EXPECT_FALSE(evaluator::IsTriton("x triton\nimport" + std::string(1'000'000, ' ') + "y"));
}

TEST_F(TritonFormTest, AKernelIsJudgedAndTimed) {
  const KernelEvaluation evaluation = JudgeAffine(kTriton);
  EXPECT_EQ(evaluation.verdict, "correct") << evaluation.diagnosis;
  EXPECT_GT(evaluation.seconds, 2e-6);  // 12 MiB
  EXPECT_LT(evaluation.seconds, 2e-5);
}

TEST_F(TritonFormTest, StylesOfLaunches) {
  const std::string autotuned =
      "@triton.autotune(configs=[triton.Config({'BLOCK': 512}, num_warps=2), triton.Config({'BLOCK': 128})], "
      "key=['n'])\n";
  for (const std::string& source : {
           Edited(Edited(kTriton, "@triton.jit", autotuned + "@triton.jit"), ", BLOCK=256", ""),
           // Two launches over views, shapes in place of the scalar, torch's own names.
           Edited(kTriton, "    affine[lambda meta: (triton.cdiv(n, meta[\"BLOCK\"]),)](x, y, out, n, BLOCK=256)\n",
                  "    assert x.is_cuda and x.dtype == torch.float32 and out.is_contiguous()\n"
                  "    half = x.numel() // 2\n"
                  "    for part in (slice(0, half), slice(half, None)):\n"
                  "        a, b, c = x[part], y[part], out[part]\n"
                  "        if a.shape[0] == 0:\n            continue\n"
                  "        with torch.cuda.device(x.device):\n"
                  "            affine[(triton.cdiv(a.numel(), 128), 1)](a, b, c, a.numel(), BLOCK=128, num_warps=2)\n"),
           Edited(kTriton, "BLOCK=256)", "BLOCK=min(4096, triton.next_power_of_2(n)))"),
       }) {
    const KernelEvaluation evaluation = JudgeAffine(source);
    EXPECT_EQ(evaluation.verdict, "correct") << evaluation.diagnosis << source;
  }
}

// Each size's kernel is another one, and all define the same names: libdevice's strings, vprintf, another function.
TEST_F(TritonFormTest, NamesThatSeveralKernelsDefine) {
  const std::string root = Edited(kTriton, "2.0 * tl.load(x + at, mask=mask)",
                                  "tl.sqrt(4.0 + 0 * at) * tl.math.rsqrt(1.0 + 0 * at) * tl.load(x + at, mask=mask)");
  EXPECT_EQ(JudgeAffine(root).verdict, "correct") << JudgeAffine(root).diagnosis;
  // A name that is an instruction's, and one that the next kernel's number would make.
  const std::string add = Edited(Edited(kTriton, "def affine", "def add"), "    affine[", "    add[");
  EXPECT_EQ(JudgeAffine(add).verdict, "correct") << JudgeAffine(add).diagnosis;
  const std::string prints = Edited(kTriton, "    tl.store(", "    tl.device_print(\"at\", at)\n    tl.store(");
  EXPECT_EQ(JudgeAffine(prints).verdict, "not_timed") << JudgeAffine(prints).diagnosis;
}

// A sum over lanes is stored by all of them: no race.
TEST_F(TritonFormTest, Reductions) {
  const std::string sums = std::string(kTritonImports) + R"(@triton.jit
def sums(x, out, WIDTH: tl.constexpr):
    row = tl.program_id(0)
    value = tl.load(x + row * WIDTH + tl.arange(0, WIDTH))
    tl.store(out + row, tl.sum(value, axis=0))


def launch(x, out, rows):
    sums[(rows,)](x, out, WIDTH=x.shape[1], num_warps=2)
)";
  const KernelEvaluation evaluation = Judge(*row_sum_, sums);
  EXPECT_EQ(evaluation.verdict, "correct") << evaluation.diagnosis;
  const KernelEvaluation atomics = Judge(*row_sum_, Edited(sums, "tl.store(out + row, tl.sum(value, axis=0))",
                                                           "tl.atomic_add(out + row, tl.sum(value, axis=0))"));
  EXPECT_NE(atomics.verdict, "correct") << "out is not zero before";
}

TEST_F(TritonFormTest, FaultsAreFoundInTheLinesOfTheFile) {
  const KernelEvaluation beyond = JudgeAffine(Edited(kTriton, ", mask=mask)\n\n", ")\n\n"));
  EXPECT_EQ(beyond.verdict, "out_of_bounds") << beyond.diagnosis;
  EXPECT_NE(beyond.diagnosis.find("kernel.py:10"), std::string::npos) << beyond.diagnosis;
  EXPECT_EQ(JudgeAffine(Edited(kTriton, "2.0 *", "2.01 *")).verdict, "wrong");
  EXPECT_EQ(JudgeAffine(Edited(kTriton, "triton.cdiv(n, meta[\"BLOCK\"])", "n // meta[\"BLOCK\"]")).verdict, "wrong");
}

TEST_F(TritonFormTest, WhatALaunchFunctionMayNotDoIsNamed) {
  const auto with = [](const std::string& line) {
    return Edited(kTriton, "(x, y, out, n):\n", "(x, y, out, n):\n    " + line + "\n");
  };
  const std::pair<const char*, const char*> refused[] = {
      {"z = x + y", "tensor arithmetic"},
      {"z = torch.empty(n)", "torch.empty"},
      {"z = x.sum()", "torch.Tensor.sum"},
      {"z = x[0].item()", "torch.Tensor.item"},
      {"z = torch.nn.functional.relu(x)", "torch.nn.functional.relu"},
      {"z = x == y", "__eq__"},
      {"z = 2 ** x", "__rpow__"},
      {"z = x.view(torch.int32)", "view() as another dtype"},
  };
  for (const auto& [line, name] : refused) {
    const KernelEvaluation evaluation = JudgeAffine(with(line));
    EXPECT_EQ(evaluation.verdict, "unsupported") << line << evaluation.diagnosis;
    EXPECT_NE(evaluation.diagnosis.find(name), std::string::npos) << evaluation.diagnosis;
  }
  const std::pair<std::string, const char*> wrong[] = {
      {with("raise ValueError('no')"), "kernel.py:14: ValueError: no"},
      {with("x[n]"), "IndexError"},
      {with("x[0, 0]"), "IndexError"},
      {Edited(kTriton, "(triton.cdiv(n, meta[\"BLOCK\"]),)", "(n / meta[\"BLOCK\"] + 1,)"), "TypeError"},
      {std::string(kTritonImports) + kTritonKernel, "defines no function launch(x, y, out, n)"},
      {Edited(kTriton, "launch(x, y, out, n)", "launch(x, out, n)"), "the problem calls launch(x, y, out, n)"},
      {with("import no_such_module"), "kernel.py:14: ModuleNotFoundError"},
      {kTriton + "def (\n", "kernel.py:15: SyntaxError"},
      {Edited(kTriton, "2.0 * tl.load", "2.0 * tl.lod"), "lod"},
  };
  for (const auto& [source, words] : wrong) {
    const KernelEvaluation evaluation = JudgeAffine(source);
    EXPECT_EQ(evaluation.verdict, "not_compiled") << words << evaluation.diagnosis;
    EXPECT_NE(evaluation.diagnosis.find(words), std::string::npos) << evaluation.diagnosis;
  }
}

TEST_F(TritonFormTest, WithoutALaunchTheVerdictIsNoLaunch) {
  EXPECT_EQ(JudgeAffine(Edited(kTriton, "(x, y, out, n):\n", "(x, y, out, n):\n    return\n")).verdict, "no_launch");
}

// A process that forges what the recorder writes, writes elsewhere, or ends as a broken sandbox would.
TEST_F(TritonFormTest, APythonThatMisbehavesIsTheCandidates) {
  const std::string elsewhere = testing::TempDir() + "/kgrpo_triton_" + std::to_string(getpid());
  for (const std::string& line : {
           std::string("import os; os.write(3, b'extern \"C\" void launch() {}'); os._exit(0)"),
           std::string("import os; os._exit(0)"),
           std::string("import os; os._exit(125)"),
           std::string("import os; os.kill(os.getpid(), 9)"),
           "open('" + elsewhere + "', 'w').write('x'); import os; os._exit(0)",
           std::string("import os; os.truncate(3, 1 << 28); os._exit(0)"),
       }) {
    const KernelEvaluation evaluation =
        JudgeAffine(Edited(kTriton, "(x, y, out, n):\n", "(x, y, out, n):\n    " + line + "\n"));
    EXPECT_EQ(evaluation.verdict, "not_compiled") << line << evaluation.diagnosis;
  }
  EXPECT_FALSE(std::filesystem::exists(elsewhere));
  ExpectReferenceIsCorrect();
}

TEST_F(TritonFormTest, Views) {
  for (const char* body : {
           "    for a, b, c in ((x.view(-1, 1).t().squeeze(0), y.unsqueeze(0)[0], out[None, :].reshape(-1)),):\n"
           "        affine[(triton.cdiv(n, 64),)](a, b, c, n, BLOCK=64)\n",
           "    wide = x.expand(3, -1)\n    assert wide.shape == (3, n) and wide.stride() == (0, 1)\n"
           "    affine[(triton.cdiv(n, 64),)](wide[2], y, out, wide.size(1), BLOCK=64)\n",
           "    assert x[..., -1].shape == () and x[::2].stride(0) == 2 and x[n:].numel() == 0\n"
           "    affine[(triton.cdiv(n, 64),)](x, y, out, n, BLOCK=64)\n",
       }) {
    const KernelEvaluation evaluation =
        JudgeAffine(std::string(kTritonImports) + kTritonKernel + "def launch(x, y, out, n):\n" + body);
    EXPECT_EQ(evaluation.verdict, "correct") << body << evaluation.diagnosis;
  }
}

// A float32 scalar stands in the table by its name, since cases draw others; nothing may be computed from it.
TEST_F(TritonFormTest, FloatingScalars) {
  const OpenProblem swiglu(std::string(KGRPO_SOURCE_DIR) + "/problems/swiglu", cache_directory_);
  const std::string kernel = std::string(kTritonImports) + R"(@triton.jit
def swiglu(gate, up, residual, out, scale, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    g = tl.load(gate + at, mask=at < n)
    value = tl.maximum(scale * g * tl.sigmoid(g) * tl.load(up + at, mask=at < n), -4.0)
    tl.store(out + at, value + tl.load(residual + at, mask=at < n), mask=at < n)


def launch(gate, up, residual, out, scale, n):
    swiglu[(triton.cdiv(n, 1024),)](gate, up, residual, out, scale, n, BLOCK=1024)
)";
  EXPECT_EQ(Judge(swiglu, kernel).verdict, "correct") << Judge(swiglu, kernel).diagnosis;
  const KernelEvaluation computed =
      Judge(swiglu, Edited(kernel, "out, scale, n, BLOCK=1024", "out, scale * 1, n, BLOCK=1024"));
  EXPECT_EQ(computed.verdict, "unsupported") << computed.diagnosis;
}

// On h100 and h200 Triton uses instructions that are not interpreted.
TEST_F(TritonFormTest, ProductsAreTimedWhereTheirInstructionsAreKnown) {
  const OpenProblem matmul(std::string(KGRPO_SOURCE_DIR) + "/problems/matmul", cache_directory_);
  const std::string product = std::string(kTritonImports) + R"(@triton.jit
def product(a, b, out, M, N, K, BLOCK: tl.constexpr):
    m = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    n = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for first in range(0, K, BLOCK):
        k = first + tl.arange(0, BLOCK)
        x = tl.load(a + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
        y = tl.load(b + k[:, None] * N + n[None, :], mask=(k[:, None] < K) & (n[None, :] < N), other=0.0)
        total = tl.dot(x, y, total, input_precision="tf32x3")
    tl.store(out + m[:, None] * N + n[None, :], total, mask=(m[:, None] < M) & (n[None, :] < N))


def launch(a, b, out, m, n, k):
    product[(triton.cdiv(m, 32), triton.cdiv(n, 32))](a, b, out, m, n, k, BLOCK=32)
)";
  const KernelEvaluation h100 = Judge(matmul, product);
  EXPECT_EQ(h100.verdict, "not_timed") << h100.diagnosis;
  KernelEvaluator::Options options;
  options.python = KGRPO_TEST_PYTHON;
  options.device = "rtx4090";
  const KernelEvaluation ada = KernelEvaluator(options).Evaluate(matmul, product, 1, false);
  EXPECT_EQ(ada.verdict, "correct") << ada.diagnosis;
}

class TritonWithoutPythonTest : public KernelEvaluatorTest {};

TEST_F(TritonWithoutPythonTest, APythonThatIsNamedAndBrokenIsAnError) {
  KernelEvaluator::Options options;
  options.python = "/no/such/python";
  KernelEvaluator evaluator(options);
  EXPECT_THAT(test::MessageOf([&] { evaluator.Evaluate(*affine_, kTriton, 1, false); }),
              testing::HasSubstr("options.python: /no/such/python cannot be run"));
  options.python = "/bin/true";
  KernelEvaluator of_true(options);
  EXPECT_THAT(test::MessageOf([&] { of_true.Evaluate(*affine_, kTriton, 1, false); }),
              testing::HasSubstr("options.python: /bin/true is no Python"));
}

}  // namespace
}  // namespace kgrpo::evaluator_sim
