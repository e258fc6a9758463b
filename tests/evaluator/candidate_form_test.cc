// Candidates in PyTorch's and in TVM-FFI's form: recognising a source's form, refusals, and calls of compiled
// candidates. The calls need no GPU: their host code writes host memory that stands for the device's.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>

#include "evaluator_shared/candidate_form.h"
#include "evaluator_shared/compiler.h"
#include "evaluator_shared/source_policy.h"
#include "kgrpo/sdk/error.h"

namespace kgrpo::evaluator {
namespace {

using testing::HasSubstr;

TEST(CandidateForm, IsToldByWhatTheSourceDefines) {
  EXPECT_EQ(FormOf("extern \"C\" void launch(float* x) {}"), CandidateForm::kLaunch);
  EXPECT_EQ(FormOf("torch::Tensor forward(torch::Tensor x) { return x; }"), CandidateForm::kTorch);
  EXPECT_EQ(FormOf("std::vector<at::Tensor> forward(const at::Tensor& x) {}"), CandidateForm::kTorch);
  EXPECT_EQ(FormOf("TVM_FFI_DLL_EXPORT_TYPED_FUNC(run, Run);"), CandidateForm::kTvmFfi);
  EXPECT_EQ(FormOf("extern \"C\" int __tvm_ffi_run(void*, const TVMFFIAny*, int, TVMFFIAny*) {}"),
            CandidateForm::kTvmFfi);
}

TEST(CandidateForm, IsNotToldByCommentsStringsOrOtherFunctions) {
  EXPECT_EQ(FormOf("// torch::Tensor forward(torch::Tensor x)\nvoid launch() {}"), CandidateForm::kLaunch);
  EXPECT_EQ(FormOf("const char* text = \"torch::Tensor forward(\";"), CandidateForm::kLaunch);
  EXPECT_EQ(FormOf("/* TVM_FFI_DLL_EXPORT_TYPED_FUNC(a, b) */ void forward(int x) {}"), CandidateForm::kLaunch);
  EXPECT_EQ(FormOf("int at; void f() { at = 1; }\nfloat forward(float x) { return x; }"), CandidateForm::kLaunch);
}

TEST(CandidateForm, OpensItsOwnHeadersAlone) {
  EXPECT_EQ(CheckIncludes("#include <torch/extension.h>\n", {}, CandidateForm::kTorch), "");
  EXPECT_EQ(CheckIncludes("#include <c10/cuda/CUDAStream.h>\n", {}, CandidateForm::kTorch), "");
  EXPECT_EQ(CheckIncludes("#include <tvm/ffi/function.h>\n", {}, CandidateForm::kTvmFfi), "");
  EXPECT_NE(CheckIncludes("#include <torch/extension.h>\n", {}), "");
  EXPECT_NE(CheckIncludes("#include <tvm/ffi/function.h>\n", {}, CandidateForm::kTorch), "");
  EXPECT_NE(CheckIncludes("#include <torch/../../etc/passwd>\n", {}, CandidateForm::kTorch), "");
  EXPECT_NE(CheckIncludes("#include <cublas_v2.h>\n", {}, CandidateForm::kTorch), "");
}

TEST(CandidateForm, MayAllocateAndViewButNotCompute) {
  EXPECT_EQ(CheckFormSymbols({"_ZN2at4_ops10empty_like4callERKNS_6TensorE", "_ZN3c1010TensorImplD1Ev"}), "");
  EXPECT_THAT(CheckFormSymbols({"_ZN2at4_ops4relu4callERKNS_6TensorE"}), HasSubstr("operator relu"));
  EXPECT_THAT(CheckFormSymbols({"_ZN2at4_ops6matmul4callERKNS_6TensorES4_"}), HasSubstr("operator matmul"));
  for (const char* symbol : {"_ZN2at14DynamicLibraryC1EPKcS2_b", "_ZN3c1010Dispatcher9singletonEv", "cuptiSubscribe",
                             "TVMFFIFunctionGetGlobal", "aoti_torch_cpu_mm_out"})
    EXPECT_THAT(CheckFormSymbols({symbol}), HasSubstr("not allowed")) << symbol;
}

// Compiles candidates for the problem affine: out[i] = 2 x[i] + y[i].
class CompiledForm : public testing::Test {
 protected:
  void SetUp() override {
    forms_ = FormLibraries::Find("", "", helpers_);
    compiler_ = std::make_unique<Compiler>(
        toolkit_, sandbox_, helpers_,
        Compiler::Options{
            .route = CompileRoute::kNvcc, .seconds = 200, .library_directory = helpers_, .forms = forms_});
  }

