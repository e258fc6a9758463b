// The parts of a pipeline that plugins play, under the names that pipeline files give them.
#ifndef KGRPO_BASE_ROLE_H
#define KGRPO_BASE_ROLE_H

#include <kgrpo/coder.h>
#include <kgrpo/evaluator.h>
#include <kgrpo/observer.h>
#include <kgrpo/policy.h>
#include <kgrpo/reward.h>
#include <kgrpo/trainer.h>

#include <array>

namespace kgrpo {

enum class Role { kPolicy, kCoder, kEvaluator, kReward, kTrainer, kObserver };

inline constexpr std::array<Role, 6> kRoles = {Role::kPolicy, Role::kCoder,   Role::kEvaluator,
                                               Role::kReward, Role::kTrainer, Role::kObserver};

// "policy", "coder", ...: the key in a pipeline file.
constexpr const char* RoleName(Role role) {
  constexpr const char* kNames[] = {"policy", "coder", "evaluator", "reward", "trainer", "observer"};
  return kNames[static_cast<int>(role)];
}

// The id of the interface that a plugin must offer to play the role.
constexpr const char* RoleInterface(Role role) {
  constexpr const char* kInterfaces[] = {KGRPO_POLICY_INTERFACE, KGRPO_CODER_INTERFACE,   KGRPO_EVALUATOR_INTERFACE,
                                         KGRPO_REWARD_INTERFACE, KGRPO_TRAINER_INTERFACE, KGRPO_OBSERVER_INTERFACE};
  return kInterfaces[static_cast<int>(role)];
}

// Size of the interface's table as first released; a plugin's table must be at least as large.
constexpr size_t RoleInterfaceSize(Role role) {
  constexpr size_t kSizes[] = {KGRPO_POLICY_INTERFACE_SIZE_1,    KGRPO_CODER_INTERFACE_SIZE_1,
                               KGRPO_EVALUATOR_INTERFACE_SIZE_1, KGRPO_REWARD_INTERFACE_SIZE_1,
                               KGRPO_TRAINER_INTERFACE_SIZE_1,   KGRPO_OBSERVER_INTERFACE_SIZE_1};
  return kSizes[static_cast<int>(role)];
}

}  // namespace kgrpo
#endif
