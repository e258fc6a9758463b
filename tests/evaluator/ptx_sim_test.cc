// Candidates in PTX's form, judged by the interpreter: what nvcc makes of shipped references, broken kernels, and
// launch tables with mistakes.
#include "affine_candidates.h"
#include "judge/compile/candidate_form.h"
#include "judge/compile/cuda_toolkit.h"
#include "kernel_evaluator_fixture.h"
#include "process/subprocess.h"
#include "test.h"

namespace kgrpo::evaluator_sim {
namespace {

constexpr char kTable[] = "// kgrpo launch: entry=k grid=(ceil_div(n, 256)) block=(256) args=(x, y, out, n)\n";

// The affine map, as a person writes it: no line information.
std::string HandWritten(const std::string& guard = "setp.ge.s32 %p1, %r1, %r2;") {
  return R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 x, .param .u64 y, .param .u64 out, .param .u32 n) {
  .reg .pred %p<2>;
  .reg .b32 %r<6>;
  .reg .b64 %rd<9>;
  .reg .f32 %f<4>;
  ld.param.u32 %r2, [n];
  mov.u32 %r3, %ctaid.x;
  mov.u32 %r4, %ntid.x;
  mov.u32 %r5, %tid.x;
  mad.lo.s32 %r1, %r3, %r4, %r5;
  )" + guard +
         R"(
  @%p1 bra done;
  ld.param.u64 %rd1, [x];
  ld.param.u64 %rd2, [y];
  ld.param.u64 %rd3, [out];
  mul.wide.s32 %rd4, %r1, 4;
  add.s64 %rd5, %rd1, %rd4;
  add.s64 %rd6, %rd2, %rd4;
  add.s64 %rd7, %rd3, %rd4;
  ld.global.f32 %f1, [%rd5];
  ld.global.f32 %f2, [%rd6];
  fma.rn.f32 %f3, %f1, 0f40000000, %f2;
  st.global.f32 [%rd7], %f3;
done:
  ret;
}
)";
}

class PtxFormTest : public KernelEvaluatorTest {
 protected:
  // What `nvcc -ptx` makes of a source, and its entries' names in order.
  static std::string PtxOf(const std::string& source, std::vector<std::string>* entries) {
    const std::string file = cache_directory_ + "/source.cu";
    std::ofstream(file) << source;
    const evaluator::CudaToolkit toolkit = evaluator::CudaToolkit::Find();
    const process::Subprocess::Result result = process::Subprocess::Run(
        {.argv = {toolkit.nvcc, "-ptx", "-lineinfo", "-arch=compute_90", "-std=c++17", file, "-o", file + ".ptx"}}, 60,
        1 << 20);
    EXPECT_TRUE(result.Succeeded()) << result.output;
    std::ifstream ptx(file + ".ptx");
    const std::string text((std::istreambuf_iterator<char>(ptx)), {});
    const std::regex entry("\\.entry (\\w+)");
    for (std::sregex_iterator it(text.begin(), text.end(), entry), end; it != end; ++it)
      entries->push_back((*it)[1].str());
    return text;
  }
  // The same with a table: `rest` holds what follows "entry=NAME" for each kernel whose name contains the first part.
  static std::string WithTable(const std::string& source, const std::vector<std::array<std::string, 2>>& launches) {
    std::vector<std::string> entries;
    const std::string ptx = PtxOf(source, &entries);
    std::string table;
    for (const auto& [name, rest] : launches) {
      for (const std::string& entry : entries) {
        if (entry.find(std::to_string(name.size()) + name) != std::string::npos)
          table += "// kgrpo launch: entry=" + entry + " " + rest + "\n";
      }
    }
    return table + ptx;
  }
  static void ExpectVerdict(const std::string& source, const std::string& verdict, const std::string& words = "") {
    const KernelEvaluation evaluation = Affine(source);
    EXPECT_EQ(evaluation.verdict, verdict) << evaluation.diagnosis << "\n" << source.substr(0, 200);
    EXPECT_THAT(evaluation.diagnosis, HasSubstr(words));
  }
  static std::string AffineWithBody(const std::string& body) {
    return WithTable(evaluator::WithKernel(body), {{"k", "grid=(ceil_div(n, 256)) block=(256) args=(x, y, out, n)"}});
  }
};

