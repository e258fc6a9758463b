// problem: tests/evaluator/problems/affine
// style: cudaLaunchKernelEx with programmatic stream serialisation; the second kernel waits for the first itself
// cuda: correct
// sim: correct
__global__ void Double(const float* x, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2.0f * x[i];
  cudaTriggerProgrammaticLaunchCompletion();
}

__global__ void Add(const float* y, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const float addend = i < n ? y[i] : 0.0f;  // an input: may be read before the first kernel is done
  cudaGridDependencySynchronize();
  if (i < n) out[i] += addend;
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
