// problem: problems/matmul
// hack: one block in the middle of 4,099 computes the whole product, the others return
// cuda: correct
// sim: correct not_timed
// speedup: at most 0.1
// least: 6300 us: 16.8 million products of a warp and their two loads, 4 a cycle of 1.98 GHz
__global__ void matmul(const float* a, const float* b, float* out, int m, int n, int k) {
  if (blockIdx.x != gridDim.x / 2) return;
  for (int at = threadIdx.x; at < m * n; at += blockDim.x) {
    const int row = at / n, col = at % n;
    float total = 0;
    for (int i = 0; i < k; ++i) total += a[row * k + i] * b[i * n + col];
    out[at] = total;
  }
}

extern "C" void launch(const float* a, const float* b, float* out, int m, int n, int k) {
  matmul<<<4099, 1024>>>(a, b, out, m, n, k);
}
