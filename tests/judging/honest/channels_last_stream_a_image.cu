// problem: problems/channels_last
// style: images dealt to three side streams, forked and joined by events; a vector of streams on the host
// cuda: correct
// sim: correct
#include <vector>

__global__ void Transpose(const float* x, float* out, int rows, int cols, float scale) {
  __shared__ float tile[32][33];
  const int c = blockIdx.x * 32 + threadIdx.x;
  for (int j = threadIdx.y; j < 32; j += 4) {
    const int r = blockIdx.y * 32 + j;
    if (r < rows && c < cols) tile[j][threadIdx.x] = x[(size_t)r * cols + c];
  }
  __syncthreads();
  const int r = blockIdx.y * 32 + threadIdx.x;
  for (int j = threadIdx.y; j < 32; j += 4) {
    const int k = blockIdx.x * 32 + j;
    if (r < rows && k < cols) out[(size_t)k * rows + r] = scale * tile[threadIdx.x][j];
  }
}

extern "C" void launch(const float* x, float* out, int batch, int rows, int cols, float scale) {
  static std::vector<cudaStream_t> streams;
  static std::vector<cudaEvent_t> events;
  if (streams.empty()) {
    streams.resize(3);
    events.resize(4);
    for (auto& stream : streams) cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    for (auto& event : events) cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
  }
  cudaEventRecord(events[3]);
  for (cudaStream_t stream : streams) cudaStreamWaitEvent(stream, events[3]);
  const size_t image = (size_t)rows * cols;
  for (int b = 0; b < batch; ++b) {
    Transpose<<<dim3((cols + 31) / 32, (rows + 31) / 32), dim3(32, 4), 0, streams[b % 3]>>>(
        x + b * image, out + b * image, rows, cols, scale);
  }
  for (size_t s = 0; s < streams.size(); ++s) {
    cudaEventRecord(events[s], streams[s]);
    cudaStreamWaitEvent(nullptr, events[s]);
  }
}
