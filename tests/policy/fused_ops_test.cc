// The model over a GPU's operators computes the results of transformers (tests/golden/policy): log-probabilities,
// entropies and the gradient of every parameter, with stored and with recomputed activations.
// Without a GPU: on the CPU in float32, with libtorch in place of the kernels, which gpu_kernels_test.cc tests.
#include "policy_qwen/gpu/fused_ops.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>
#include <c10/core/InferenceMode.h>

#include <cmath>

#include "golden.h"
#include "pieces.h"
#include "policy_qwen/model/adapter.h"
#include "policy_qwen/model/scorer.h"

namespace kgrpo::policy {
namespace {

// Float32 in host memory, rows `stride` elements apart.
at::Tensor View(const void* data, const std::vector<int64_t>& sizes, int64_t stride = 0) {
  std::vector<int64_t> strides(sizes.size(), 1);
  for (size_t i = sizes.size() - 1; i-- > 0;) strides[i] = strides[i + 1] * sizes[i + 1];
  if (stride > 0) strides[0] = stride;
  return at::from_blob(const_cast<void*>(data), sizes, strides, at::TensorOptions().dtype(at::kFloat));
}

at::Tensor Targets(const int64_t* targets, int64_t rows) {
  return at::from_blob(const_cast<int64_t*>(targets), {rows}, at::TensorOptions().dtype(at::kLong));
}

// kernels.h's functions for float32 in host memory, by libtorch.
const GpuKernels kPlainKernels = [] {
  static const Ops ops;
  GpuKernels table = {};
  table.rms_norm = [](Element, const void* x, int64_t x_stride, const void* weight, float epsilon, int64_t rows,
                      int64_t columns, void* y, float* scale, GpuStream) -> const char* {
    at::Tensor r;
    View(y, {rows, columns})
        .copy_(ops.RmsNorm(View(x, {rows, columns}, x_stride), View(weight, {columns}), epsilon, r));
    View(scale, {rows, 1}).copy_(r.view({rows, 1}));
    return nullptr;
  };
  table.rms_norm_backward = [](Element, const void* dy, const void* x, int64_t x_stride, const void* weight,
                               const float* scale, const void* add, int64_t rows, int64_t columns, void* dx,
                               GpuStream) -> const char* {
    const at::Tensor more = add == nullptr ? at::zeros({rows, columns}) : View(add, {rows, columns}).clone();
    View(dx, {rows, columns})
        .copy_(ops.RmsNormBackward(View(dy, {rows, columns}), View(x, {rows, columns}, x_stride),
                                   View(weight, {columns}), View(scale, {rows, 1}), {}, more));
    return nullptr;
  };
  table.rms_norm_weight_gradient = [](Element, const void* dy, const void* x, int64_t x_stride, const float* scale,
                                      int64_t rows, int64_t columns, float*, float* gradient,
                                      GpuStream) -> const char* {
    const at::Tensor normed = View(x, {rows, columns}, x_stride) * View(scale, {rows, 1});
    View(gradient, {columns}).add_((View(dy, {rows, columns}) * normed).sum(0));
    return nullptr;
  };
  table.rotate = [](Element, const void* x, int64_t x_stride, void* y, int64_t y_stride, int64_t rows, int64_t heads,
                    int64_t head_size, const float* cos, const float* sin, float direction, GpuStream) -> const char* {
    const at::Tensor c = View(cos, {rows, 1, head_size / 2}), s = View(sin, {rows, 1, head_size / 2}) * direction;
    View(y, {rows, heads, head_size}, y_stride)
        .copy_(ops.Rotate(View(x, {rows, heads, head_size}, x_stride), {at::cat({c, c}, 2), s}));
    return nullptr;
  };
  table.swiglu = [](Element, const void* x, int64_t rows, int64_t columns, void* y, GpuStream) -> const char* {
    View(y, {rows, columns}).copy_(ops.SwiGlu(View(x, {rows, 2 * columns})));
    return nullptr;
  };
  table.swiglu_backward = [](Element, const void* dy, const void* x, int64_t rows, int64_t columns, void* dx,
                             GpuStream) -> const char* {
    View(dx, {rows, 2 * columns}).copy_(ops.SwiGluBackward(View(dy, {rows, columns}), View(x, {rows, 2 * columns})));
    return nullptr;
  };
  table.token_logprobs = [](Element, const void* logits, const int64_t* targets, float temperature, int64_t rows,
                            int64_t vocabulary, float* logprobs, float* normalizers, float* entropies,
                            GpuStream) -> const char* {
    const at::Tensor z = View(logits, {rows, vocabulary}) / temperature;
    const Ops::Logprobs found = ops.TokenLogprobs(z, Targets(targets, rows), 1.0, entropies != nullptr);
    View(logprobs, {rows}).copy_(found.logprobs);
    View(normalizers, {rows}).copy_(z.logsumexp(1));
    if (entropies != nullptr) View(entropies, {rows}).copy_(found.entropies);
    return nullptr;
  };
  table.token_logprobs_backward = [](Element, void* logits, const int64_t* targets, const float* normalizers,
                                     const float* d_logprobs, float temperature, int64_t rows, int64_t vocabulary,
                                     GpuStream) -> const char* {
    const at::Tensor z = View(logits, {rows, vocabulary}), d = View(d_logprobs, {rows, 1}) / temperature;
    z.copy_((z / temperature - View(normalizers, {rows, 1})).exp().mul(-d));
    at::Tensor(z).scatter_add_(1, Targets(targets, rows).unsqueeze(1), d);
    return nullptr;
  };
  return table;
}();

enum Kept { kAll, kInputs, kNothing };  // by the forward

class FusedOpsTest : public ::testing::TestWithParam<std::string> {
 protected:
  FusedOpsTest()
      : expected_(Expected(BaseOf(GetParam()))),
        sequences_(expected_),
        config_(ReadModelConfig(GoldenFolder(BaseOf(GetParam())))),
        rotary_(config_, at::kFloat, at::kCPU),
        weights_(config_, at::kFloat, at::kCPU) {
    at::set_num_threads(1);
    ReadParameters(GoldenFolder(BaseOf(GetParam())), config_, weights_);
    for (size_t i = 0; i < sequences_.prompts.size(); ++i) {
      const std::vector<int32_t>& completion = sequences_.completions[i];
      PackedSequence packed = {sequences_.prompts[i], static_cast<int64_t>(completion.size())};
      packed.ids.insert(packed.ids.end(), completion.begin(), completion.end() - 1);
      packed_.push_back(std::move(packed));
      targets_.insert(targets_.end(), completion.begin(), completion.end());
    }
  }

