// The checks of what a policy's backward passes add to its gradients. Used by policy.cc.
#ifndef KGRPO_VALIDATE_GRADIENTS_H
#define KGRPO_VALIDATE_GRADIENTS_H

#include <kgrpo/policy.h>

#include <cstdint>
#include <string>
#include <vector>

#include "plugin/records.h"

namespace kgrpo::validate {

int64_t Elements(const kgrpo_tensor& tensor);
// The address of the first element.
uintptr_t Begin(const kgrpo_tensor& tensor);

// Each returns a remark on what it found. `completion` is what the policy wrote for `prompt`.
std::string CheckGradients(const kgrpo_policy_interface& api, kgrpo_policy* policy, const std::vector<int32_t>& prompt,
                           const Completion& completion);
std::string CheckPieces(const kgrpo_policy_interface& api, kgrpo_policy* policy, const std::vector<int32_t>& prompt,
                        const Completion& completion);

}  // namespace kgrpo::validate
#endif