  CompileOutcome Compile(const std::string& source) { return compiler_->Compile(problem_, source, true); }

  // Runs kgrpo_call on host memory with x = {1, 2, 3} and y = {first_y, 20, 30}, and ends the process: with 0 where the
  // outputs are right, with 71 where not.
  static void CallAndExit(const CompiledKernel& kernel, const std::string& torch, float first_y) {
    // As in the worker, the CUDA runtime is there before the candidate.
    if (!torch.empty()) dlopen((torch + "/../nvidia/cu13/lib/libcudart.so.13").c_str(), RTLD_NOW | RTLD_GLOBAL);
    const std::string file = testing::TempDir() + "/candidate_" + std::to_string(getpid()) + ".so";
    std::ofstream(file, std::ios::binary) << kernel.object;
    void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    std::filesystem::remove(file);
    if (library == nullptr) std::fprintf(stderr, "%s\n", dlerror()), _exit(70);
    const auto call = reinterpret_cast<void (*)(void**)>(dlsym(library, "kgrpo_call"));
    float x_values[] = {1, 2, 3}, y_values[] = {first_y, 20, 30}, out_values[] = {-1, -1, -1};
    float *x = x_values, *y = y_values, *out = out_values;
    int n = 3;
    int64_t extents[] = {3, 3, 3};
    void* arguments[] = {&x, &y, &out, &n, &extents[0], &extents[1], &extents[2]};
    call(arguments);
    _exit(out[0] == 2 + first_y && out[1] == 24 && out[2] == 36 ? 0 : 71);
  }

  // Requires for each first element of y the exit code of a call, in a process of its own.
  void ExpectExits(const std::string& source, const std::map<float, int>& codes) {
    const CompileOutcome outcome = Compile(source);
    ASSERT_TRUE(outcome.Succeeded()) << outcome.verdict << ": " << outcome.diagnosis;
    EXPECT_TRUE(UsesFormLibraries(outcome.kernel));
    GTEST_FLAG_SET(death_test_style, "fast");
    for (const auto& [first_y, code] : codes)
      EXPECT_EXIT(CallAndExit(outcome.kernel, forms_.torch, first_y), testing::ExitedWithCode(code), "") << first_y;
  }
  void ExpectExit(const std::string& source, int code) { ExpectExits(source, {{10, code}}); }

