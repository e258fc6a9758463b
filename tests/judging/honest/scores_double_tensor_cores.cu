// problem: problems/scores_transposed
// style: double precision tensor cores: mma.sync m8n8k4 f64 by inline PTX, exact products of float32
// cuda: correct
// sim: correct
__device__ void Mma(double (&d)[2], double a, double b) {
  asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
               : "+d"(d[0]), "+d"(d[1])
               : "d"(a), "d"(b));
}

__global__ void Scores(const float* a, const float* b, float* out, int m, int n, int k, float scale) {
  const int group = threadIdx.x / 4, member = threadIdx.x % 4;
  const int row0 = (blockIdx.y * blockDim.y + threadIdx.y) * 8, col0 = blockIdx.x * 16;
  double total[2][2] = {};
  for (int depth = 0; depth < k; depth += 4) {
    const int d = depth + member;
    const double left = row0 + group < m && d < k ? a[static_cast<size_t>(row0 + group) * k + d] : 0.0;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int col = col0 + 8 * half + group;
      Mma(total[half], left, col < n && d < k ? b[static_cast<size_t>(col) * k + d] : 0.0);
    }
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int row = row0 + group, col = col0 + 8 * (i / 2) + 2 * member + i % 2;
    if (row < m && col < n) out[static_cast<size_t>(row) * n + col] = static_cast<float>(scale * total[i / 2][i % 2]);
  }
}

extern "C" void launch(const float* a, const float* b, float* out, int m, int n, int k, float scale) {
  Scores<<<dim3((n + 15) / 16, (m + 31) / 32), dim3(32, 4)>>>(a, b, out, m, n, k, scale);
}
