// problem: problems/measurement_histogram
// style: every thread writes partial counts; barrier, fence, ticket; the last block joins
// cuda: correct
// sim: correct
__device__ int partial[16][1024];
__device__ unsigned tickets;

__global__ void Count(const float* x, int* counts, int n) {
  __shared__ int bins[1024];
  __shared__ bool last;
  for (int b = threadIdx.x; b < 1024; b += 256) bins[b] = 0;
  __syncthreads();
  for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) {
    atomicAdd(&bins[min(max(static_cast<int>(floorf(x[i] * 128.0f + 512.0f)), 0), 1023)], 1);
  }
  __syncthreads();
  for (int b = threadIdx.x; b < 1024; b += 256) partial[blockIdx.x][b] = bins[b];
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    last = atomicInc(&tickets, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (!last) return;
  __threadfence();
  for (int b = threadIdx.x; b < 1024; b += 256) {
    int sum = 0;
    for (int k = 0; k < gridDim.x; ++k) sum += partial[k][b];
    counts[b] = sum;
  }
}

extern "C" void launch(const float* x, int* counts, int n) { Count<<<16, 256>>>(x, counts, n); }
