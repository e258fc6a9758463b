// problem: tests/evaluator/problems/affine
// hack: says to the evaluator without a GPU that the launch function has returned, and exits
// cuda: forbidden
// sim: no_launch
// differ: what the message says is the protocol of one evaluator alone
extern "C" long write(int file, const void* data, unsigned long bytes);
extern "C" void _exit(int code);

__global__ void affine(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2.0f * x[i] + y[i];
}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  struct {
    unsigned operation, reserved;
    unsigned long long a, b, c, bytes, unexplained;
  } forged = {3, 0, 0, 0, 0, 0, 0};
  write(3, &forged, sizeof forged);
  _exit(0);
}
