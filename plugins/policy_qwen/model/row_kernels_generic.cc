// RowKernels for any processor: the compiler splits the vectors as it must.
#define KGRPO_LANES 8
#define KGRPO_TILE_ROWS 2
#define KGRPO_ROW_KERNELS kGenericRowKernels
#define KGRPO_ROW_KERNELS_NAME "generic"
#include "policy_qwen/model/row_kernels.inc"
