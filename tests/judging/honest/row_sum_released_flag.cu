// problem: tests/evaluator/problems/row_sum
// style: a warp hands its sum to another one by a flag in shared memory, released and acquired in the block
// cuda: correct
// sim: correct
__device__ unsigned AddressOf(int* flag) { return static_cast<unsigned>(__cvta_generic_to_shared(flag)); }
__device__ void Set(int* flag) { asm volatile("st.release.cta.shared.s32 [%0], 1;" ::"r"(AddressOf(flag)) : "memory"); }
__device__ int Get(int* flag) {
  int value;
  asm volatile("ld.acquire.cta.shared.s32 %0, [%1];" : "=r"(value) : "r"(AddressOf(flag)) : "memory");
  return value;
}

__global__ void Sum(const float* x, float* out) {
  __shared__ float half;
  __shared__ int flag;
  if (threadIdx.x == 0) flag = 0;
  __syncthreads();
  float sum = x[blockIdx.x * 64 + threadIdx.x];
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffffu, sum, offset);
  if (threadIdx.x == 32) {
    half = sum;
    Set(&flag);
  }
  if (threadIdx.x == 0) {
    while (Get(&flag) == 0) {
    }
    out[blockIdx.x] = sum + half;
  }
}

extern "C" void launch(const float* x, float* out, int rows) { Sum<<<rows, 64>>>(x, out); }
