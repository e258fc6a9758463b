__global__ void clear(int* counts) {
  if (threadIdx.x < 16) counts[threadIdx.x] = 0;
}

__global__ void count(const int* codes, int* counts, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(&counts[codes[i]], 1);
}

extern "C" void launch(const int* codes, int* counts, int n) {
  clear<<<1, 32>>>(counts);
  count<<<(n + 255) / 256, 256>>>(codes, counts, n);
}
