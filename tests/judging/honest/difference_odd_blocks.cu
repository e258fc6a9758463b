// problem: problems/sum_absolute_difference
// style: blocks of 160 threads, a shared atomicAdd on float, a second launch that scales
// cuda: correct
// sim: correct
__global__ void Zero(float* out) { out[0] = 0.0f; }

__global__ void Accumulate(const float* a, const float* b, float* out, int n) {
  __shared__ float sum;
  if (threadIdx.x == 0) sum = 0.0f;
  __syncthreads();
  float own = 0.0f;
#pragma unroll 4
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) own += fabsf(a[i] - b[i]);
  atomicAdd_block(&sum, own);
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(out, sum);
}

__global__ void Scale(float* out, float factor) { out[0] *= factor; }

extern "C" void launch(const float* a, const float* b, float* out, int n) {
  Zero<<<1, 1>>>(out);
  Accumulate<<<min((n + 159) / 160, 528), 160>>>(a, b, out, n);
  Scale<<<1, 1>>>(out, 1.0f / n);
}
