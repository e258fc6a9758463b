// The optimiser's operations through libtorch against those of the CPU path: always on
// libtorch's own CPU operators, and on a GPU if KGRPO_TEST_DEVICE=cuda:0, or another GPU, is set.
#include "trainer_shared/cuda_tensor_math.h"

#include <dlfcn.h>

#include "test.h"
#include "trainer_shared/tensor_math.h"

namespace kgrpo::trainer {
namespace {

std::string Device() {
  const char* device = std::getenv("KGRPO_TEST_DEVICE");
  return device == nullptr ? "cpu" : device;
}

// libtorch registers its CUDA operators when that library is loaded, which a policy on a GPU has done.
void LoadCudaLibrary() {
  if (Device() == "cpu") return;
  ASSERT_NE(dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_GLOBAL), nullptr) << dlerror();
}

// An array on the device under test, seen as bytes.
class OnDevice {
 public:
  OnDevice(TensorMath& math, const void* host, size_t bytes)
      : math_(math), memory_(math.Allocate((bytes + 3) / 4)), bytes_(bytes) {
    math_.CopyFromHost(memory_->data(), host, bytes);
  }
  float* data() { return memory_->data(); }
  template <typename T>
  std::vector<T> Read() {
    std::vector<T> host(bytes_ / sizeof(T));
    math_.CopyToHost(host.data(), memory_->data(), bytes_);
    return host;
  }

 private:
  TensorMath& math_;
  std::unique_ptr<DeviceArray> memory_;
  size_t bytes_;
};

std::vector<float> Random(size_t count, uint64_t seed) {
  std::mt19937_64 engine(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(engine);
  return values;
}

TEST(TorchTensorMath, StepsAndNormsAreThoseOfTheCpuPath) {
  ASSERT_NO_FATAL_FAILURE(LoadCudaLibrary());
  const size_t count = 100'003;
  const auto torch = MakeTorchTensorMath(Device());
  const auto plain = MakeCpuTensorMath();
  for (bool bfloat16 : {false, true}) {
    SCOPED_TRACE(bfloat16);
    std::vector<float> value = Random(count, 1), first(count), second(count), master(count);
    std::vector<uint16_t> narrow(count);
    for (size_t i = 0; i < count; ++i) {
      uint32_t bits;
      std::memcpy(&bits, &value[i], 4);
      narrow[i] = static_cast<uint16_t>(bits >> 16);
    }
    void* host_value = bfloat16 ? static_cast<void*>(narrow.data()) : value.data();
    OnDevice device_value(*torch, host_value, count * (bfloat16 ? 2 : 4));
    const std::vector<float> zeros(count);
    OnDevice device_first(*torch, zeros.data(), count * 4), device_second(*torch, zeros.data(), count * 4);
    OnDevice device_master(*torch, zeros.data(), count * 4);
    if (bfloat16) {
      plain->Widen(narrow.data(), master.data(), count);
      torch->Widen(device_value.data(), device_master.data(), count);
      EXPECT_EQ(device_master.Read<float>(), master);
    }
    const ValueType type = bfloat16 ? ValueType::kBfloat16 : ValueType::kFloat32;
    for (uint64_t step = 1; step <= 5; ++step) {
      std::vector<float> gradient = Random(count, 1 + step);
      OnDevice device_gradient(*torch, gradient.data(), count * 4);
      const double norm = plain->SumOfSquares(gradient.data(), count);
      EXPECT_NEAR(torch->SumOfSquares(device_gradient.data(), count), norm, 2e-6 * norm);
      const AdamWScalars scalars{1e-2, 0.9, 0.99, 1e-8, 0.1, step, 0.3};
      plain->AdamWStep(
          {host_value, type, bfloat16 ? master.data() : nullptr, gradient.data(), first.data(), second.data(), count},
          scalars);
      torch->AdamWStep({device_value.data(), type, bfloat16 ? device_master.data() : nullptr, device_gradient.data(),
                        device_first.data(), device_second.data(), count},
                       scalars);
    }
    const auto result = bfloat16 ? device_master.Read<float>() : device_value.Read<float>();
    const std::vector<float>& expected = bfloat16 ? master : value;
    for (size_t i = 0; i < count; ++i) ASSERT_NEAR(result[i], expected[i], 2e-6 * (1 + std::abs(expected[i]))) << i;
    if (bfloat16) {
      const auto rounded = device_value.Read<uint16_t>();
      size_t different = 0;
      for (size_t i = 0; i < count; ++i) different += rounded[i] == narrow[i] ? 0 : 1;
      EXPECT_LE(different, count / 1000) << "only masters that differ in their last bits may round otherwise";
    }
  }
}

TEST(TorchTensorMath, ANonFiniteGradientIsSeenInTheNorm) {
  ASSERT_NO_FATAL_FAILURE(LoadCudaLibrary());
  const auto torch = MakeTorchTensorMath(Device());
  for (float bad : {INFINITY, NAN}) {
    std::vector<float> gradient = Random(1000, 3);
    gradient[500] = bad;
    OnDevice on_device(*torch, gradient.data(), 4000);
    EXPECT_FALSE(std::isfinite(torch->SumOfSquares(on_device.data(), 1000)));
  }
}

}  // namespace
}  // namespace kgrpo::trainer
