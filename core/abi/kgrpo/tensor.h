/* SPDX-License-Identifier: Apache-2.0 */
/* kgrpo/tensor.h - how tensors cross: DLPack's DLTensor, declared here so that plugins need no other header.
 *
 * kgrpo_tensor has the layout of DLTensor as DLPack 1.x defines it (github.com/dmlc/dlpack, dlpack.h), and may be cast
 * to it. Tensors that cross this ABI are always borrowed views: the lender says for how long, and only the lender frees
 * them.
 *
 * A tensor on a GPU is ready in the order of the stream that crosses with it (kgrpo_policy_info.stream): a caller
 * can order its work by that stream and need not wait. A holder of the device's lock may also wait for the whole
 * device.
 */
#ifndef KGRPO_TENSOR_H
#define KGRPO_TENSOR_H
#include "abi.h" /* uint32_t and its kin */

/* DLDeviceType: the values in use here. */
#define KGRPO_DEVICE_CPU 1
#define KGRPO_DEVICE_CUDA 2

/* DLDataTypeCode: the values in use here. */
#define KGRPO_DTYPE_INT 0
#define KGRPO_DTYPE_UINT 1
#define KGRPO_DTYPE_FLOAT 2
#define KGRPO_DTYPE_BFLOAT 4

/* Layout of DLTensor. Frozen. */
typedef struct kgrpo_tensor {
  void* data;
  struct {
    int32_t type; /* KGRPO_DEVICE_* */
    int32_t id;   /* 0 on a CPU; the ordinal of the GPU */
  } device;
  int32_t ndim;
  struct {
    uint8_t code;   /* KGRPO_DTYPE_* */
    uint8_t bits;   /* of one element: 16, 32, 64 */
    uint16_t lanes; /* always 1 here */
  } dtype;
  int64_t* shape;       /* ndim extents */
  int64_t* strides;     /* ndim strides in elements; NULL means compact and row-major */
  uint64_t byte_offset; /* of the first element from data */
} kgrpo_tensor;
#endif
