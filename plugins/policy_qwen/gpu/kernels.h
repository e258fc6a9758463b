// The kernels of training and generation on a GPU, as plain functions over device pointers. They lie in a shared
// library of their own, compiled by nvcc, which the policy loads when its device is a GPU: gpu_library.h. No header of
// CUDA or libtorch is needed to call them. Used by fused_ops.cc and generation/; tests run them on the PTX
// interpreter.
//
// Arrays are row-major and compact unless a stride is given, on the stream's device. Every function queues its work on
// `stream` and returns null, or the name and reason of a launch that failed, valid until the thread's next call. None
// waits, allocates or depends on the order in which blocks run: the same arguments give the same bits. Sizes are
// positive. The current device of the calling thread does not matter and stays as it is.
//
// A step of generation computes `rows` rows. A row is one token of one slot at one position: the last sampled token of
// a slot that decodes, or a token of a prompt. A row's results are bit-identical whatever else is in the step: how a
// sum is split depends on the model's shape and the row's position, never on the number of rows, and the tiles chosen
// by the number of rows add in the same order. (Prompt rows may be computed by prompt_ops.h instead, whose order is
// another: gpu_model.h names the roles.) Results of a row of slot -1, or of a slot that has ended, are unused.
//
// A kernel of generation may begin before the one before it on the stream has ended (overlap.cuh): weights are read
// early, so code that changes weights must wait for the device before the next step. attention also reads
// places, the table of pages and the cache's earlier positions early: within a step, only embed, its first kernel, may
// write those.
#ifndef KGRPO_PLUGINS_POLICY_QWEN_GPU_KERNELS_H_
#define KGRPO_PLUGINS_POLICY_QWEN_GPU_KERNELS_H_

#include <cstdint>

namespace kgrpo::policy {

// The dtype of activations and weights. Arguments described as float32 are float32 for both.
enum class Element : int32_t { kFloat32 = 0, kBfloat16 = 1 };

// A stream and its device. The library's CUDA runtime is not libtorch's, so it is told the device in every call: null,
// the default stream, exists on each.
struct GpuStream {
  int32_t device;
  void* handle;  // a cudaStream_t
};

// Number of partial sums of rms_norm_weight_gradient: its `partial` is float32 [kNormSlices, columns].
inline constexpr int64_t kNormSlices = 64;

inline constexpr int32_t kPageSize = 16;         // positions that a page of the cache holds
inline constexpr int32_t kAttentionSplit = 128;  // positions whose part of attention is computed together
inline constexpr int32_t kMaxVocabulary = 1 << 19;
inline constexpr int32_t kMaxSplits = 8;  // of a product; its reader loads all sums at once

// Why a slot's completion is over.
enum class SlotEnd : int32_t { kNone = 0, kStop = 1, kLength = 2 };

// A slot's state on the device. The host writes it when a request is admitted; the sampler changes the last four.
struct Slot {
  uint64_t seed;
  double top_p, min_p;  // as SamplingOptions
  float temperature;
  int32_t top_k;
  int32_t limit;     // tokens the completion may have
  int32_t token;     // the last one sampled
  int32_t position;  // of `token` in the context
  int32_t count;     // tokens sampled
  SlotEnd end;
};

// One row of a step, as the host queues it.
struct StepRow {
  int32_t slot;      // -1: none
  int32_t position;  // in the context; -1: the slot's own token and position
  int32_t token;
};

// The sampler's first results, on kSampleSegment neighbouring logits of a row.
inline constexpr int32_t kSampleSegment = 1024;
struct SamplePart {
  uint64_t sum;    // of the weights
  float greatest;  // over the temperature
  int32_t id;      // of the greatest
};

// A row as the kernels see it.
struct Place {
  int32_t slot;
  int32_t position;  // -1: the row is unused
};

// The cache of one layer: [pages, kv heads, kPageSize, head size] each.
struct LayerCache {
  void* keys;
  void* values;
  const int32_t* pages;  // [slots, pages_per_slot]: where each slot's positions lie
  int32_t pages_per_slot;
};

// Form in which a product writes its result.
enum class ProductMode : int32_t {
  kPartial,  // float32 [splits, rows, outputs]: to be summed over the splits in order
  kSwiGlu,   // silu(gate) up, of weights with gate above up: elements [rows, outputs / 2]
  kPlain,    // elements [rows, outputs]
};

struct HeadShape {
  int32_t heads, kv_heads;  // heads / kv_heads from 1 to 8
  int32_t size;             // 64 or 128
};

// The product that makes q, k and v of a step's rows, and what makes heads of its sums.
struct HeadSums {
  const float* partial;  // [splits, rows, (heads + 2 kv_heads) size]
  int32_t splits;
  const void *bias, *query_norm, *key_norm;  // of the product; of each head of q and k; null for none
  float epsilon;                             // of the norms
  const void *cos, *sin;                     // rotary positions: [positions, size], [positions, size / 2]
};

struct GpuKernels {
  static constexpr const char* kEntry = "kgrpo_policy_gpu_kernels";  // the function that returns the library's table
  uint32_t struct_size;

