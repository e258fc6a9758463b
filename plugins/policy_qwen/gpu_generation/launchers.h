// The functions behind the table of kernels.h, one group a file. Used by kernels.cu.
#ifndef KGRPO_PLUGINS_POLICY_QWEN_GPU_GENERATION_LAUNCHERS_H_
#define KGRPO_PLUGINS_POLICY_QWEN_GPU_GENERATION_LAUNCHERS_H_

#include "policy_qwen/gpu_generation/kernels.h"

namespace kgrpo::policy {

// Number of blocks that a launch aims at if its work can be divided so finely: two for each multiprocessor of an H100.
inline constexpr int64_t kBlocksWanted = 264;

// rows.cu
void Embed(Element type, const StepRow* rows, const Slot* slots, const void* embedding, int64_t row_count,
           int64_t hidden, void* x, Place* places, GpuStream stream);
void AddNorm(Element type, const float* partial, int64_t splits, const void* bias, void* x, const void* weight,
             float epsilon, int64_t row_count, int64_t hidden, const int32_t* gather, int64_t out_rows, void* y,
             GpuStream stream);
void FinishQueryKeyValue(Element type, const float* partial, int64_t splits, const void* bias, const void* query_norm,
                         const void* key_norm, float epsilon, const void* cos, const void* sin, const Place* places,
                         int64_t row_count, HeadShape shape, LayerCache cache, void* query, GpuStream stream);
void Gather(Element type, LayerCache cache, const int32_t* slots, const int32_t* ends, int64_t sequences,
            int64_t longest, HeadShape shape, void* keys, void* values, GpuStream stream);

// product.cu
int64_t ProductSplits(int64_t inputs, int64_t outputs);
void Product(Element type, ProductMode mode, const void* x, const void* weight, const void* bias, int64_t row_count,
             int64_t inputs, int64_t outputs, void* y, GpuStream stream);

// attention.cu
void Attention(Element type, const void* query, LayerCache cache, const Place* places, int64_t row_count,
               HeadShape shape, int64_t position_splits, float* sums, float* bounds, int32_t* arrived, void* y,
               GpuStream stream);
void AttentionOfNew(Element type, const float* partial, int64_t splits, const void* bias, const void* query_norm,
                    const void* key_norm, float epsilon, const void* cos, const void* sin, LayerCache cache,
                    const Place* places, int64_t row_count, HeadShape shape, int64_t position_splits, float* sums,
                    float* bounds, int32_t* arrived, void* y, GpuStream stream);

// sample.cu
void Sample(Element type, const void* logits, int64_t sampled_rows, int64_t vocabulary, const int32_t* rows,
            const Place* places, Slot* slots, const int32_t* end_ids, int32_t end_id_count, SamplePart* parts,
            int32_t* ids, float* logprobs, int64_t max_new_tokens, GpuStream stream);

}  // namespace kgrpo::policy

#endif  // KGRPO_PLUGINS_POLICY_QWEN_GPU_GENERATION_LAUNCHERS_H_
