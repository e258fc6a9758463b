// problem: problems/measurement_histogram
// style: a loop of ballots adds all lanes that share the first lane's bin, until none is left
// cuda: correct
// sim: correct
__device__ int Bin(float x) { return min(max((int)floorf(x * 128.0f + 512.0f), 0), 1023); }

__global__ void Count(const float* x, int* counts, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const int lane = threadIdx.x % 32;
  const int bin = i < n ? Bin(x[i]) : -1;
  unsigned left = __ballot_sync(0xffffffffu, i < n);
  while (left != 0) {
    const int leader = __ffs(left) - 1;
    const int wanted = __shfl_sync(0xffffffffu, bin, leader);
    const unsigned same = __ballot_sync(0xffffffffu, bin == wanted);
    if (lane == leader) atomicAdd(counts + wanted, __popc(same));
    left &= ~same;
  }
}

extern "C" void launch(const float* x, int* counts, int n) {
  cudaMemset(counts, 0, 1024 * sizeof(int));
  Count<<<(n + 127) / 128, 128>>>(x, counts, n);
}
