// Candidates in PyTorch's and in TVM-FFI's form on a GPU: honest ones, and cheats that need such a form. Skipped if
// there is no GPU, those in TVM-FFI's form if its library is missing (KGRPO_TVM_FFI).
#include <unistd.h>

#include "evaluator_cuda/device_evaluator.h"
#include "test.h"
#include "test_device.h"

namespace kgrpo::evaluator_cuda {
namespace {

constexpr char kAffineKernel[] =
    "__global__ void affine(const float* x, const float* y, float* out, int n) {\n"
    "  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  if (i < n) out[i] = fmaf(2.0f, x[i], y[i]);\n}\n";

// PyTorch's form with a body that may use `x`, `y` and Launch(tensor).
std::string Torch(const std::string& body) {
  return std::string("#include <torch/extension.h>\n#include <ATen/cuda/CUDAContext.h>\n") + kAffineKernel +
         "static void Launch(const torch::Tensor& x, const torch::Tensor& y, torch::Tensor& out) {\n"
         "  const int n = x.numel();\n  affine<<<(n + 255) / 256, 256, 0, "
         "at::cuda::getCurrentCUDAStream()>>>(x.data_ptr<float>(), "
         "y.data_ptr<float>(), out.data_ptr<float>(), n);\n}\n"
         "torch::Tensor forward(torch::Tensor x, torch::Tensor y) {\n" +
         body + "}\n";
}

class CandidateFormGpuTest : public testing::Test {
 protected:
  void SetUp() override {
    DeviceEvaluator::Options options;
    options.device = TestDevice();
    options.timing.memory_bytes = uint64_t{256} << 20;
    options.workers = 3;
    try {
      evaluator_ = std::make_unique<DeviceEvaluator>(options);
    } catch (const Error& error) {
      if (std::string(error.what()).find("needs an NVIDIA GPU") == std::string::npos) FAIL() << error.what();
      GTEST_SKIP() << error.what();
    }
    std::filesystem::create_directories(cache_directory_);
    affine_ = std::make_unique<OpenProblem>(std::string(KGRPO_SOURCE_DIR) + "/tests/evaluator/problems/affine",
                                            cache_directory_);
  }
  void TearDown() override { std::filesystem::remove_all(cache_directory_); }

  void ExpectVerdict(const std::string& source, const std::string& verdict, const std::string& words = "") {
    const KernelEvaluation evaluation = evaluator_->Evaluate(*affine_, source, 1, false);
    if (evaluation.diagnosis.find("KGRPO_") != std::string::npos) GTEST_SKIP() << evaluation.diagnosis;
    EXPECT_EQ(evaluation.verdict, verdict) << evaluation.diagnosis;
    EXPECT_THAT(evaluation.diagnosis, HasSubstr(words));
  }

  const std::string cache_directory_ = testing::TempDir() + "/candidate_form_gpu_test_" + std::to_string(getpid());
  std::unique_ptr<DeviceEvaluator> evaluator_;
  std::unique_ptr<OpenProblem> affine_;
};

TEST_F(CandidateFormGpuTest, PyTorchsIsCorrectAndTimed) {
  ExpectVerdict(Torch("  auto out = torch::empty_like(x);\n  Launch(x, y, out);\n  return out;\n"), "correct");
}

TEST_F(CandidateFormGpuTest, PyTorchsMayNotAllocateBesideItsOutput) {
  ExpectVerdict(
      Torch("  auto more = torch::empty({7}, x.options()), out = torch::zeros_like(x);\n  Launch(x, y, out);\n"
            "  return out;\n"),
      "forbidden", "allocates device memory");
}

TEST_F(CandidateFormGpuTest, PyTorchsMayNotReturnWhatItKept) {
  ExpectVerdict(Torch("  static torch::Tensor kept;\n  if (kept.defined() && kept.sizes() == x.sizes()) return kept;\n"
                      "  kept = torch::empty_like(x);\n  Launch(x, y, kept);\n  return kept;\n"),
                "out_of_bounds", "of 'out' (4000 bytes), which was freed");  // by the interpreter, before the device
  ExpectVerdict(Torch("  static torch::Tensor kept;\n  auto out = torch::empty_like(x);\n"
                      "  const bool again = kept.defined() && kept.sizes() == x.sizes();\n"
                      "  if (!again) kept = out;\n  Launch(again ? y : x, y, out);\n  return kept;\n"),
                "out_of_bounds", "of 'out' (4000 bytes), which was freed");
}

TEST_F(CandidateFormGpuTest, PyTorchsReturnsWhatTheOutputIs) {
  ExpectVerdict(Torch("  auto out = torch::empty_like(x);\n  Launch(x, y, out);\n  return out.unsqueeze(0);\n"),
                "wrong", "another shape");
  ExpectVerdict(Torch("  auto out = torch::empty_like(x);\n  Launch(x, y, out);\n  return out.clone();\n"),
                "unsupported", "at::Tensor::clone");
}

TEST_F(CandidateFormGpuTest, TvmFfisIsCorrectAndTimed) {
  ExpectVerdict(
      "#include <tvm/ffi/container/tensor.h>\n#include <tvm/ffi/function.h>\n" + std::string(kAffineKernel) +
          "void Affine(tvm::ffi::TensorView x, tvm::ffi::TensorView y, tvm::ffi::TensorView out, int64_t n) {\n"
          "  affine<<<(n + 255) / 256, 256>>>(static_cast<float*>(x.data_ptr()), static_cast<float*>(y.data_ptr()), "
          "static_cast<float*>(out.data_ptr()), n);\n}\nTVM_FFI_DLL_EXPORT_TYPED_FUNC(affine, Affine)\n",
      "correct");
}

}  // namespace
}  // namespace kgrpo::evaluator_cuda