  // Null if the device can run these kernels, else the reason.
  const char* (*check_card)(int32_t device);

  // Training, in rms_norm.cu, elementwise.cu and token_logprobs.cu.

  // RMSNorm (Zhang and Sennrich, 2019) of each row: y = round(x r) weight with r = 1 / sqrt(mean(x^2) + epsilon), as
  // transformers rounds it. scale (float32 [rows]) receives r. Rows of x begin x_stride elements apart.
  const char* (*rms_norm)(Element type, const void* x, int64_t x_stride, const void* weight, float epsilon,
                          int64_t rows, int64_t columns, void* y, float* scale, GpuStream stream);

  // dx = [add +] r (dy w - n mean(dy w n)) with n = x r. `add` (null for none) may be dx itself.
  const char* (*rms_norm_backward)(Element type, const void* dy, const void* x, int64_t x_stride, const void* weight,
                                   const float* scale, const void* add, int64_t rows, int64_t columns, void* dx,
                                   GpuStream stream);

  // weight_gradient (float32 [columns]) += sum over rows of dy n.
  const char* (*rms_norm_weight_gradient)(Element type, const void* dy, const void* x, int64_t x_stride,
                                          const float* scale, int64_t rows, int64_t columns, float* partial,
                                          float* weight_gradient, GpuStream stream);

  // Rotary positions (Su et al., 2021) in the layout of transformers: element i of the first half of a head is turned
  // with element i of the second. cos and sin: float32 [rows, head_size / 2]. direction 1, or -1 for the derivative.
  // Rows of x and y begin x_stride and y_stride elements apart, heads in a row lie side by side; y may be x.
  const char* (*rotate)(Element type, const void* x, int64_t x_stride, void* y, int64_t y_stride, int64_t rows,
                        int64_t heads, int64_t head_size, const float* cos, const float* sin, float direction,
                        GpuStream stream);

  // y = silu(gate) up of x = [gate, up] side by side: [rows, 2 columns] -> [rows, columns].
  const char* (*swiglu)(Element type, const void* x, int64_t rows, int64_t columns, void* y, GpuStream stream);
  // dx may be x.
  const char* (*swiglu_backward)(Element type, const void* dy, const void* x, int64_t rows, int64_t columns, void* dx,
                                 GpuStream stream);

  // Computes of each row of logits z / temperature: the log-probability of its target (logprobs), log(sum(exp))
  // (normalizers), and the entropy in nats (entropies, null where not wanted). All float32 [rows].
  const char* (*token_logprobs)(Element type, const void* logits, const int64_t* targets, float temperature,
                                int64_t rows, int64_t vocabulary, float* logprobs, float* normalizers, float* entropies,
                                GpuStream stream);

