// A coder whose model is in this process: a request becomes a prompt, the prompt a completion of the policy's engine,
// the completion a kernel or the reason why there is none. Made by plugin.cc.
#pragma once

#include <kgrpo/coder.h>
#include <kgrpo/sdk/host.h>
#include <kgrpo/support/metric_registry.h>

#include <memory>
#include <mutex>
#include <string>

#include "coder_engine/options.h"
#include "coder_shared/prompt.h"
#include "policy_qwen/hosted_policy.h"
#include "policy_qwen/policy.h"

namespace kgrpo::coder_engine {

class Coder {
 public:
  // Loads the model. Throws kgrpo::Error where the folder, its chat template or the device will not do.
  Coder(const kgrpo_host* host, CoderOptions options);

  // As kgrpo_coder_interface::implement. Requests in flight share batches; an answer does not depend on which. [any
  // thread]
  void Implement(const kgrpo_coder_request& request, kgrpo_coder_done done);

  // As kgrpo_coder_interface::cancel. [any thread]
  void Cancel() { writer_.Cancel(); }

  // The settings on one line: model, device, sampling. [any thread]
  std::string Describe() const;

  // The text that the model reads for a request. [any thread]
  std::string PromptText(const kgrpo_coder_request& request) const;

 private:
  struct Job;

  static void Finish(void* context, const kgrpo_completion* completion, kgrpo_error* error);
  void Answer(const Job& job, const kgrpo_completion& completion) const;
  std::string CutOffText(const Job& job, const kgrpo_completion& completion) const;
  std::string Render(const nlohmann::json& messages) const;

  Host host_;
  CoderOptions options_;
  mutable std::once_flag names_read_;
  mutable MetricRegistry names_;
  coder_shared::CoderPrompt prompt_;  // after names_
  std::unique_ptr<policy::Policy> policy_;
  policy::CompletionWriter writer_;  // last: its thread uses all of the above
};

}  // namespace kgrpo::coder_engine
