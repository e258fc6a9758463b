// problem: tests/evaluator/problems/affine
// bug: the third kernel may begin while the first still runs, since the second lets it begin before it has itself waited
// finding: race in Add: before it waits for kernel 'Double'
__global__ void Double(const float* x, float* out, int n) {
  cudaTriggerProgrammaticLaunchCompletion();
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2.0f * x[i];  // found
}

__global__ void Nothing() {
  cudaTriggerProgrammaticLaunchCompletion();
  cudaGridDependencySynchronize();
}

__global__ void Add(const float* y, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] += y[i];  // found
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
  cudaLaunchKernelEx(&config, Nothing);
  cudaLaunchKernelEx(&config, Add, y, out, n);
}
