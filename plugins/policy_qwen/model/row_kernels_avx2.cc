// RowKernels for x86 processors with AVX2 and FMA.
#define KGRPO_LANES 8
#define KGRPO_TILE_ROWS 2
#define KGRPO_ROW_KERNELS kAvx2RowKernels
#define KGRPO_ROW_KERNELS_NAME "avx2"
#include "policy_qwen/model/row_kernels.inc"
