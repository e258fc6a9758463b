// problem: tests/evaluator/problems/affine
// bug: the second kernel may begin before the first one has ended, and reads out before it waits for it
// twin: honest/affine_launch_ex
// finding: race in Add: before it waits for kernel 'Double', a race between launches
__global__ void Double(const float* x, float* out, int n) {
  cudaTriggerProgrammaticLaunchCompletion();
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2.0f * x[i];  // found
}

__global__ void Add(const float* y, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const float sum = i < n ? y[i] + out[i] : 0.0f;  // found
  cudaGridDependencySynchronize();
  if (i < n) out[i] = sum;
}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  const int blocks = (n + 255) / 256;
  Double<<<blocks, 256>>>(x, out, n);
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(blocks);
  config.blockDim = dim3(256);
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  config.attrs = &attribute;
  config.numAttrs = 1;
  cudaLaunchKernelEx(&config, Add, y, out, n);
}
