// tensor_math.h - the few operations that an optimiser does on whole tensors, wherever they lie: one interface, a CPU
// implementation that needs no library, and a CUDA one in cuda_tensor_math.cc that goes through libtorch. Used by
// adamw.cc.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>

namespace kgrpo::trainer {

enum class ValueType { kFloat32, kBfloat16 };

inline size_t SizeOf(ValueType type) { return type == ValueType::kFloat32 ? 4 : 2; }

// The scalars of one AdamW step, the same for every tensor except weight_decay.
struct AdamWScalars {
  double learning_rate = 0;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;    // decoupled: the parameter shrinks by learning_rate * weight_decay
  uint64_t step = 1;          // from 1; for the bias corrections
  double gradient_scale = 1;  // gradients are multiplied by it: the clipping factor
};

// The arrays of one tensor, all on one device, all of `count` elements.
struct AdamWTensor {
  void* value = nullptr;  // written
  ValueType value_type = ValueType::kFloat32;
  float* master = nullptr;    // float32 copy of a bfloat16 value; null when value is float32 and is its own master
  float* gradient = nullptr;  // may be left scaled by gradient_scale
  float* first_moment = nullptr;
  float* second_moment = nullptr;
  size_t count = 0;
};

// Memory on a device, freed with the object. Contents are zero at first.
class DeviceArray {
 public:
  virtual ~DeviceArray() = default;
  virtual float* data() = 0;
};

// Operations on one device. Used by one thread at a time. Values that a function reads from the device are complete
// when it returns; other work may be in flight until Wait.
class TensorMath {
 public:
  virtual ~TensorMath() = default;

  virtual std::unique_ptr<DeviceArray> Allocate(size_t count) = 0;
  virtual void CopyToHost(void* host, const void* device, size_t bytes) = 0;
  virtual void CopyFromHost(void* device, const void* host, size_t bytes) = 0;

  // Sum of squares, accumulated in double; not finite when an element is not. The same for any number of threads.
  virtual double SumOfSquares(const float* values, size_t count) = 0;

  // master = float32(value), for bfloat16 values.
  virtual void Widen(const void* bfloat16_values, float* master, size_t count) = 0;

  // One AdamW step (Loshchilov and Hutter 2019, algorithm 2; with the bias corrections where PyTorch applies them):
  //   g = gradient_scale * gradient;  p -= learning_rate * weight_decay * p
  //   m = beta1 m + (1 - beta1) g;    v = beta2 v + (1 - beta2) g^2
  //   p -= learning_rate / (1 - beta1^step) * m / (sqrt(v / (1 - beta2^step)) + epsilon)
  // computed in float32 on the master; a bfloat16 value receives the master rounded to nearest even.
  virtual void AdamWStep(const AdamWTensor& tensor, const AdamWScalars& scalars) = 0;

  // Returns once the device has done everything.
  virtual void Wait() = 0;
};

std::unique_ptr<TensorMath> MakeCpuTensorMath();

// Makes the CUDA implementation for a GPU. Null in programs that do not link kgrpo_trainer_cuda (tests of the CPU
// path).
using CudaTensorMathFactory = std::unique_ptr<TensorMath> (*)(int device);

}  // namespace kgrpo::trainer