  // In place, the derivative of sum(d_logprobs logprobs) by the logits: d ([j = target] - p_j) / temperature.
  const char* (*token_logprobs_backward)(Element type, void* logits, const int64_t* targets, const float* normalizers,
                                         const float* d_logprobs, float temperature, int64_t rows, int64_t vocabulary,
                                         GpuStream stream);

  // Generation, in rows.cu, product.cu, attention.cu and sample.cu.

  // x = the rows' embeddings (zeros for unused rows), and places [rows].
  const char* (*embed)(Element type, const StepRow* rows, const Slot* slots, const void* embedding, int64_t row_count,
                       int64_t hidden, void* x, Place* places, GpuStream stream);

  // x += the sum of `partial` (float32 [splits, rows, hidden], null for none) + bias (null for none), rounded after
  // each; y = RMSNorm(x) weight, as transformers rounds it. With `gather` (int32 [out_rows]) y's rows are those of x
  // that it names, and x stays as it is in the others; without, out_rows is row_count. hidden is a multiple of 4.
  const char* (*add_norm)(Element type, const float* partial, int64_t splits, const void* bias, void* x,
                          const void* weight, float epsilon, int64_t row_count, int64_t hidden, const int32_t* gather,
                          int64_t out_rows, void* y, GpuStream stream);

  // Number of sums into which a product of that shape is split in mode kPartial; the other modes have one.
  int64_t (*product_splits)(int64_t inputs, int64_t outputs);

  // y = x weight^T (+ bias, except in mode kPartial): x [rows, inputs], weight [outputs, inputs]. inputs is a multiple
  // of 8, and pointers of 16 bytes.
  const char* (*product)(Element type, ProductMode mode, const void* x, const void* weight, const void* bias,
                         int64_t row_count, int64_t inputs, int64_t outputs, void* y, GpuStream stream);

  // Makes heads of the sums: bias, norms, rotary positions; q to `query`, k and v to the cache.
  const char* (*finish_query_key_value)(Element type, HeadSums sums, const Place* places, int64_t row_count,
                                        HeadShape shape, LayerCache cache, void* query, GpuStream stream);

  // Copies the first positions of some slots side by side: keys and values [positions, kv heads, size] receive those of
  // slots[i] from row ends[i] on, ends[i + 1] - ends[i] of them. ends: [sequences + 1]; longest: the most of a
  // sequence.
  const char* (*gather)(Element type, LayerCache cache, const int32_t* slots, const int32_t* ends, int64_t sequences,
                        int64_t longest, HeadShape shape, void* keys, void* values, GpuStream stream);

  // For rows of which no two are of one slot: makes heads of the sums (finish_query_key_value, k and v with the same
  // bits), and y [rows, heads size] = attention of each row over positions 0 to its own. position_splits: enough for
  // the greatest, ceil((position + 1) / kAttentionSplit). sums: float32 [rows, heads, position_splits, size], bounds:
  // [.., 2]. arrived: [rows, kv_heads], zeros, and zeros again afterwards.
  const char* (*attention)(Element type, HeadSums heads, LayerCache cache, const Place* places, int64_t row_count,
                           HeadShape shape, int64_t position_splits, float* sums, float* bounds, int32_t* arrived,
                           void* y, GpuStream stream);

  // Samples the next token of the slot of places[rows[i]] (places[i] where `rows` is null) from logits row i, as
  // model/sampler.h says, writes it to ids and logprobs [slots, max_new_tokens], and advances the slot. Unused rows are
  // skipped. parts: room for [sampled_rows, ceil(vocabulary / kSampleSegment)].
  const char* (*sample)(Element type, const void* logits, int64_t sampled_rows, int64_t vocabulary, const int32_t* rows,
                        const Place* places, Slot* slots, const int32_t* end_ids, int32_t end_id_count,
                        SamplePart* parts, int32_t* ids, float* logprobs, int64_t max_new_tokens, GpuStream stream);
};

}  // namespace kgrpo::policy

#endif  // KGRPO_PLUGINS_POLICY_QWEN_GPU_KERNELS_H_
