// problem: problems/positional_encoding
// style: the encoding of every column computed once into a __device__ table by a first launch, added to all rows by a second
// cuda: correct
// sim: correct
constexpr int kTable = 1 << 16;
__device__ float encoding[kTable];

__device__ float Encode(int column) {
  const double frequency = exp2(-13.287712379549449 * (column % 32) / 32.0);  // log2 of 10000
  return sinf(static_cast<float>((column / 32) * frequency));
}

__global__ void Fill(int cols) {
  const int c = blockIdx.x * blockDim.x + threadIdx.x;
  if (c < cols) encoding[c] = Encode(c);
}

__global__ void Add(const float* x, float* out, int rows, int cols) {
  const int c = blockIdx.x * blockDim.x + threadIdx.x;
  if (c >= cols) return;
  const float own = c < kTable ? encoding[c] : Encode(c);
  for (int r = blockIdx.y; r < rows; r += gridDim.y) {
    const size_t i = static_cast<size_t>(r) * cols + c;
    out[i] = x[i] + own;
  }
}

extern "C" void launch(const float* x, float* out, int rows, int cols) {
  const int filled = min(cols, kTable);
  Fill<<<(filled + 127) / 128, 128>>>(filled);
  Add<<<dim3((cols + 127) / 128, min(rows, 16)), 128>>>(x, out, rows, cols);
}
