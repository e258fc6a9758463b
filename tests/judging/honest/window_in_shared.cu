// problem: problems/window_frames
// style: coefficients of 256 columns in shared memory, all rows of a 3D grid's slice walked by one block
// cuda: correct
// sim: correct
constexpr int kColumns = 256;

__device__ float Coefficient(int column, int cols, float power) {
  const float phase = static_cast<float>(column) / static_cast<float>(cols);
  const float distance = fabsf(2.0f * phase - 1.0f);
  return expf(-power * powf(distance, power)) * (0.5f - 0.5f * cospif(2.0f * phase));
}

__global__ void Window(const float* x, float* out, int rows, int cols, float power) {
  __shared__ float window[kColumns];
  const int first = blockIdx.x * kColumns, count = min(kColumns, cols - first);
  const int thread = threadIdx.y * blockDim.x + threadIdx.x;
  for (int c = thread; c < count; c += blockDim.x * blockDim.y) window[c] = Coefficient(first + c, cols, power);
  __syncthreads();
  const int step = gridDim.y * gridDim.z * blockDim.y;
  for (int r = (blockIdx.z * gridDim.y + blockIdx.y) * blockDim.y + threadIdx.y; r < rows; r += step) {
    for (int c = threadIdx.x; c < count; c += blockDim.x) {
      const size_t i = static_cast<size_t>(r) * cols + first + c;
      out[i] = x[i] * window[c];
    }
  }
}

extern "C" void launch(const float* x, float* out, int rows, int cols, float power) {
  Window<<<dim3((cols + kColumns - 1) / kColumns, 8, 4), dim3(64, 2)>>>(x, out, rows, cols, power);
}
