// The library's entry: the table of kernels.h.
#include "policy_qwen/gpu_generation/kernels.h"

#include "policy_qwen/gpu_generation/launchers.h"

extern "C" __attribute__((visibility("default"))) const kgrpo::policy::GenerationKernels*
kgrpo_policy_generation_kernels() {
  using namespace kgrpo::policy;
  static const GenerationKernels kKernels = {
      .struct_size = sizeof(GenerationKernels),
      .embed = Embed,
      .add_norm = AddNorm,
      .product_splits = ProductSplits,
      .product = Product,
      .finish_query_key_value = FinishQueryKeyValue,
      .attention = Attention,
      .attention_of_new = AttentionOfNew,
      .sample = Sample,
  };
  return &kKernels;
}
