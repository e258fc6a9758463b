#include "policy_qwen/parameter_views.h"

#include <kgrpo/sdk/text.h>

namespace kgrpo::policy {

ParameterViews::ParameterViews(Policy& policy) {
  const ParameterSet* gradients = nullptr;
  if (TrainedAdapter* adapter = policy.adapter()) {
    AddGroup("adapter", true, adapter->factors(), &adapter->gradients());
  } else {
    gradients = &policy.gradients();
  }
  AddGroup("matrices", true, policy.parameters(), gradients);
  AddGroup("norms and biases", false, policy.parameters(), gradients);
}

const kgrpo_tensor* ParameterViews::View(const at::Tensor& tensor) {
  std::vector<int64_t>& shape = shapes_.emplace_back(tensor.sizes().vec());
  const bool is_bfloat16 = tensor.scalar_type() == at::kBFloat16;
  kgrpo_tensor& view = tensors_.emplace_back();
  view.data = tensor.mutable_data_ptr();
  view.device.type = tensor.is_cuda() ? KGRPO_DEVICE_CUDA : KGRPO_DEVICE_CPU;
  view.device.id = tensor.is_cuda() ? tensor.device().index() : 0;
  view.ndim = static_cast<int32_t>(shape.size());
  view.dtype.code = is_bfloat16 ? KGRPO_DTYPE_BFLOAT : KGRPO_DTYPE_FLOAT;
  view.dtype.bits = is_bfloat16 ? 16 : 32;
  view.dtype.lanes = 1;
  view.shape = shape.data();
  return &view;
}

void ParameterViews::AddGroup(std::string_view name, bool matrices, const TensorSet& values,
                              const TensorSet* gradients) {
  Group& made = owned_.emplace_back();
  for (size_t i = 0; i < values.specs().size(); ++i) {
    if (values.specs()[i].is_matrix != matrices) continue;
    made.pointers.push_back(&made.parameters.emplace_back(
        kgrpo_parameter{sizeof(kgrpo_parameter), Str(values.specs()[i].name), View(values.Get(i)),
                        gradients == nullptr ? nullptr : View(gradients->Get(i))}));
  }
  made.group = {.struct_size = sizeof(kgrpo_parameter_group),
                .name = Str(name),
                .trainable = gradients == nullptr ? 0 : 1,
                .decay = matrices ? 1 : 0,
                .parameters = made.pointers.data(),
                .parameter_count = made.pointers.size(),
                .flat_value = View(values.Group(matrices)),
                .flat_gradient = gradients == nullptr ? nullptr : View(gradients->Group(matrices))};
  groups_.push_back(&made.group);
}

}  // namespace kgrpo::policy
