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

TEST(TritonForm, IsKnownByItsImportAndItsLaunch) {
  EXPECT_TRUE(evaluator::IsTriton(kTriton));
  EXPECT_TRUE(evaluator::IsTriton("from triton import jit\ndef launch(x):\n  pass\n"));
  EXPECT_FALSE(evaluator::IsTriton("// import triton\nvoid launch() {}\n"));
  EXPECT_FALSE(evaluator::IsTriton(kTritonImports));
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
  const std::string body = "    affine[(triton.cdiv(n, 256),)](x, y, out, n, BLOCK=256)\n";
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

// A sum over lanes is stored by all of them, with bits that may differ: no race.
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
  };
  for (const auto& [line, name] : refused) {
    const KernelEvaluation evaluation = JudgeAffine(with(line));
    EXPECT_EQ(evaluation.verdict, "unsupported") << line << evaluation.diagnosis;
    EXPECT_NE(evaluation.diagnosis.find(name), std::string::npos) << evaluation.diagnosis;
  }
  const std::pair<std::string, const char*> wrong[] = {
      {with("raise ValueError('no')"), "kernel.py:14: ValueError: no"},
      {with("open('/etc/kgrpo', 'w')"), "kernel.py:14"},
      {with("return"), "launches no kernel"},
      {kTriton + "def (\n", "kernel.py:15: SyntaxError"},
      {Edited(kTriton, "2.0 * tl.load", "2.0 * tl.lod"), "lod"},
  };
  for (const auto& [source, words] : wrong) {
    const KernelEvaluation evaluation = JudgeAffine(source);
    EXPECT_EQ(evaluation.verdict, "not_compiled") << words << evaluation.diagnosis;
    EXPECT_NE(evaluation.diagnosis.find(words), std::string::npos) << evaluation.diagnosis;
  }
}

TEST_F(TritonFormTest, APythonThatIsNamedAndBrokenIsAnError) {
  KernelEvaluator::Options options;
  options.python = "/no/such/python";
  KernelEvaluator evaluator(options);
  EXPECT_THAT(test::MessageOf([&] { evaluator.Evaluate(*affine_, kTriton, 1, false); }),
              testing::HasSubstr("options.python: /no/such/python cannot be run"));
}

}  // namespace
}  // namespace kgrpo::evaluator_sim
