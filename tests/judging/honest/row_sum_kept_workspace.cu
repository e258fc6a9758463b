// problem: tests/evaluator/problems/row_sum
// style: a C++ class owns a workspace that grows as needed and is kept between calls
// cuda: correct
// sim: correct
#include <algorithm>
#include <cstddef>
#include <vector>

namespace {
class Workspace {
 public:
  float* Reserve(std::size_t elements) {
    if (elements > capacity_) {
      if (data_ != nullptr) cudaFree(data_);
      capacity_ = std::max(elements, 2 * capacity_);
      cudaMalloc(&data_, capacity_ * sizeof(float));
    }
    return data_;
  }

 private:
  float* data_ = nullptr;
  std::size_t capacity_ = 0;
};
}  // namespace

__global__ void Fold(const float* in, float* out, int width, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const float* first = in + static_cast<size_t>(i) * width;
  float sum = 0.0f;
  for (int j = 0; j < width; ++j) sum += first[j];
  out[i] = sum;
}

extern "C" void launch(const float* x, float* out, int rows) {
  static Workspace workspace;
  float* middle = workspace.Reserve(static_cast<std::size_t>(rows) * 8);
  struct Stage {
    const float* in;
    float* out;
    int count;
  };
  const std::vector<Stage> stages = {{x, middle, rows * 8}, {middle, out, rows}};
  for (const Stage& stage : stages) Fold<<<(stage.count + 63) / 64, 64>>>(stage.in, stage.out, 8, stage.count);
}
