// problem: problems/swiglu
// style: two independent kernels, one on a non-blocking side stream, then a third that needs both; a __device__ workspace in pieces
// cuda: correct
// sim: correct
constexpr int kPiece = 1 << 20;
__device__ float activated[kPiece];

__global__ void Activate(const float* gate, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) activated[i] = gate[i] / (1.0f + expf(-gate[i]));
}

__global__ void Scaled(const float* up, float* out, float scale, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = scale * up[i];
}

__global__ void Join(const float* residual, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = residual[i] + fmaxf(-4.0f, out[i] * activated[i]);
}

extern "C" void launch(const float* gate, const float* up, const float* residual, float* out, float scale, int n) {
  static cudaStream_t side = nullptr;
  static cudaEvent_t fork, join;
  if (side == nullptr) {
    cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking);
    cudaEventCreateWithFlags(&fork, cudaEventDisableTiming);
    cudaEventCreateWithFlags(&join, cudaEventDisableTiming);
  }
  for (int first = 0; first < n; first += kPiece) {
    const int count = min(kPiece, n - first), blocks = (count + 255) / 256;
    cudaEventRecord(fork, 0);
    cudaStreamWaitEvent(side, fork, 0);
    Activate<<<blocks, 256, 0, side>>>(gate + first, count);
    cudaEventRecord(join, side);
    Scaled<<<blocks, 256>>>(up + first, out + first, scale, count);
    cudaStreamWaitEvent(0, join, 0);
    Join<<<blocks, 256>>>(residual + first, out + first, count);
  }
}
