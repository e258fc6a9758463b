// The library's entry: the table of kernels.h.
#include "policy_qwen/gpu_generation/kernels.h"

#include "policy_qwen/gpu_generation/launchers.h"
#include "policy_qwen/gpu_training/launch.cuh"

extern "C" __attribute__((visibility("default"))) const kgrpo::policy::GenerationKernels*
kgrpo_policy_generation_kernels() {
  using namespace kgrpo::policy;
  static const GenerationKernels kKernels = {
      .struct_size = sizeof(GenerationKernels),
      .check_card = CheckCard<>,
      .embed = [](auto... arguments) { return Launch("embed", Embed, arguments...); },
      .add_norm = [](auto... arguments) { return Launch("add_norm", AddNorm, arguments...); },
      .product_splits = ProductSplits,
      .product = [](auto... arguments) { return Launch("product", Product, arguments...); },
      .finish_query_key_value =
          [](auto... arguments) { return Launch("finish_query_key_value", FinishQueryKeyValue, arguments...); },
      .gather = [](auto... arguments) { return Launch("gather", Gather, arguments...); },
      .attention = [](auto... arguments) { return Launch("attention", Attention, arguments...); },
      .attention_of_new = [](auto... arguments) { return Launch("attention_of_new", AttentionOfNew, arguments...); },
      .sample = [](auto... arguments) { return Launch("sample", Sample, arguments...); },
  };
  return &kKernels;
}
