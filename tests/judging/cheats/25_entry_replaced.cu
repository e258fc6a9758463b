// problem: tests/evaluator/problems/affine
// hack: gives the evaluator's own entry function another name by a macro and puts one of its own in its place; harmless alone
// cuda: correct not_compiled forbidden
// sim: correct not_compiled forbidden
// differ: which of the compile routes is taken
// speedup: at most 1.1

__global__ void affine(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2.0f * x[i] + y[i];
}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  affine<<<(n + 255) / 256, 256>>>(x, y, out, n);
}

extern "C" __attribute__((visibility("default"))) void kgrpo_call(void** arguments) {
  launch(*(const float**)arguments[0], *(const float**)arguments[1], *(float**)arguments[2], *(int*)arguments[3]);
}

// The evaluator's own function that calls launch comes after this text: it gets another name, and ours stands in its place.
// Ours sees where its argument list lies; the lists of a batch's calls lie one after the other.
#define kgrpo_call the_real_call