  const std::string helpers_ = FindHelperDirectory();
  const CudaToolkit toolkit_ = CudaToolkit::Find("");
  const Sandbox sandbox_{SandboxMode::kAuto, helpers_, toolkit_.readable};
  const Problem problem_ = LoadProblem(std::string(KGRPO_SOURCE_DIR) + "/tests/evaluator/problems/affine");
  FormLibraries forms_;
  std::unique_ptr<Compiler> compiler_;
};

// PyTorch's form with `body` after `x` and `y` are there.
std::string Torch(const std::string& body, const std::string& result = "torch::Tensor") {
  return "#include <torch/extension.h>\n#include <ATen/cuda/CUDAContext.h>\n" + result +
         " forward(torch::Tensor x, const torch::Tensor& y) {\n  TORCH_CHECK(x.is_cuda(), \"x is elsewhere\");\n" +
         body +
         "}\nPYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {\n  m.def(\"forward\", &forward, \"affine\", py::arg(\"x\"), "
         "py::arg(\"y\"));\n}\n#define at broken\n#define arguments broken\n#define each broken\n";
}

constexpr char kFill[] =
    "  auto out = torch::empty_like(x);\n  const float *a = x.data_ptr<float>(), *b = y.data_ptr<float>();\n"
    "  for (int64_t i = 0; i < x.numel(); ++i) out.data_ptr<float>()[i] = 2 * a[i] + b[i];\n";

TEST_F(CompiledForm, OfPyTorchIsCalledAndJudged) {
  if (forms_.torch.empty()) GTEST_SKIP() << "libtorch has no libc10_cuda.so here";
  // One candidate with four behaviours: PyTorch's headers take 10 s to compile.
  ExpectExits(Torch("  const float kind = y.data_ptr<float>()[0];\n"
                    "  if (kind == 1) return torch::empty({4}, x.options());\n"
                    "  if (kind == 2) return x.unsqueeze(0).squeeze(0);\n" +
                    std::string(kFill) +
                    "  if (kind == 3) return out.view({3, 1});\n  return out.view({3, 1}).reshape({-1});\n"),
              {{1, 94},  // allocates, and there is no GPU
               {2, 71},  // an input, copied: no GPU
               {3, 90},
               {10, 0}});
  ExpectExit(Torch(std::string(kFill) + "  return {out, out};\n", "std::vector<torch::Tensor>"), 95);
}

TEST_F(CompiledForm, OfPyTorchTakesScalarsWhereItAsksForThem) {
  if (forms_.torch.empty()) GTEST_SKIP() << "libtorch has no libc10_cuda.so here";
  ExpectExit(
      "#include <torch/extension.h>\ntorch::Tensor forward(torch::Tensor& x, torch::Tensor y, int64_t n) {\n"
      "  TORCH_CHECK(n == 3);\n" +
          std::string(kFill) + "  return out;\n}\n",
      0);
  const CompileOutcome outcome =
      Compile("#include <torch/extension.h>\ntorch::Tensor forward(torch::Tensor x) { return x; }\n");
  EXPECT_EQ(outcome.verdict, "not_compiled");
  EXPECT_THAT(outcome.diagnosis, HasSubstr("forward takes neither"));
}

TEST_F(CompiledForm, OfPyTorchMayNotLeaveTheWorkToPyTorch) {
  if (forms_.torch.empty()) GTEST_SKIP() << "libtorch has no libc10_cuda.so here";
  const CompileOutcome outcome = Compile(Torch("  return torch::add(y, x, 2);\n"));
  EXPECT_EQ(outcome.verdict, "forbidden");
  EXPECT_THAT(outcome.diagnosis, HasSubstr("operator add_Tensor"));
}

std::string TvmFfiSource(const std::string& parameters, const std::string& check) {
  return "#include <tvm/ffi/container/tensor.h>\n#include <tvm/ffi/error.h>\n#include <tvm/ffi/function.h>\n"
         "using tvm::ffi::TensorView;\nvoid Affine(TensorView x, TensorView y, TensorView out" +
         parameters + ") {\n" + check +
         "  for (int64_t i = 0; i < x.size(0); ++i)\n    static_cast<float*>(out.data_ptr())[i] = 2 * "
         "static_cast<float*>(x.data_ptr())[i] + static_cast<float*>(y.data_ptr())[i];\n}\n"
         "TVM_FFI_DLL_EXPORT_TYPED_FUNC(affine, Affine)\n#define int32_t broken\n#define Run broken\n";
}

TEST_F(CompiledForm, OfTvmFfiIsCalledWithAndWithoutScalars) {
  if (forms_.tvm_ffi.empty()) GTEST_SKIP() << "set KGRPO_TVM_FFI to the folder of apache-tvm-ffi to test its form";
  ExpectExit(TvmFfiSource("", "  TVM_FFI_ICHECK_EQ(x.ndim(), 1);\n"), 0);
  ExpectExit(TvmFfiSource(", int64_t n", "  TVM_FFI_ICHECK_EQ(n, 3);\n"), 0);
  ExpectExit(TvmFfiSource("", "  TVM_FFI_ICHECK_EQ(x.ndim(), 2);\n"), 96);
  ExpectExit(TvmFfiSource(", int64_t n, int64_t m", ""), 96);
}

TEST_F(CompiledForm, IsUnsupportedWhereItsLibraryOrAGpuIsMissing) {
  Compiler without_gpu(toolkit_, sandbox_, helpers_,
                       {.route = CompileRoute::kNvcc, .seconds = 60, .library_directory = helpers_});
  const std::string torch = Torch("  return x;\n"), tvm_ffi = TvmFfiSource("", "");
  CompileOutcome outcome = without_gpu.Compile(problem_, torch, true);
  EXPECT_EQ(outcome.verdict, "unsupported");
  EXPECT_THAT(outcome.diagnosis, HasSubstr("evaluator_cuda"));
  Compiler without_libraries(
      toolkit_, sandbox_, helpers_,
      {.route = CompileRoute::kNvcc, .seconds = 60, .library_directory = helpers_, .forms = FormLibraries()});
  EXPECT_THAT(without_libraries.Compile(problem_, torch, true).diagnosis, HasSubstr("KGRPO_LIBTORCH"));
  EXPECT_THAT(without_libraries.Compile(problem_, tvm_ffi, true).diagnosis, HasSubstr("KGRPO_TVM_FFI"));
}

}  // namespace
}  // namespace kgrpo::evaluator
