// The parameters and gradients of a Policy as kgrpo.policy/1 lends them: tensors, by group. Used by plugin.cc.
#ifndef KGRPO_PLUGINS_POLICY_QWEN_PARAMETER_VIEWS_H_
#define KGRPO_PLUGINS_POLICY_QWEN_PARAMETER_VIEWS_H_

#include <kgrpo/policy.h>

#include <deque>
#include <span>
#include <vector>

#include "policy_qwen/policy.h"

namespace kgrpo::policy {

// Two groups, each in the order in which files hold its parameters: "matrices", which decay, and "norms and biases".
// With an adapter these are frozen, and a third before them trains: "adapter", which decays.
// Borrows the policy's memory, which stays where it is.
class ParameterViews {
 public:
  // Makes the policy's gradients.
  explicit ParameterViews(Policy& policy);
  ParameterViews(const ParameterViews&) = delete;
  ParameterViews& operator=(const ParameterViews&) = delete;

  std::span<const kgrpo_parameter_group* const> groups() const { return groups_; }

 private:
  struct Group {
    kgrpo_parameter_group group = {};
    std::deque<kgrpo_parameter> parameters;
    std::vector<const kgrpo_parameter*> pointers;
  };

  const kgrpo_tensor* View(const at::Tensor& tensor);
  // `gradients` is null where the group is frozen.
  void AddGroup(std::string_view name, bool matrices, const TensorSet& values, const TensorSet* gradients);

  // Deques: what is pointed to never moves.
  std::deque<kgrpo_tensor> tensors_;
  std::deque<std::vector<int64_t>> shapes_;
  std::deque<Group> owned_;
  std::vector<const kgrpo_parameter_group*> groups_;
};

}  // namespace kgrpo::policy

#endif  // KGRPO_PLUGINS_POLICY_QWEN_PARAMETER_VIEWS_H_
