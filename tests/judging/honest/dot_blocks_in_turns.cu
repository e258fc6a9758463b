// problem: problems/dot_product
// style: blocks add their parts in turns; the last one resets the turn by a plain store, as its acquire has seen all updates
// cuda: correct
// sim: correct
__device__ int turn;

__global__ void Dot(const float* a, const float* b, float* out, int n) {
  float v = 0;
  for (int i = blockIdx.x * 32 + threadIdx.x; i < n; i += gridDim.x * 32) v += a[i] * b[i];
  for (int d = 16; d > 0; d /= 2) v += __shfl_down_sync(0xffffffffu, v, d);
  if (threadIdx.x != 0) return;
  int now;
  do asm volatile("ld.global.acquire.gpu.b32 %0, [%1];" : "=r"(now) : "l"(&turn) : "memory");
  while (now != blockIdx.x);
  out[0] = (blockIdx.x == 0 ? 0 : out[0]) + v;
  if (blockIdx.x == gridDim.x - 1) {
    turn = 0;
  } else {
    __threadfence();
    atomicAdd(&turn, 1);
  }
}

extern "C" void launch(const float* a, const float* b, float* out, int n) {
  Dot<<<n < 1024 ? (n + 31) / 32 : 32, 32>>>(a, b, out, n);
}
