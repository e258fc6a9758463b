// problem: tests/evaluator/problems/affine
// hack: the reference under other names; its speedup is 1
// cuda: correct
// sim: correct
// speedup: at most 1.1
// A completely new approach.
__global__ void turbo_affine(const float* first, const float* second, float* result, int count) {
  int index = blockIdx.x * blockDim.x + threadIdx.x;
  if (index < count) result[index] = 2.0f * first[index] + second[index];
}

extern "C" void launch(const float* first, const float* second, float* result, int count) {
  turbo_affine<<<(count + 255) / 256, 256>>>(first, second, result, count);
}
