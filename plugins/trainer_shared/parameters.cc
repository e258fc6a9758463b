#include "trainer_shared/parameters.h"

#include <kgrpo/sdk/error.h>
#include <kgrpo/sdk/text.h>

namespace kgrpo::trainer {
namespace {

[[noreturn]] void RefuseParameter(const std::string& name, const std::string& problem) {
  throw Error(KGRPO_ERROR_UNSUPPORTED, "parameter \"" + name + "\" of the policy cannot be trained: " + problem);
}

size_t CountOf(const kgrpo_tensor& tensor) {
  size_t count = 1;
  for (int32_t i = 0; i < tensor.ndim; ++i) count *= static_cast<size_t>(tensor.shape[i]);
  return count;
}

bool IsCompact(const kgrpo_tensor& tensor) {
  if (tensor.strides == nullptr) return true;
  int64_t expected = 1;
  for (int32_t i = tensor.ndim - 1; i >= 0; --i) {
    if (tensor.shape[i] != 1 && tensor.strides[i] != expected) return false;
    expected *= tensor.shape[i];
  }
  return true;
}

void* First(const kgrpo_tensor& tensor) { return static_cast<char*>(tensor.data) + tensor.byte_offset; }

bool IsType(const kgrpo_tensor& tensor, uint8_t code, uint8_t bits) {
  return tensor.dtype.code == code && tensor.dtype.bits == bits && tensor.dtype.lanes == 1;
}

Parameter View(const kgrpo_parameter& source) {
  Parameter view;
  view.name = Copy(source.name);
  if (source.gradient == nullptr) RefuseParameter(view.name, "it is in a trainable group and has no gradient");
  const kgrpo_tensor& value = *source.value;
  const kgrpo_tensor& gradient = *source.gradient;
  view.shape.assign(value.shape, value.shape + value.ndim);
  view.count = CountOf(value);
  if (IsType(value, KGRPO_DTYPE_BFLOAT, 16)) {
    view.value_type = ValueType::kBfloat16;
  } else if (!IsType(value, KGRPO_DTYPE_FLOAT, 32)) {
    RefuseParameter(view.name, "its type is neither float32 nor bfloat16");
  }
  if (!IsType(gradient, KGRPO_DTYPE_FLOAT, 32)) RefuseParameter(view.name, "its gradient is not float32");
  if (std::vector<int64_t>(gradient.shape, gradient.shape + gradient.ndim) != view.shape) {
    RefuseParameter(view.name, "its gradient has another shape");
  }
  if (!IsCompact(value) || !IsCompact(gradient)) RefuseParameter(view.name, "it is not compact and row-major");
  if (value.device.type != gradient.device.type || value.device.id != gradient.device.id) {
    RefuseParameter(view.name, "its gradient lies on another device");
  }
  view.value = First(value);
  view.gradient = static_cast<float*>(First(gradient));
  return view;
}

ParameterSpan Span(const kgrpo_parameter_group& group, size_t index) {
  const kgrpo_tensor &value = *group.flat_value, &gradient = *group.flat_gradient;
  ParameterSpan span;
  span.count = CountOf(value);
  if (IsType(value, KGRPO_DTYPE_BFLOAT, 16)) span.value_type = ValueType::kBfloat16;
  span.value = First(value);
  span.gradient = static_cast<float*>(First(gradient));
  span.decay = group.decay != 0;
  span.group = index;
  return span;
}

// Adds the parameters of the group of that index, and the memory that they lie in.
void Add(const kgrpo_parameter_group& group, size_t index, ParameterSet& set) {
  const bool flat = group.flat_value != nullptr && group.flat_gradient != nullptr;
  if (flat) set.spans.push_back(Span(group, index));
  for (size_t i = 0; i < group.parameter_count; ++i) {
    Parameter parameter = View(*group.parameters[i]);
    if (!flat) {
      set.spans.push_back(
          {parameter.count, parameter.value_type, parameter.value, parameter.gradient, group.decay != 0, index});
    }
    const ParameterSpan& span = set.spans.back();
    const char* const begin = static_cast<const char*>(span.value);
    parameter.span = set.spans.size() - 1;
    parameter.offset =
        static_cast<size_t>(static_cast<const char*>(parameter.value) - begin) / SizeOf(parameter.value_type);
    if (parameter.value_type != span.value_type || parameter.offset + parameter.count > span.count ||
        parameter.gradient != span.gradient + parameter.offset) {
      RefuseParameter(parameter.name, "it is not the same slice of its group's flat values and gradients");
    }
    set.parameters.push_back(std::move(parameter));
  }
}

}  // namespace

ParameterSet ViewParameters(const kgrpo_policy_interface& api, kgrpo_policy* policy) {
  const kgrpo_parameter_group* const* groups = nullptr;
  size_t group_count = 0;
  Check(api.parameters(policy, &groups, &group_count));
  ParameterSet set;
  const kgrpo_parameter* first = nullptr;
  for (size_t g = 0; g < group_count; ++g) {
    const kgrpo_parameter_group& group = *groups[g];
    if (group.trainable == 0) continue;
    for (size_t i = 0; i < group.parameter_count; ++i) {
      const kgrpo_parameter& source = *group.parameters[i];
      if (first == nullptr) first = &source;
      const auto& device = source.value->device;
      if (device.type != KGRPO_DEVICE_CPU && device.type != KGRPO_DEVICE_CUDA) {
        RefuseParameter(Copy(source.name), "it lies on a device of a kind that is neither CPU nor CUDA");
      }
      if (device.type != first->value->device.type || device.id != first->value->device.id) {
        RefuseParameter(Copy(source.name), "it lies on another device than \"" + Copy(first->name) + "\"");
      }
    }
    Add(group, g, set);
  }
  if (first == nullptr) throw Error(KGRPO_ERROR_UNSUPPORTED, "the policy has no parameters to train");
  set.on_cuda = first->value->device.type == KGRPO_DEVICE_CUDA;
  set.device = first->value->device.id;
  return set;
}

}  // namespace kgrpo::trainer
