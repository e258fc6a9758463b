// RowKernels for x86 processors with AVX-512.
#define KGRPO_LANES 16
#define KGRPO_TILE_ROWS 6
#define KGRPO_ROW_KERNELS kAvx512RowKernels
#define KGRPO_ROW_KERNELS_NAME "avx512"
#include "policy_qwen/model/row_kernels.inc"
