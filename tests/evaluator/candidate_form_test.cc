// Candidates in PyTorch's and in TVM-FFI's form: recognising a source's form, refusals, and calls of compiled
// candidates in TVM-FFI's. The calls need no GPU: their host code writes host memory that stands for the device's.
// Candidates in PyTorch's form are judged in candidate_form_sim_test.cc.
#include <dlfcn.h>
#include <unistd.h>

#include "../processor_time.h"
#include "judge/compile/candidate_form.h"
#include "judge/compile/compiler.h"
#include "judge/compile/source_policy.h"
#include "test.h"

namespace kgrpo::evaluator {
namespace {

TEST(CandidateForm, IsToldByWhatTheSourceDefines) {
  EXPECT_EQ(FormOf("extern \"C\" void launch(float* x) {}"), CandidateForm::kLaunch);
  EXPECT_EQ(FormOf("torch::Tensor forward(torch::Tensor x) { return x; }"), CandidateForm::kTorch);
  EXPECT_EQ(FormOf("std::vector<at::Tensor> forward(const at::Tensor& x) {}"), CandidateForm::kTorch);
  EXPECT_EQ(FormOf("TVM_FFI_DLL_EXPORT_TYPED_FUNC(run, Run);"), CandidateForm::kTvmFfi);
  EXPECT_EQ(FormOf("extern \"C\" int __tvm_ffi_run(void*, const TVMFFIAny*, int, TVMFFIAny*) {}"),
            CandidateForm::kTvmFfi);
  EXPECT_EQ(FormOf("// a table\n.version 8.0\n.entry launch() { ret; }"), CandidateForm::kPtx);
}

TEST(CandidateForm, IsNotToldByCommentsStringsOrOtherFunctions) {
  EXPECT_EQ(FormOf("// torch::Tensor forward(torch::Tensor x)\nvoid launch() {}"), CandidateForm::kLaunch);
  EXPECT_EQ(FormOf("const char* text = \"torch::Tensor forward(\";"), CandidateForm::kLaunch);
  EXPECT_EQ(FormOf("/* TVM_FFI_DLL_EXPORT_TYPED_FUNC(a, b) */ void forward(int x) {}"), CandidateForm::kLaunch);
  EXPECT_EQ(FormOf("int at; void f() { at = 1; }\nfloat forward(float x) { return x; }"), CandidateForm::kLaunch);
}

TEST(CandidateForm, IsToldAtOnceOfSourcesMadeToBeSlow) {
  const auto form = [](size_t size) {
    std::string nested = "#include <torch/extension.h>\n";
    for (size_t i = 0; i < size; ++i) nested += "f(";
    EXPECT_EQ(FormOf(nested), CandidateForm::kTorch);
  };
  test::ExpectLinear([&] { form(1 << 15); }, [&] { form(1 << 17); }, "nested calls");
}

TEST(CandidateForm, OpensItsOwnHeadersAlone) {
  EXPECT_EQ(CheckIncludes("#include <torch/extension.h>\n", {}, CandidateForm::kTorch).why, "");
  EXPECT_EQ(CheckIncludes("#include <c10/cuda/CUDAStream.h>\n", {}, CandidateForm::kTorch).why, "");
  EXPECT_EQ(CheckIncludes("#include <tvm/ffi/function.h>\n", {}, CandidateForm::kTvmFfi).why, "");
  EXPECT_NE(CheckIncludes("#include <torch/extension.h>\n", {}).why, "");
  EXPECT_NE(CheckIncludes("#include <tvm/ffi/function.h>\n", {}, CandidateForm::kTorch).why, "");
  EXPECT_NE(CheckIncludes("#include <torch/../../etc/passwd>\n", {}, CandidateForm::kTorch).why, "");
  EXPECT_NE(CheckIncludes("#include <cublas_v2.h>\n", {}, CandidateForm::kTorch).why, "");
}

TEST(CandidateForm, MayNotLookFunctionsUp) {
  EXPECT_EQ(CheckFormSymbols({"cudaMallocAsync", "TVMFFIErrorSetRaised"}), "");
  for (const char* symbol : {"cuptiSubscribe", "TVMFFIFunctionGetGlobal"})
    EXPECT_THAT(CheckFormSymbols({symbol}), HasSubstr("not allowed")) << symbol;
}

TEST(CandidateForm, NamesWhatTorchLacks) {
  EXPECT_THAT(MissingOfTorch("kernel.cu(3): error: namespace \"torch\" has no member \"matmul\"\n"),
              HasSubstr("PyTorch's torch::matmul,"));
  EXPECT_THAT(MissingOfTorch("kernel.cu(3): error: class \"at::Tensor\" has no member \"mean\""),
              HasSubstr("PyTorch's at::Tensor::mean,"));
  EXPECT_EQ(MissingOfTorch("kernel.cu(3): error: identifier \"y\" is undefined"), "");
  EXPECT_THAT(
      MissingOfTorch("| kernel.cu(7): error: no operator \"/\" matches these operands\n|             operand types "
                     "are: at::Tensor / int64_t\n|     return y / n;"),
      HasSubstr("PyTorch's operator / of tensors,"));
  EXPECT_EQ(
      MissingOfTorch("| kernel.cu(7): error: no operator \"/\" matches these operands\n| operand types are: S / int"),
      "");
  // Only the first error counts.
  EXPECT_EQ(MissingOfTorch("kernel.cu(3): error: expected a \";\"\nkernel.cu(9): error: namespace \"torch\" has no "
                           "member \"matmul\""),
            "");
}

TEST(CandidateForm, FindsTheFunctionOfTensors) {
  Problem problem;
  const std::string two =
      "torch::Tensor helper(torch::Tensor x) { return x; }\ntorch::Tensor outer(torch::Tensor x) { return helper(x); "
      "}\n";
  EXPECT_EQ(TensorFunctionOf(two, problem), "outer");
  EXPECT_EQ(TensorFunctionOf(two + "PYBIND11_MODULE(n, m) { m.def(\"forward\", &helper, \"\"); }", problem), "helper");
  EXPECT_EQ(TensorFunctionOf(two + "at::Tensor forward(at::Tensor x) { return x; }", problem), "forward");
  problem.entry = "gelu";
  EXPECT_EQ(TensorFunctionOf(two + "void gelu(torch::Tensor x) { }", problem), "gelu");
  EXPECT_EQ(TensorFunctionOf("#include <torch/types.h>\nBIND(gelu)\n", problem), "gelu");  // by a macro
  EXPECT_EQ(WithoutTorchHeaders("#include <torch/extension.h>\n#include <vector>\n"),
            "                            \n#include <vector>\n");
}

TEST(CandidateForm, IncludesTheStandardHeadersItUses) {
  const std::string form = "#include <kgrpo/torch_form.h>\n#line 1 \"kernel.cu\"\n";
  EXPECT_EQ(FormPrologue(CandidateForm::kTorch, "int map; // std::set\nstd::vector<int> set;"), form);
  EXPECT_EQ(FormPrologue(CandidateForm::kTorch, "std::map<int, int> a;\n#define PRINT std::cout"),
            "#include <iostream>\n#include <map>\n" + form);
  EXPECT_EQ(FormPrologue(CandidateForm::kTorch, "using namespace std;\nset<int> a;"), "#include <set>\n" + form);
}

// Compiles candidates for the problem affine: out[i] = 2 x[i] + y[i].
class CompiledForm : public testing::Test {
 protected:
  void SetUp() override {
    compiler_ = std::make_unique<Compiler>(
        toolkit_, sandbox_, helpers_,
        Compiler::Options{
            .route = CompileRoute::kNvcc, .seconds = 200, .library_directory = helpers_, .tvm_ffi = tvm_ffi_});
  }