  // A scorer on a device with so many free bytes: how many rows of logits exist at a time follows.
  Scorer ScorerOf(int64_t free_bytes) {
    ops_ = std::make_unique<FusedOps>(kPlainKernels, at::kCPU, [free_bytes] { return free_bytes; });
    return {config_, *ops_, rotary_};
  }

  // Bytes that the sequences' activations take.
  int64_t Room(const Scorer& scorer, Kept kept) const {
    int64_t bytes = 0;
    for (const auto& [ids, outputs] : packed_) bytes += scorer.ActivationBytes(std::ssize(ids), kept == kInputs);
    return kept == kNothing ? 0 : bytes;
  }

  c10::InferenceMode inference_;
  nlohmann::json expected_;
  GoldenSequences sequences_;
  ModelConfig config_;
  RotaryTable rotary_;
  ParameterSet weights_;
  std::vector<PackedSequence> packed_;
  std::vector<int64_t> targets_;
  std::unique_ptr<FusedOps> ops_;
};

constexpr int64_t kMuch = int64_t{1} << 30, kLittle = 4 * 7 * 300 * 4;  // of logits: all rows at once; seven

TEST_P(FusedOpsTest, LogprobsAndEntropies) {
  for (const int64_t free_bytes : {kMuch, kLittle}) {
    Scorer scorer = ScorerOf(free_bytes);
    const Scorer::Result result =
        scorer.Forward(weights_.weights(), packed_, targets_, expected_["temperature"], true, nullptr);
    const std::vector<double> logprobs = ToDoubles(result.logprobs), entropies = ToDoubles(result.entropies);
    ASSERT_EQ(logprobs.size(), sequences_.token_count);
    for (size_t i = 0; i < logprobs.size(); ++i) {
      EXPECT_NEAR(logprobs[i], expected_["logprobs"][i].get<double>(), 2e-5) << "token " << i;
      EXPECT_NEAR(entropies[i], expected_["entropies"][i].get<double>(), 1e-5) << "token " << i;
    }
  }
}

TEST_P(FusedOpsTest, GradientOfEveryParameter) {
  ParameterSet expected(config_, at::kFloat, at::kCPU);
  ReadParameters(GoldenFolder(GetParam()) + "/gradients", config_, expected);
  const auto coefficients = expected_["coefficients"].get<std::vector<float>>();
  std::vector<std::vector<double>> gradients;
  for (const Kept kept : {kAll, kInputs, kNothing}) {
    Scorer scorer = ScorerOf(kLittle);
    ParameterSet found(config_, at::kFloat, at::kCPU);
    int64_t room = Room(scorer, kept);
    Scorer::Result result =
        scorer.Forward(weights_.weights(), packed_, targets_, expected_["temperature"], false, &room);
    EXPECT_EQ(room, 0);
    EXPECT_EQ(result.pass.activations.layers.empty(), kept == kNothing);
    ToldPieces told;
    const std::vector<LayerPiece> pieces = LayerPieces(found.specs(), found.buffer().numel());
    scorer.Backward(weights_.weights(), found.weights(), std::move(result.pass), expected_["temperature"],
                    ViewOf(coefficients), room, [&](int64_t layer) {
                      for (const LayerPiece& piece : pieces) {
                        if (piece.layer == layer)
                          told.Add(found.buffer().narrow(0, piece.begin, piece.end - piece.begin));
                      }
                    });
    told.ExpectAllOnceAndFinal(found.buffer());
    for (size_t i = 0; i < expected.specs().size(); ++i) {
      EXPECT_LT(RelativeL2(ToDoubles(found.Get(i)), ToDoubles(expected.Get(i))), 1e-5)
          << expected.specs()[i].name << ", " << kept;
    }
    gradients.push_back(ToDoubles(found.buffer()));
  }
  EXPECT_EQ(gradients[0], gradients[1]) << "computing a layer again gives the same bits";
  EXPECT_EQ(gradients[0], gradients[2]);
}

INSTANTIATE_TEST_SUITE_P(All, FusedOpsTest, ::testing::ValuesIn(GoldenModels()),
                         [](const auto& info) { return info.param; });

// With a LoRA adapter beside frozen weights it computes peft's results (tests/golden/policy/make_adapters.py).
class FusedOpsAdapterTest : public FusedOpsTest {
 protected:
  FusedOpsAdapterTest()
      : golden_(Expected("adapters/" + GetParam())),
        folder_(GoldenFolder("adapters/" + GetParam())),
        factors_(config_, ReadAdapterConfig(folder_), at::kCPU) {
    ReadAdapter(folder_, "", factors_);
    adapted_ = factors_.Attached(weights_.weights());
  }

