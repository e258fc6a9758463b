// problem: tests/evaluator/problems/row_stencil
// style: threads past a row's end store a value that was never set; what they compute from it is discarded
// cuda: correct
// sim: correct
// says: line 11 stores a value to shared memory that was never set; no result depends on it
__global__ void Sum(const float* x, float* out, int cols) {
  __shared__ float s[1026];
  const int t = threadIdx.x;
  float v;
  if (t < cols) v = x[blockIdx.x * cols + t];
  s[t + 1] = v;
  if (t == 0) s[0] = s[1025] = 0;
  __syncthreads();
  const float left = s[t] + s[t + 1], sum = left + s[t + 2];
  if (t < cols) out[blockIdx.x * cols + t] = t + 1 < cols ? sum : left;
}

extern "C" void launch(const float* x, float* out, int rows, int cols) { Sum<<<rows, 1024>>>(x, out, cols); }