  CompileOutcome Compile(const std::string& source) { return compiler_->Compile(problem_, source, true); }

  // Runs kgrpo_call on host memory with x = {1, 2, 3} and y = {10, 20, 30}, and ends the process: with 0 where the
  // outputs are right, with 71 where not.
  static void CallAndExit(const CompiledKernel& kernel) {
    const std::string file = testing::TempDir() + "/candidate_" + std::to_string(getpid()) + ".so";
    std::ofstream(file, std::ios::binary) << kernel.object;
    void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    std::filesystem::remove(file);
    if (library == nullptr) std::fprintf(stderr, "%s\n", dlerror()), _exit(70);
    const auto call = reinterpret_cast<void (*)(void**)>(dlsym(library, "kgrpo_call"));
    float x_values[] = {1, 2, 3}, y_values[] = {10, 20, 30}, out_values[] = {-1, -1, -1};
    float *x = x_values, *y = y_values, *out = out_values;
    int n = 3;
    int64_t extents[] = {3, 3, 3};
    void* arguments[] = {&x, &y, &out, &n, &extents[0], &extents[1], &extents[2]};
    call(arguments);
    _exit(out[0] == 12 && out[1] == 24 && out[2] == 36 ? 0 : 71);
  }

  // Requires the exit code of a call, in a process of its own.
  void ExpectExit(const std::string& source, int code) {
    const CompileOutcome outcome = Compile(source);
    ASSERT_TRUE(outcome.Succeeded()) << outcome.verdict << ": " << outcome.diagnosis;
    EXPECT_TRUE(UsesFormLibraries(outcome.kernel));
    GTEST_FLAG_SET(death_test_style, "fast");
    EXPECT_EXIT(CallAndExit(outcome.kernel), testing::ExitedWithCode(code), "");
  }

