// The checks that call an interface with made-up requests: one function a role, in <role>.cc. Called by
// validate.cc within a child process.
#ifndef KGRPO_VALIDATE_CALLS_H
#define KGRPO_VALIDATE_CALLS_H

#include <kgrpo/coder.h>
#include <kgrpo/draft/evaluator_tools.h>
#include <kgrpo/observer.h>
#include <kgrpo/policy.h>
#include <kgrpo/reward.h>
#include <kgrpo/trainer.h>

#include <filesystem>

#include "validate/session.h"
#include "validate/validate.h"

namespace kgrpo::validate {

// Options and a folder for the calls of a role.
struct CallContext {
  const ValidateOptions& options;
  std::filesystem::path directory;  // empty, to write in
};

void CheckReward(Session& session, const kgrpo_reward_interface& api, kgrpo_reward* reward);
void CheckCoder(Session& session, const kgrpo_coder_interface& api, kgrpo_coder* coder, const CallContext& context);
void CheckEvaluator(Session& session, const kgrpo_evaluator_interface& api, kgrpo_evaluator* evaluator,
                    const CallContext& context);
void CheckPolicy(Session& session, const kgrpo_policy_interface& api, kgrpo_policy* policy, const CallContext& context);
void CheckTrainer(Session& session, const kgrpo_host* host, const kgrpo_trainer_interface& api, kgrpo_trainer* trainer);
void CheckObserver(Session& session, const kgrpo_observer_interface& api, kgrpo_observer* observer,
                   const CallContext& context);

}  // namespace kgrpo::validate
#endif