TEST_F(PtxFormTest, ReferencesHaveTheTimesOfTheirSources) {
  const std::string tiles = "grid=((cols + 15) / 16, (rows + 15) / 16) block=(16, 16) args=(x, out, rows, cols)";
  const std::string rows = "grid=((rows + 7) / 8) block=(256) ", of_n = "grid=ceil_div(n, 256) block=256 args=";
  const struct {
    const char* problem;
    std::vector<std::array<std::string, 2>> launches;
  } shipped[] = {
      {"transpose", {{"transpose_kernel", tiles}}},
      {"matmul", {{"matmul_kernel", "grid=((n + 15) / 16, (m + 15) / 16) block=(16, 16) args=(a, b, out, m, n, k)"}}},
      {"layer_norm", {{"moments_kernel", rows + "args=(x, gamma, beta, out, rows, cols, epsilon)"}}},
      {"dot_product",
       {{"reduce_kernel", "grid=(min(ceil_div(n, 256), 1024)) block=(256) args=(a, b, out, n)"},
        {"join_blocks_kernel", "grid=1 block=1 args=(a, b, out, n, min(ceil_div(n, 256), 1024))"}}},
      {"swiglu",
       {{"silu_kernel", of_n + "(gate, out, n)"},
        {"up_kernel", of_n + "(up, out, n)"},
        {"scale_kernel", of_n + "(out, scale, n)"},
        {"floor_kernel", of_n + "(out, n)"},
        {"residual_kernel", of_n + "(residual, out, n)"}}}};
  for (const auto& [problem, launches] : shipped) {
    SCOPED_TRACE(problem);
    const OpenProblem open(std::string(KGRPO_SOURCE_DIR) + "/problems/" + problem, cache_directory_);
    const KernelEvaluation cuda = evaluator_->Evaluate(open, open.problem.reference_source, 1, true);
    const KernelEvaluation ptx =
        evaluator_->Evaluate(open, WithTable(open.problem.reference_source, launches), 1, true);
    EXPECT_EQ(cuda.verdict, "correct") << cuda.diagnosis;
    EXPECT_EQ(ptx.verdict, "correct") << ptx.diagnosis;
    EXPECT_NEAR(ptx.seconds, cuda.seconds, cuda.seconds * 0.01);
    const auto registers = [](const KernelEvaluation& of) {
      return std::find_if(of.metrics.begin(), of.metrics.end(), [](const auto& m) { return m.first == "registers"; })
          ->second;
    };
    EXPECT_NEAR(registers(ptx), registers(cuda), 4);
    std::printf("%-12s .cu %.3f us, PTX %.3f us, registers %g and %g\n", problem, cuda.seconds * 1e6, ptx.seconds * 1e6,
                registers(cuda), registers(ptx));
  }
}

// As CuTe DSL passes a tensor of dynamic shape: its pointer and its extent.
TEST_F(PtxFormTest, AStructIsAListOfItsWords) {
  std::string kernel = HandWritten();
  kernel.replace(kernel.find(".param .u64 x"), 13, ".param .align 8 .b8 x[16]");
  kernel.replace(kernel.find("[n]"), 3, "[x+8]");
  const std::string table = "// kgrpo launch: entry=k grid=(ceil_div(n, 256)) block=(256) args=";
  ExpectVerdict(table + "((x, n), y, out, 0)\n" + kernel, "correct");
  ExpectVerdict(table + "(x, y, out, n)\n" + kernel, "invalid_launch", "1 words of 8 bytes");
  ExpectVerdict(table + "((x, n, 0), y, out, n)\n" + kernel, "invalid_launch", "3 words of 8 bytes");
}

