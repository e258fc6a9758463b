// Candidates in PyTorch's form, judged by the interpreter against our tensors (form_include/kgrpo/torch_tensor.h):
// honest ones, those that break the form, cheats, and those that ask PyTorch for more.
#include "kernel_evaluator_fixture.h"

#include "test.h"

namespace kgrpo::evaluator_sim {
namespace {

constexpr char kHead[] =
    "#include <torch/extension.h>\n#include <ATen/cuda/CUDAContext.h>\n#include <c10/cuda/CUDAGuard.h>\n"
    "template <typename T>\n__global__ void affine(const T* x, const T* y, T* out, int n) {\n"
    "  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  if (i < n) out[i] = T(2) * x[i] + y[i];\n}\n"
    "static void Launch(const torch::Tensor& x, const torch::Tensor& y, torch::Tensor& out) {\n"
    "  const at::cuda::CUDAGuard guard(x.device());\n  const int n = x.numel();\n"
    "  AT_DISPATCH_FLOATING_TYPES_AND2(at::ScalarType::Half, at::ScalarType::BFloat16, x.scalar_type(), \"affine\", "
    "([&] {\n"
    "    affine<scalar_t><<<(n + 255) / 256, 256, 0, at::cuda::getCurrentCUDAStream()>>>(\n"
    "        x.data_ptr<scalar_t>(), y.const_data_ptr<scalar_t>(), out.mutable_data_ptr<scalar_t>(), n);\n  }));\n"
    "  C10_CUDA_KERNEL_LAUNCH_CHECK();\n}\n";

// `body` may use `x`, `y` and Launch.
std::string Torch(const std::string& body, const std::string& result = "torch::Tensor") {
  return std::string(kHead) + result + " forward(torch::Tensor x, torch::Tensor y) {\n" + body + "}\n";
}

class TorchFormTest : public KernelEvaluatorTest {
 protected:
  static void ExpectVerdict(const std::string& source, const std::string& verdict, const std::string& words = "") {
    const KernelEvaluation evaluation = Affine(source);
    EXPECT_EQ(evaluation.verdict, verdict) << evaluation.diagnosis << "\n" << source;
    EXPECT_THAT(evaluation.diagnosis, HasSubstr(words));
  }
};

TEST_F(TorchFormTest, IsCorrectAndTimed) {
  const std::string source =
      Torch(
          "  TORCH_CHECK(x.is_cuda() && x.is_contiguous() && x.dtype() == torch::kFloat32, \"x: \", x.sizes());\n"
          "  auto out = torch::empty_like(x);\n  Launch(x, y, out);\n  return out.view({-1, "
          "1}).reshape(x.sizes());\n") +
      "PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {\n  m.def(\"forward\", &forward, \"affine\", py::arg(\"x\"), "
      "py::arg(\"y\"));\n}\n#define at broken\n#define arguments broken\n#define each broken\n";
  const KernelEvaluation torch = Affine(source), launch = Affine(affine_->problem.reference_source);
  EXPECT_EQ(torch.verdict, "correct") << torch.diagnosis;
  EXPECT_NEAR(torch.seconds, launch.seconds, launch.seconds * 0.05);
}

TEST_F(TorchFormTest, HasTheFunctionThatTheSourceBinds) {
  // Another name, outputs passed, a scalar, and a prototype as load_inline's sources have it.
  ExpectVerdict(std::string(kHead) +
                    "void run(torch::Tensor x, torch::Tensor y, torch::Tensor out, int64_t n);\n"
                    "void run(torch::Tensor x, torch::Tensor y, torch::Tensor out, int64_t n) {\n"
                    "  TORCH_CHECK(n == x.size(0));\n  Launch(x, y, out);\n}\n"
                    "PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def(\"affine\", &run); }\n",
                "correct");
  ExpectVerdict(Torch("  auto out = torch::zeros({x.size(-1)}, x.options());\n  Launch(x, y, out);\n"
                      "  return {out};\n",
                      "std::vector<at::Tensor>"),
                "correct");
  ExpectVerdict(
      "#include <torch/extension.h>\n#include <cuda_fp16.h>\n"
      "__global__ void affine(torch::PackedTensorAccessor32<float, 1, torch::RestrictPtrTraits> x,\n"
      "    torch::PackedTensorAccessor32<float, 2> y, float* out) {\n"
      "  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
      "  if (i < x.size(0)) out[i] = 2 * x[i] + y[0][i];\n}\n"
      "at::Tensor affine_cuda(const at::Tensor& x, c10::optional<at::Tensor> y) {\n"
      "  auto out = at::empty(x.sizes(), torch::TensorOptions().dtype(x.dtype()).device(x.device()));\n"
      "  affine<<<(x.numel() + 127) / 128, 128>>>(x.packed_accessor32<float, 1, torch::RestrictPtrTraits>(),\n"
      "      y->unsqueeze(0).packed_accessor32<float, 2>(), out.data_ptr<float>());\n  return out;\n}\n",
      "correct");
}

TEST_F(TorchFormTest, ExtensionsCompileAsWithTorch) {
  const std::string body = "  auto out = torch::empty_like(x);\n  Launch(x, y, out);\n";
  // Several bindings.
  ExpectVerdict(Torch(body + "  return out;\n") +
                    "TORCH_LIBRARY(own, m) { m.def(\"affine(Tensor x, Tensor y) -> Tensor\"); }\n"
                    "TORCH_LIBRARY_IMPL(own, CUDA, m) { m.impl(\"affine\", &forward); }\n"
                    "TORCH_LIBRARY_IMPL(own, Meta, m) { m.impl(\"affine\", TORCH_FN(forward)); }\n"
                    "PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def(\"forward\", &forward); }\n",
                "correct");
  // A dispatch whose name is a variable.
  ExpectVerdict(Torch("  auto out = torch::empty_like(x);\n  const char* const name = __func__;\n"
                      "  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), name, [&] {\n"
                      "    affine<scalar_t><<<(x.numel() + 255) / 256, 256>>>(x.data_ptr<scalar_t>(),\n"
                      "        y.data_ptr<scalar_t>(), out.data_ptr<scalar_t>(), x.numel());\n  });\n"
                      "  return out;\n"),
                "correct");
  // The standard headers that PyTorch's include.
  ExpectVerdict(Torch("  std::vector<int> order(3);\n  std::iota(order.begin(), order.end(), 0);\n"
                      "  std::sort(order.begin(), order.end(), std::greater<int>());\n"
                      "  const std::function<int(int)> twice = [](int v) { return 2 * v; };\n"
                      "  std::map<int, int> a;\n  std::set<int> b;\n  std::unordered_map<std::string, int> c;\n"
                      "  std::unordered_set<int> d(order.begin(), order.end());\n  std::deque<int> e;\n"
                      "  std::ostringstream text;\n  text << std::setw(2) << twice(order[0]) << x.sizes();\n"
                      "  const auto now = std::chrono::steady_clock::now();\n"
                      "  static std::mutex mutex;\n  const std::lock_guard<std::mutex> lock(mutex);\n"
                      "  assert(order[0] == 2);\n  if (d.size() != 3) throw std::runtime_error(text.str());\n" +
                      body + "  return out;\n"),
                "correct");
}

TEST_F(TorchFormTest, MustReturnWhatTheOutputIs) {
  const std::string out = "  auto out = torch::empty_like(x);\n  Launch(x, y, out);\n";
  ExpectVerdict(Torch(out + "  return out.unsqueeze(0);\n"), "wrong", "another shape");
  ExpectVerdict(Torch(out + "  return {out, out};\n", "std::vector<torch::Tensor>"), "wrong", "another number");
  ExpectVerdict(
      Torch("  auto out = torch::empty(x.sizes(), x.options().dtype(torch::kInt));\n  affine<float><<<1, 1>>>(\n"
            "      x.data_ptr<float>(), y.data_ptr<float>(), static_cast<float*>(out.data_ptr()), 1);\n"
            "  return out;\n"),
      "wrong", "another dtype");
  ExpectVerdict(Torch(out + "  TORCH_CHECK(x.dim() == 2, \"two\");\n  return out;\n"), "crash", "TORCH_CHECK");
  ExpectVerdict(Torch(out + "  out.data_ptr<double>();\n  return out;\n"), "crash", "data_ptr of another dtype");
  ExpectVerdict(std::string(kHead) + "torch::Tensor forward(torch::Tensor x) { return x; }\n", "not_compiled",
                "takes neither");
}

TEST_F(TorchFormTest, CheatsAreFound) {
  // Returns what a first call computed, or the input; computes by address; keeps memory; allocates.
  ExpectVerdict(
      Torch("  static bool done = false;\n  auto out = torch::empty_like(x);\n  if (!done) Launch(x, y, out);\n"
            "  done = true;\n  return out;\n"),
      "no_launch");
  ExpectVerdict(Torch("  auto out = torch::empty_like(x);\n  Launch(x, y, out);\n  return x;\n"), "wrong");
  ExpectVerdict(Torch("  return x;\n"), "no_launch");
  ExpectVerdict(Torch("  static const void* seen = nullptr;\n  auto out = torch::empty_like(x);\n"
                      "  const bool again = seen == x.data_ptr();\n  seen = x.data_ptr();\n"
                      "  Launch(again ? y : x, y, out);\n  auto stale = torch::empty_like(x);\n  return stale;\n"),
                "forbidden", "allocates device memory");
  ExpectVerdict(
      Torch("  auto out = torch::empty_like(x);\n  if (x.numel() < 500) Launch(x, y, out);\n"
            "  else affine<float><<<1, 32>>>(x.data_ptr<float>(), y.data_ptr<float>(), out.data_ptr<float>(), 32);\n"
            "  return out;\n"),
      "wrong", "never written");
  ExpectVerdict(Torch("  Launch(x, y, x);\n  return x;\n"), "input_modified");
}

TEST_F(TorchFormTest, WhatIsMissingIsNamed) {
  ExpectVerdict(Torch("  return torch::add(y, x, 2);\n"), "unsupported", "PyTorch's torch::add,");
  ExpectVerdict(Torch("  return x.mul(2).add(y);\n"), "unsupported", "PyTorch's at::Tensor::mul,");
  ExpectVerdict(Torch("  auto out = torch::empty({x.size(0)});\n  Launch(x, y, out);\n  return out;\n"), "unsupported",
                "pass x.options()");
  ExpectVerdict(Torch("  auto out = torch::empty_like(x);\n  Launch(x.to(torch::kHalf), y, out);\n  return out;\n"),
                "unsupported", "copies or converts");
  ExpectVerdict(Torch("  int unknown = nothing;\n  return x;\n"), "not_compiled", "nothing");
}

TEST_F(TorchFormTest, BugsOfItsKernelAreFound) {
  ExpectVerdict(Torch("  auto out = torch::empty_like(x);\n  affine<float><<<(x.numel() + 255) / 256, 256>>>(\n"
                      "      x.data_ptr<float>(), y.data_ptr<float>(), out.data_ptr<float>(), x.numel() + 1);\n"
                      "  return out;\n"),
                "out_of_bounds");
}

}  // namespace
}  // namespace kgrpo::evaluator_sim