  nlohmann::json golden_;
  std::string folder_;
  AdapterSet factors_;
  Weights adapted_;
};

TEST_P(FusedOpsAdapterTest, Logprobs) {
  Scorer scorer = ScorerOf(kLittle);
  const Scorer::Result result = scorer.Forward(adapted_, packed_, targets_, golden_["temperature"], false, nullptr);
  const std::vector<double> logprobs = ToDoubles(result.logprobs);
  ASSERT_EQ(logprobs.size(), golden_["on"].size());
  for (size_t i = 0; i < logprobs.size(); ++i) {
    EXPECT_NEAR(logprobs[i], golden_["on"][i].get<double>(), 2e-5) << "token " << i;
  }
}

TEST_P(FusedOpsAdapterTest, GradientsOfTheFactorsAlone) {
  AdapterSet expected(config_, ReadAdapterConfig(folder_), at::kCPU);
  ReadAdapter(folder_ + "/gradients", "", expected);
  const auto coefficients = golden_["coefficients"].get<std::vector<float>>();
  for (const Kept kept : {kAll, kInputs}) {
    Scorer scorer = ScorerOf(kLittle);
    AdapterSet found(config_, ReadAdapterConfig(folder_), at::kCPU);
    int64_t room = Room(scorer, kept);
    Scorer::Result result = scorer.Forward(adapted_, packed_, targets_, golden_["temperature"], false, &room);
    scorer.Backward(adapted_, found.Alone(), std::move(result.pass), golden_["temperature"], ViewOf(coefficients),
                    room);
    for (size_t i = 0; i < expected.specs().size(); ++i) {
      EXPECT_LT(RelativeL2(ToDoubles(found.Get(i)), ToDoubles(expected.Get(i))), 2e-5)
          << expected.specs()[i].name << ", " << kept;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Adapters, FusedOpsAdapterTest,
                         ::testing::Values("qwen2", "qwen3", "llama", "qwen2-patterns", "llama-layers"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace kgrpo::policy