  const std::string helpers_ = FindHelperDirectory();
  const CudaToolkit toolkit_ = CudaToolkit::Find();
  const Sandbox sandbox_{SandboxMode::kAuto, helpers_, toolkit_.readable};
  const Problem problem_ = LoadProblem(std::string(KGRPO_SOURCE_DIR) + "/tests/evaluator/problems/affine");
  const TvmFfi tvm_ffi_ = TvmFfi::Find("");
  std::unique_ptr<Compiler> compiler_;
};

std::string TvmFfiSource(const std::string& parameters, const std::string& check) {
  return "#include <tvm/ffi/container/tensor.h>\n#include <tvm/ffi/error.h>\n#include <tvm/ffi/function.h>\n"
         "using tvm::ffi::TensorView;\nvoid Affine(TensorView x, TensorView y, TensorView out" +
         parameters + ") {\n" + check +
         "  for (int64_t i = 0; i < x.size(0); ++i)\n    static_cast<float*>(out.data_ptr())[i] = 2 * "
         "static_cast<float*>(x.data_ptr())[i] + static_cast<float*>(y.data_ptr())[i];\n}\n"
         "TVM_FFI_DLL_EXPORT_TYPED_FUNC(affine, Affine)\n#define int32_t broken\n#define Run broken\n";
}

TEST_F(CompiledForm, PtxIsForEvaluatorsThatTakeIt) {
  const CompileOutcome outcome = Compile("// kgrpo launch: entry=k grid=1 block=1 args=()\n.version 8.0\n");
  EXPECT_EQ(outcome.verdict, "unsupported");
  EXPECT_THAT(outcome.diagnosis, HasSubstr("judged without a GPU, by evaluator_sim"));
}

TEST_F(CompiledForm, OfTvmFfiIsCalledWithAndWithoutScalars) {
  if (tvm_ffi_.folder.empty()) GTEST_SKIP() << "set KGRPO_TVM_FFI to the folder of apache-tvm-ffi to test its form";
  ExpectExit(TvmFfiSource("", "  TVM_FFI_ICHECK_EQ(x.ndim(), 1);\n"), 0);
  ExpectExit(TvmFfiSource(", int64_t n", "  TVM_FFI_ICHECK_EQ(n, 3);\n"), 0);
  ExpectExit(TvmFfiSource("", "  TVM_FFI_ICHECK_EQ(x.ndim(), 2);\n"), 96);
  ExpectExit(TvmFfiSource(", int64_t n, int64_t m", ""), 96);
}

TEST_F(CompiledForm, IsUnsupportedWhereItsLibraryOrAGpuIsMissing) {
  Compiler without_gpu(toolkit_, sandbox_, helpers_,
                       {.route = CompileRoute::kNvcc, .seconds = 60, .library_directory = helpers_});
  const std::string tvm_ffi = TvmFfiSource("", "");
  const CompileOutcome outcome = without_gpu.Compile(problem_, tvm_ffi, true);
  EXPECT_EQ(outcome.verdict, "unsupported");
  EXPECT_THAT(outcome.diagnosis, HasSubstr("evaluator_cuda"));
  Compiler without_library(
      toolkit_, sandbox_, helpers_,
      {.route = CompileRoute::kNvcc, .seconds = 60, .library_directory = helpers_, .tvm_ffi = TvmFfi()});
  EXPECT_THAT(without_library.Compile(problem_, tvm_ffi, true).diagnosis, HasSubstr("KGRPO_TVM_FFI"));
}

}  // namespace
}  // namespace kgrpo::evaluator