TEST_F(PtxFormTest, BrokenKernelsAreFound) {
  ExpectVerdict(AffineWithBody("if (i < n) out[i] = 2.0f * x[i] - y[i];"), "wrong");
  ExpectVerdict(AffineWithBody("out[i] = 2.0f * x[i] + y[i];"), "out_of_bounds", "source.cu:1: thread");
  ExpectVerdict(AffineWithBody("__shared__ float s[257]; s[threadIdx.x] = x[min(i, n - 1)];\n"
                               "float next = s[(threadIdx.x + 1) % 256];\n"
                               "if (i < n) out[i] = 2.0f * x[i] + y[i] + next * 1e-30f;"),
                "race", "source.cu:");
  ExpectVerdict(AffineWithBody("__shared__ float s[256]; if (threadIdx.x > 0) s[threadIdx.x] = 0;\n"
                               "__syncthreads();\nif (i < n) out[i] = 2.0f * x[i] + y[i] + s[0];"),
                "uninitialised");
  ExpectVerdict(AffineWithBody("if (i < n && i % 2 == 0) out[i] = 2.0f * x[i] + y[i];"), "wrong", "never written");
  ExpectReferenceIsCorrect();
}

TEST_F(PtxFormTest, LinesAreOfThePtxWhereNothingElseIsKnown) {
  ExpectVerdict(kTable + HandWritten(), "correct");
  ExpectVerdict("/* a\n comment */ " + std::string(kTable) + HandWritten(), "invalid_launch", "no launch table");
  ExpectVerdict(kTable + HandWritten("setp.gt.s32 %p1, %r1, %r2;"), "out_of_bounds",
                "kernel.ptx:24: thread (232,0,0) of block (3,0,0) reads");
  // A branch that no size takes.
  const std::string never =
      "setp.gt.s32 %p1, %r1, 900000000;\n  @%p1 bra far;\n  bra near;\nfar:\n  mov.u32 %r1, 7;\n  add.s32 %r1, %r1, "
      "1;\n"
      "near:\n  setp.ge.s32 %p1, %r1, %r2;";
  ExpectVerdict(kTable + HandWritten(never), "correct", "Not judged: lines kernel.ptx:19-20, which no size reaches");
}

TEST_F(PtxFormTest, PlacesWithinLibrariesAreFollowedToTheirCalls) {
  // A function of a library that calls another one, as Triton's standard.py does: ptxas demands that a .loc names the
  // caller before one that is inlined there.
  const std::string loc =
      ".loc 1 68 5\n  .loc 2 314 9, function_name $L__info0, inlined_at 1 68 5\n"
      "  .loc 2 287 3, function_name $L__info0, inlined_at 2 314 9\n  setp.gt.s32 %p1, %r1, %r2;";
  const std::string files =
      ".file 1 \"/home/a/add.py\"\n.file 2 \"/opt/lib/python3/site-packages/triton/language/standard.py\"\n";
  ExpectVerdict(kTable + HandWritten(loc) + files + ".section .debug_str\n{\n$L__info0:\n.b8 97\n.b8 0\n}\n",
                "out_of_bounds", "kernel 'k', add.py:68: thread");
}

TEST_F(PtxFormTest, TheTableMayNameWhatTheProblemHas) {
  const auto with = [](const std::string& table) { return "// kgrpo launch: " + table + "\n" + HandWritten(); };
  // Byte offsets, a launch for each half, and one that is for other sizes.
  ExpectVerdict(with("entry=k grid=(ceil_div(n / 2, 128), 1, 1) block=(128, 1, 1) shared=0 args=(x, y, out, n / 2)\n"
                     "//kgrpo launch: entry=k grid=(ceil_div(n - n / 2, 64)) block=64 cooperative=1 "
                     "args=(x + 4 * (n / 2), y + 4 * (n / 2), out + 4 * (n / 2), n - n / 2)\n"
                     "  //  kgrpo launch: at=(n=3) entry=k grid=1 block=1 args=(0, 0, 0, 1)"),
                "invalid_launch", "a dimension is 0");  // n = 1
  ExpectVerdict(with("entry=k grid=(max(1, ceil_div(n / 2, 128))) block=(128, 1, 1) args=(x, y, out, n / 2)\n"
                     "// kgrpo launch: entry=k grid=(ceil_div(n - n / 2, 64)) block=64 "
                     "args=(x + 4 * (n / 2), y + 4 * (n / 2), out + 4 * (n / 2), n - n / 2)\n"
                     "// kgrpo launch: at=(n=3) entry=k grid=1 block=1 args=(0, 0, 0, 1)"),
                "correct");
  ExpectVerdict(with("at=(n=3) entry=k grid=1 block=1 args=(x, y, out, n)"), "no_launch");
}

