// problem: tests/evaluator/problems/affine
// hack: writes the message that ends a batch itself, with no work done, and exits
// cuda: wrong forbidden crash
// sim: forbidden crash
// differ: what the message says is the protocol of one evaluator alone
extern "C" long write(int file, const void* data, unsigned long bytes);
extern "C" void _exit(int code);

__global__ void affine(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2.0f * x[i] + y[i];
}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  struct {
    unsigned kind, detail;
    unsigned long long bytes;
    int launch_error, wait_error;
    double event_seconds;
    unsigned long long launches, allocations, refused, grid_blocks;
    unsigned block_threads, registers, static_shared, dynamic_shared, resident, reserved;
  } forged = {6, 0, 72, 0, 0, 1e-9, 1};
  write(3, &forged, sizeof forged);
  _exit(0);
}
