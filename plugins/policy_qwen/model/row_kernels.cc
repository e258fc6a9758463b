#include "policy_qwen/model/row_kernels.h"

namespace kgrpo::policy {

const RowKernels& BestRowKernels() {
#ifdef KGRPO_X86_ROW_KERNELS
  static const RowKernels& best = [&]() -> const RowKernels& {
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
      return kAvx512RowKernels;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return kAvx2RowKernels;
    return kGenericRowKernels;
  }();
  return best;
#else
  return kGenericRowKernels;
#endif
}

}  // namespace kgrpo::policy