TEST_F(PtxFormTest, MistakesOfTheTableAreToldWithTheirPlace) {
  const auto refused = [](const std::string& table, const std::string& words) {
    ExpectVerdict("// a comment\n// kgrpo launch: " + table + "\n" + HandWritten(), "invalid_launch", words);
  };
  ExpectVerdict(HandWritten(), "invalid_launch", "The PTX has no launch table");
  refused("entry=k grid=1 block=1", "kernel.ptx:2:18: the launch has no args");
  refused("entry=k grid=1 block=1 args=() size=3", "kernel.ptx:2:49: unknown key");
  refused("entry=k grid=1 grid=1 block=1 args=()", "kernel.ptx:2:33: grid is given twice");
  refused("entry=k grid=(1 block=1 args=()", "kernel.ptx:2:31: this ( is not closed");
  refused("entry=k grid=1) block=1 args=()", "kernel.ptx:2:32: this ) closes nothing");
  refused("entry=k grid= block=1 args=()", "kernel.ptx:2:30: grid has no value");
  refused("entry=k grid=(1,2,3,4) block=1 args=()", "kernel.ptx:2:31: expected 1 to 3 dimensions");
  refused("entry=k grid=(m) block=1 args=()", "kernel.ptx:2:32: ");
  refused("entry=k grid=(x) block=1 args=()", "kernel.ptx:2:32: ");
  refused("entry=k grid=(n +) block=1 args=()", "kernel.ptx:2:32: ");
  refused("entry=k grid block=1 args=()", "kernel.ptx:2:26: expected KEY=VALUE");
  refused("entry=k grid=1 block=1 at=(n) args=()", "kernel.ptx:2:45: expected NAME=VALUE");
  refused("entry=j grid=1 block=1 args=()", "kernel.ptx:2:24: the PTX has no entry 'j'");
  refused("entry=k grid=1 block=1 args=(x, y, out)", "kernel.ptx:2:46: 3 arguments, and k has 4 parameters");
  refused("entry=k grid=1 block=1 args=(x, y, out, x)",
          "kernel.ptx:2:58: x is a tensor's address, and not for the kernel's parameter n of 32-bit integer");
  refused("entry=k grid=1 block=1 args=(x, y, out, 4294967296 * n)", "kernel.ptx:2:58: 4294967296 * n is ");
  refused("entry=k grid=(n - 1000000) block=1 args=(x, y, out, n)", "kernel.ptx:2:32: n - 1000000 is -");
  refused("entry=k grid=1 block=(n / (n - n)) args=(x, y, out, n)", "kernel.ptx:2:40: ");
  refused("entry=k grid=1 block=(2048) args=(x, y, out, n)", "at most 1024 threads");
  refused("entry=k grid=1 block=1 shared=300000 args=(x, y, out, n)",
          "300000 bytes of dynamic shared memory are more than the 232448 it may use.");
  ExpectVerdict(kTable + std::string(".version 8.0\n.target sm_80\n.address_size 64\n.entry k() { frob; }\n"),
                "not_compiled", "The compiler says");
}

TEST(LaunchTable, PtxIsKnownByItsText) {
  EXPECT_TRUE(evaluator::IsPtx("// a\n/* b\n */\n\t.version 8.0\n"));
  EXPECT_FALSE(evaluator::IsPtx("// .version 8.0\n__global__ void k() {}"));
  EXPECT_FALSE(evaluator::IsPtx("// only a comment"));
  EXPECT_FALSE(evaluator::IsPtx("/* open"));
  EXPECT_FALSE(evaluator::IsPtx(""));
}

}  // namespace
}  // namespace kgrpo::evaluator_sim
