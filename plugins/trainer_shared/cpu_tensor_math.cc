// cpu_tensor_math.cc - TensorMath in plain loops that the compiler vectorises. Every element is computed from its own
// inputs alone and sums have a fixed block structure, so results are the same bit for bit on any number of threads.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "trainer_shared/parallel.h"
#include "trainer_shared/tensor_math.h"

namespace kgrpo::trainer {
namespace {

constexpr size_t kBlock = 1 << 15;  // elements; 128 KiB of float32, so a block's arrays stay in the second-level cache

size_t Blocks(size_t count) { return (count + kBlock - 1) / kBlock; }

class CpuArray : public DeviceArray {
 public:
  explicit CpuArray(size_t count) : values_(count, 0.0f) {}
  float* data() override { return values_.data(); }

 private:
  std::vector<float> values_;
};

float FromBfloat16(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

// Round to nearest, ties to even; a NaN stays one.
uint16_t ToBfloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
  const uint32_t quiet_nan = (bits >> 16) | 0x40u;
  return static_cast<uint16_t>((bits & 0x7FFFFFFFu) > 0x7F800000u ? quiet_nan : rounded);
}

struct StepConstants {
  float gradient_scale, keep, beta2, one_minus_beta1, one_minus_beta2, step_size, root_correction, epsilon;
};

void StepBlock(float* __restrict parameter, const float* __restrict gradient, float* __restrict first,
               float* __restrict second, size_t count, const StepConstants& c) {
  for (size_t i = 0; i < count; ++i) {
    const float g = gradient[i] * c.gradient_scale;
    const float m = first[i] + c.one_minus_beta1 * (g - first[i]);
    const float v = c.beta2 * second[i] + c.one_minus_beta2 * g * g;
    first[i] = m;
    second[i] = v;
    parameter[i] = parameter[i] * c.keep - c.step_size * m / (std::sqrt(v) / c.root_correction + c.epsilon);
  }
}

class CpuTensorMath : public TensorMath {
 public:
  std::unique_ptr<DeviceArray> Allocate(size_t count) override { return std::make_unique<CpuArray>(count); }

  void CopyToHost(void* host, const void* device, size_t bytes) override { std::memcpy(host, device, bytes); }
  void CopyFromHost(void* device, const void* host, size_t bytes) override { std::memcpy(device, host, bytes); }

  double SumOfSquares(const float* values, size_t count) override {
    std::vector<double> sums(Blocks(count));
    ParallelFor(sums.size(), [&](size_t block) {
      const float* begin = values + block * kBlock;
      const size_t size = std::min(kBlock, count - block * kBlock);
      // Eight partial sums: a chain of one would wait for each addition, and the compiler may not reorder doubles.
      double partial[8] = {};
      size_t i = 0;
      for (; i + 8 <= size; i += 8) {
        for (size_t lane = 0; lane < 8; ++lane) {
          partial[lane] += static_cast<double>(begin[i + lane]) * static_cast<double>(begin[i + lane]);
        }
      }
      for (; i < size; ++i) partial[0] += static_cast<double>(begin[i]) * static_cast<double>(begin[i]);
      for (double value : partial) sums[block] += value;
    });
    double sum = 0;
    for (double value : sums) sum += value;
    return sum;
  }

  void Widen(const void* bfloat16_values, float* master, size_t count) override {
    const auto* bits = static_cast<const uint16_t*>(bfloat16_values);
    ParallelFor(Blocks(count), [&](size_t block) {
      const size_t begin = block * kBlock, end = std::min(count, begin + kBlock);
      for (size_t i = begin; i < end; ++i) master[i] = FromBfloat16(bits[i]);
    });
  }

  void AdamWStep(const AdamWTensor& tensor, const AdamWScalars& s) override {
    const double step = static_cast<double>(s.step);
    const StepConstants constants = {
        static_cast<float>(s.gradient_scale),
        static_cast<float>(1.0 - s.learning_rate * s.weight_decay),
        static_cast<float>(s.beta2),
        static_cast<float>(1.0 - s.beta1),
        static_cast<float>(1.0 - s.beta2),
        static_cast<float>(s.learning_rate / (1.0 - std::pow(s.beta1, step))),
        static_cast<float>(std::sqrt(1.0 - std::pow(s.beta2, step))),
        static_cast<float>(s.epsilon),
    };
    float* parameter = tensor.master != nullptr ? tensor.master : static_cast<float*>(tensor.value);
    ParallelFor(Blocks(tensor.count), [&](size_t block) {
      const size_t begin = block * kBlock, size = std::min(kBlock, tensor.count - begin);
      StepBlock(parameter + begin, tensor.gradient + begin, tensor.first_moment + begin, tensor.second_moment + begin,
                size, constants);
      if (tensor.master == nullptr) return;
      auto* rounded = static_cast<uint16_t*>(tensor.value) + begin;
      for (size_t i = 0; i < size; ++i) rounded[i] = ToBfloat16(parameter[begin + i]);
    });
  }

  void Wait() override {}
};

}  // namespace

std::unique_ptr<TensorMath> MakeCpuTensorMath() { return std::make_unique<CpuTensorMath>(); }

}  // namespace kgrpo::trainer
