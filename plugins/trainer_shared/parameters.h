// parameters.h - a policy's parameters as the optimiser sees them: flat arrays and the memory they lie in, checked
// once. Used by adamw.cc and by the trainers when a stage begins.
#pragma once
#include <kgrpo/policy.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "trainer_shared/tensor_math.h"

namespace kgrpo::trainer {

// A borrowed view of one parameter tensor and its gradient; valid as long as the policy.
struct Parameter {
  std::string name;
  std::vector<int64_t> shape;
  size_t count = 0;  // of elements
  ValueType value_type = ValueType::kFloat32;
  void* value = nullptr;
  float* gradient = nullptr;
  size_t span = 0;    // the index of the span that it lies in
  size_t offset = 0;  // of its first element in the span
};

// A run of memory that one operation steps: a group's flat buffers where the policy has them, else one parameter.
struct ParameterSpan {
  size_t count = 0;  // of elements
  ValueType value_type = ValueType::kFloat32;
  void* value = nullptr;
  float* gradient = nullptr;
  bool decay = false;  // whether weight decay applies
  size_t group = 0;    // the index of the group that it is of
};

struct ParameterSet {
  std::vector<Parameter> parameters;
  std::vector<ParameterSpan> spans;
  bool on_cuda = false;  // where all of them lie
  int device = 0;
};

// The parameters of the policy's trainable groups, group after group. Throws KGRPO_ERROR_UNSUPPORTED, naming the
// tensor, when one is neither float32 nor bfloat16, is not compact and row-major, has a gradient of another shape, type
// or device, lies on another device than the rest, or is no slice of its group's flat buffers.
ParameterSet ViewParameters(const kgrpo_policy_interface& api, kgrpo_policy* policy);

}  // namespace kgrpo::trainer
