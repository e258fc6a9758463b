#include "trainer_shared/parameters.h"

#include <kgrpo/sdk/error.h>
#include <kgrpo/sdk/text.h>

namespace kgrpo::trainer {
namespace {

[[noreturn]] void Refuse(const std::string& name, const std::string& problem) {
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

void* First(const kgrpo_tensor& tensor) {
  return static_cast<char*>(tensor.data) + tensor.byte_offset;
}

bool IsType(const kgrpo_tensor& tensor, uint8_t code, uint8_t bits) {
  return tensor.dtype.code == code && tensor.dtype.bits == bits && tensor.dtype.lanes == 1;
}

Parameter View(const kgrpo_parameter& source) {
  Parameter view;
  view.name = Copy(source.name);
  const kgrpo_tensor& value = *source.value;
  const kgrpo_tensor& gradient = *source.gradient;
  view.shape.assign(value.shape, value.shape + value.ndim);
  view.count = CountOf(value);
  if (IsType(value, KGRPO_DTYPE_BFLOAT, 16)) {
    view.value_type = ValueType::kBfloat16;
  } else if (!IsType(value, KGRPO_DTYPE_FLOAT, 32)) {
    Refuse(view.name, "its type is neither float32 nor bfloat16");
  }
  if (!IsType(gradient, KGRPO_DTYPE_FLOAT, 32)) Refuse(view.name, "its gradient is not float32");
  if (std::vector<int64_t>(gradient.shape, gradient.shape + gradient.ndim) != view.shape) {
    Refuse(view.name, "its gradient has another shape");
  }
  if (!IsCompact(value) || !IsCompact(gradient)) Refuse(view.name, "it is not compact and row-major");
  if (value.device.type != gradient.device.type || value.device.id != gradient.device.id) {
    Refuse(view.name, "its gradient lies on another device");
  }
  view.value = First(value);
  view.gradient = static_cast<float*>(First(gradient));
  view.decay = source.decay != 0;
  return view;
}

}  // namespace

ParameterSet ViewParameters(const kgrpo_policy_interface& api, kgrpo_policy* policy) {
  size_t count = 0;
  const kgrpo_parameter* source = api.parameters(policy, &count);
  if (count == 0) throw Error(KGRPO_ERROR_UNSUPPORTED, "the policy has no parameters to train");
  ParameterSet set;
  const kgrpo_tensor& first = *source[0].value;
  if (first.device.type != KGRPO_DEVICE_CPU && first.device.type != KGRPO_DEVICE_CUDA) {
    Refuse(Copy(source[0].name), "it lies on a device of a kind that is neither CPU nor CUDA");
  }
  set.on_cuda = first.device.type == KGRPO_DEVICE_CUDA;
  set.device = first.device.id;
  set.parameters.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    const kgrpo_tensor& value = *source[i].value;
    if (value.device.type != first.device.type || value.device.id != first.device.id) {
      Refuse(Copy(source[i].name), "it lies on another device than \"" + Copy(source[0].name) + "\"");
    }
    set.parameters.push_back(View(source[i]));
  }
  return set;
}

}  // namespace kgrpo::trainer
