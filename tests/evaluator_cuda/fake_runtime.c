/* A CUDA runtime without a GPU for interposed_test.cc: each function fails with its own number, whatever its arguments. */
#define FAILS(name, number) \
  int name(void) {          \
    return number;          \
  }
FAILS(cudaMalloc, 11)
FAILS(cudaMallocAsync, 12)
FAILS(cudaMallocFromPoolAsync, 13)
FAILS(cudaMallocPitch, 14)
FAILS(cudaMalloc3D, 15)
FAILS(cudaMallocArray, 16)
FAILS(cudaMalloc3DArray, 17)
FAILS(cudaMallocMipmappedArray, 18)
FAILS(cudaGraphAddMemAllocNode, 19)
