// Kernels whose blocks do not all do the same, for block_census_test.cc.
__device__ void work(float* out, int place, int steps) {
  float value = out[place];
  for (int i = 0; i < steps; ++i) value = value * 0.5f + 1.0f;
  out[place] = value;
}

extern "C" __global__ void OneBlock(float* out, int which) {
  if (blockIdx.x == which) work(out, threadIdx.x, 2000);
}

extern "C" __global__ void EverySeventh(float* out, int steps) {
  if (blockIdx.x % 7 == 3) work(out, blockIdx.x * blockDim.x + threadIdx.x, steps);
}

extern "C" __global__ void Triangle(float* out, int each) {
  work(out, blockIdx.x * blockDim.x + threadIdx.x, each * blockIdx.x);
}

extern "C" __global__ void Tiles(float* out, int rows, int cols) {
  const int row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows || col >= cols) return;
  work(out, row * cols + col, row == 0 ? 300 : 100);
}

extern "C" __global__ void Strides(float* out, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) work(out, i, 10);
}

extern "C" __global__ void Even(float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) work(out, i, 50);
}

// How long each block works is read from memory.
extern "C" __global__ void ByData(float* out, const int* steps) {
  work(out, blockIdx.x * blockDim.x + threadIdx.x, steps[blockIdx.x]);
}

// Blocks take the next piece until there is none.
extern "C" __global__ void Tickets(float* out, int* next, int pieces) {
  __shared__ int taken;
  for (;;) {
    __syncthreads();
    if (threadIdx.x == 0) taken = atomicAdd(next, 1);
    __syncthreads();
    if (taken >= pieces) return;
    work(out, taken * blockDim.x + threadIdx.x, 100);
  }
}
