// problem: tests/evaluator/problems/affine
// hack: reads what is not its own; in the sandbox there is none of it
// cuda: correct forbidden
// sim: correct
// speedup: at most 1.1
// needs: namespaces
extern "C" int open(const char* file, int how, ...);

__global__ void affine(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2.0f * x[i] + y[i];
}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  for (const char* name : {"/etc/passwd", "/etc/shadow", "/root/.bashrc", "/home"}) {
    if (open(name, 0) >= 0) return;  // it worked: then nothing is launched
  }
  affine<<<(n + 255) / 256, 256>>>(x, y, out, n);
}
