// Arrays of either element type on the interpreted GPU. Used by the tests of the kernels of generation.
#ifndef KGRPO_TESTS_POLICY_GPU_ELEMENTS_H_
#define KGRPO_TESTS_POLICY_GPU_ELEMENTS_H_

#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "fixtures/interpreted_gpu.h"
#include "policy_qwen/gpu/kernels.h"

namespace kgrpo::policy {

inline float RoundTo(Element type, float value) {
  if (type == Element::kFloat32) return value;
  const auto bits = std::bit_cast<uint32_t>(value);
  return std::bit_cast<float>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16 << 16);
}

class ElementArray {
 public:
  ElementArray(InterpretedGpu& gpu, Element type, size_t count)
      : type_(type), bytes_(gpu, count * Size(type)), count_(count) {}
  ElementArray(InterpretedGpu& gpu, Element type, const std::vector<float>& values)
      : ElementArray(gpu, type, values.size()) {
    Write(values);
  }

  void* data() const { return bytes_.data(); }
  bool AllWritten() const { return bytes_.AllWritten(); }
  void Write(const std::vector<float>& values) {
    std::vector<uint8_t> bytes(count_ * Size(type_));
    for (size_t i = 0; i < count_; ++i) {
      const auto bits = std::bit_cast<uint32_t>(RoundTo(type_, values[i])) >> (type_ == Element::kFloat32 ? 0 : 16);
      std::memcpy(bytes.data() + i * Size(type_), &bits, Size(type_));
    }
    bytes_.Write(bytes);
  }
  std::vector<float> Read() const {
    const std::vector<uint8_t> bytes = bytes_.Read();
    std::vector<float> values(count_);
    for (size_t i = 0; i < count_; ++i) {
      uint32_t bits = 0;
      std::memcpy(&bits, bytes.data() + i * Size(type_), Size(type_));
      values[i] = std::bit_cast<float>(bits << (type_ == Element::kFloat32 ? 0 : 16));
    }
    return values;
  }

 private:
  static size_t Size(Element type) { return type == Element::kFloat32 ? 4 : 2; }
  Element type_;
  GpuArray<uint8_t> bytes_;
  size_t count_;
};

inline constexpr GpuStream kStream = {1, nullptr};  // of the second device

// The interpreted GPU with the kernels of generation, and random values.
struct GenerationGpu {
  InterpretedGpu gpu{KGRPO_GPU_LIBRARY};
  const GpuKernels& kernels = *gpu.Symbol<const GpuKernels* (*)()>(GpuKernels::kEntry)();
  std::mt19937 random{7};

  std::vector<float> Normal(Element type, size_t count, float scale = 1) {
    std::normal_distribution<float> normal(0, scale);
    std::vector<float> values(count);
    for (float& value : values) value = RoundTo(type, normal(random));
    return values;
  }
};

inline std::string NameOf(Element type) { return type == Element::kFloat32 ? "Float32" : "Bfloat16"; }

}  // namespace kgrpo::policy

#endif  // KGRPO_TESTS_POLICY_GPU_ELEMENTS_H_
