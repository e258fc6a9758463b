// The parameters of a Policy as the trainers' optimiser sees them. Used by training.cc and reduction.cc.
#ifndef KGRPO_BENCH_POLICY_SPANS_H_
#define KGRPO_BENCH_POLICY_SPANS_H_

#include <cstddef>

#include "policy_qwen/policy.h"
#include "trainer_shared/parameters.h"

namespace kgrpo::bench {

// Its two flat groups, or the adapter's one.
inline trainer::ParameterSet SpansOf(policy::Policy& policy) {
  trainer::ParameterSet set;
  set.on_cuda = policy.device().is_cuda();
  set.device = set.on_cuda ? policy.device().index() : 0;
  if (policy::TrainedAdapter* adapter = policy.adapter()) {
    const at::Tensor &value = adapter->factors().buffer(), &gradient = adapter->gradients().buffer();
    set.spans.push_back({static_cast<size_t>(value.numel()), trainer::ValueType::kFloat32, value.mutable_data_ptr(),
                         gradient.mutable_data_ptr<float>(), true, size_t{0}});
    return set;
  }
  for (const bool matrices : {true, false}) {
    const at::Tensor value = policy.parameters().Group(matrices), gradient = policy.gradients().Group(matrices);
    const bool bfloat16 = value.scalar_type() == at::kBFloat16;
    set.spans.push_back(
        {static_cast<size_t>(value.numel()), bfloat16 ? trainer::ValueType::kBfloat16 : trainer::ValueType::kFloat32,
         value.mutable_data_ptr(), gradient.mutable_data_ptr<float>(), matrices, matrices ? size_t{0} : size_t{1}});
  }
  return set;
}

}  // namespace kgrpo::bench

#endif  // KGRPO_BENCH_POLICY_SPANS_H_
