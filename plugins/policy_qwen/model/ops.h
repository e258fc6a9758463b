// The operators that a transformer and its head are made of, each with its derivative: one forward and one backward
// (transformer.h, scorer.h) run over them. Ops itself is libtorch's operators, on any device; gpu/fused_ops.h replaces
// most of them on a GPU. No autograd: the model calls the backward functions itself, in reverse.
//
// x is [rows, ...] in the model's dtype (float32 or bfloat16). Gradients of parameters are float32 and are added to,
// unless they are undefined, as those of a frozen parameter; gradients of activations are in the model's dtype.
#ifndef KGRPO_PLUGINS_POLICY_QWEN_MODEL_OPS_H_
#define KGRPO_PLUGINS_POLICY_QWEN_MODEL_OPS_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "policy_qwen/model/attention.h"
#include "policy_qwen/model/config.h"
#include "policy_qwen/model/parameters.h"

namespace kgrpo::policy {

// Cosines and sines of the rotary angles of some positions, in the model's dtype: cos [rows, 1, head size] (each half
// alike), sin [rows, 1, head size / 2].
struct RotaryAngles {
  at::Tensor cos;
  at::Tensor sin;
};

// One thread at a time, inside an InferenceMode with the device current.
class Ops {
 public:
  virtual ~Ops() = default;

  // RMSNorm (Zhang and Sennrich, 2019) over the last dimension: x / sqrt(mean(x^2) + epsilon), computed in float32 and
  // rounded to x's dtype, then times weight. x is compact. `scale` receives 1 / sqrt(...) of each row, float32, for the
  // backward.
  virtual at::Tensor RmsNorm(const at::Tensor& x, const at::Tensor& weight, double epsilon, at::Tensor& scale) const;
  // Returns the derivative by x; `add`, if it is defined, is added in place and returned. dy is compact.
  virtual at::Tensor RmsNormBackward(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& weight,
                                     const at::Tensor& scale, const at::Tensor& weight_gradient,
                                     const at::Tensor& add) const;

  // The table's angles in the form that this object's Rotate and RotateBackward take.
  virtual RotaryAngles Angles(const RotaryAngles& angles) const { return angles; }
  // Rotary positions (Su et al., 2021) in the layout of transformers: element i of the first half of a head is turned
  // with element i of the second half. x [rows, heads, head size], rows at any stride; it may be overwritten.
  virtual at::Tensor Rotate(const at::Tensor& x, const RotaryAngles& angles) const;
  // The opposite rotation of dy, written to dx: shaped as x, rows at any stride.
  virtual void RotateBackward(const at::Tensor& dy, const RotaryAngles& angles, const at::Tensor& dx) const;

  // Whether attention is FlashAttention-2's for that model; else it is attention.h's.
  virtual bool UsesFlashAttention(const ModelConfig&, at::ScalarType) const { return false; }
  // q [query rows, heads, head size], k and v [rows, kv heads, head size], rows at any stride -> [query rows, heads *
  // head size]. `saved` may be null. In attention.cc.
  virtual at::Tensor Attention(const ModelConfig& config, const AttentionPlan& plan, const at::Tensor& q,
                               const at::Tensor& k, const at::Tensor& v, AttentionActivations* saved) const;
  virtual AttentionGradients AttentionBackward(const ModelConfig& config, const AttentionPlan& plan,
                                               const AttentionActivations& saved, const at::Tensor& d_out) const;
  // Whether one product makes q, k and v of the same rows.
  virtual bool JoinsProjections() const { return false; }

  // silu(gate) * up of x = [gate, up] side by side: [rows, 2 n] -> [rows, n].
  virtual at::Tensor SwiGlu(const at::Tensor& x) const;
  // May overwrite x.
  virtual at::Tensor SwiGluBackward(const at::Tensor& dy, const at::Tensor& x) const;

  struct Logprobs {
    at::Tensor logprobs;     // float32 [rows]
    at::Tensor entropies;    // likewise, nats; undefined unless wanted
    at::Tensor normalizers;  // likewise: what the backward needs, undefined if nothing
  };
  // Log-probabilities of each row's target (int64 [rows]) under softmax(logits / temperature). May overwrite logits.
  virtual Logprobs TokenLogprobs(const at::Tensor& logits, const at::Tensor& targets, double temperature,
                                 bool want_entropies) const;
  // The derivative of sum(d_logprobs logprobs) by the logits, in their dtype. May overwrite them.
  virtual at::Tensor TokenLogprobsBackward(const at::Tensor& logits, const at::Tensor& targets,
                                           const at::Tensor& normalizers, const at::Tensor& d_logprobs,
                                           double temperature) const;

  // Sizes that suit the device: tokens that go through the model at a time, bytes of activations that may be kept, and
  // rows of logits that exist at a time.
  virtual int64_t TokensAtATime() const { return 2048; }
  virtual int64_t ActivationRoom() const { return int64_t{2048} << 20; }
  virtual int64_t LogitRows(int64_t vocabulary, at::ScalarType dtype) const;
};

// These serve every device.

// x W^T + bias; bias may be undefined. x [rows, inputs], W [outputs, inputs] -> [rows, outputs].
at::Tensor Linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);

// residual + x W^T + bias.
at::Tensor LinearAdd(const at::Tensor& residual, const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);

// The parameters' part of Linear's derivative: weight_gradient += dy^T x, bias_gradient += the column sums of dy.
void LinearBackwardParameters(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& weight_gradient,
                              const at::Tensor& bias_gradient);

// y += scale x A^T B^T; nothing where `factors` is undefined. x [rows, inputs], y [rows, outputs], which may be a slice
// of columns. A and B are float32; on a GPU their products with bfloat16 rows take A, B and x A^T rounded to it, and
// add in float32.
void AddLowRank(const at::Tensor& y, const at::Tensor& x, const LowRank& factors);
// Its derivative: adds to the gradients of A and B and to dx [rows, inputs]. dy as y.
void LowRankBackward(const at::Tensor& dy, const at::Tensor& x, const LowRank& factors, const LowRank& gradients,
                     const at::Tensor& dx);

// A copy of `values` on `device`, int64 [values.size()].
at::Tensor IndexTensor(const std::vector<int64_t>& values, at::Device device);

// out[i] = source[index[i]], zeros where index[i] is -1. source [n, columns] contiguous, index int64 [m].
at::Tensor GatherRows(const at::Tensor& source, const at::Tensor& index);

// target[index[i]] += source[i]; rows named twice are added in order. target [n, columns] contiguous; its dtype may be
// float32 while source is bfloat16.
void AddRows(const at::Tensor& target, const at::Tensor& index, const at::Tensor& source);

}  // namespace kgrpo::policy

#endif  // KGRPO_PLUGINS_POLICY_QWEN_MODEL_OPS_H_
