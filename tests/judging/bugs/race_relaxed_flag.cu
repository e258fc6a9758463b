// problem: tests/evaluator/problems/row_sum
// bug: the flag that hands a sum to another warp is set without a release
// twin: honest/row_sum_released_flag
// finding: race in Sum: reads, 'half' (4 bytes), writes
__device__ unsigned AddressOf(int* flag) { return static_cast<unsigned>(__cvta_generic_to_shared(flag)); }
__device__ void Set(int* flag) { asm volatile("st.relaxed.cta.shared.s32 [%0], 1;" ::"r"(AddressOf(flag)) : "memory"); }
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
    half = sum;  // found
    Set(&flag);
  }
  if (threadIdx.x == 0) {
    while (Get(&flag) == 0) {
    }
    out[blockIdx.x] = sum + half;  // found
  }
}

extern "C" void launch(const float* x, float* out, int rows) { Sum<<<rows, 64>>>(x, out); }
