// problem: tests/evaluator/problems/row_stencil
// style: a warp walks a row, and keeps what it is about to overwrite in registers
// cuda: correct
// sim: correct
__global__ void Sum(const float* x, float* out, int cols) {
  const size_t start = static_cast<size_t>(blockIdx.x) * cols;
  const int lane = threadIdx.x;
  float last = 0.0f;  // the element before this part of the row
  float mine = lane < cols ? x[start + lane] : 0.0f;
  for (int first = 0; first < cols; first += 32) {
    const int c = first + lane;
    const float next = c + 32 < cols ? x[start + c + 32] : 0.0f;
    float left = __shfl_up_sync(0xffffffffu, mine, 1), right = __shfl_down_sync(0xffffffffu, mine, 1);
    const float behind = __shfl_sync(0xffffffffu, next, 0);
    if (lane == 0) left = last;
    if (lane == 31) right = behind;
    if (c < cols) out[start + c] = left + mine + right;
    last = __shfl_sync(0xffffffffu, mine, 31);
    mine = next;
  }
}

extern "C" void launch(const float* x, float* out, int rows, int cols) {
  Sum<<<rows, 32>>>(x, out, cols);
}
