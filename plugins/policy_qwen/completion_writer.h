// Requests of kgrpo.policy/1 become completions of a Policy: a queue, batches, and the device in slices. Used by
// plugin.cc and by coder_engine.
#ifndef KGRPO_PLUGINS_POLICY_QWEN_COMPLETION_WRITER_H_
#define KGRPO_PLUGINS_POLICY_QWEN_COMPLETION_WRITER_H_

#include <kgrpo/policy.h>
#include <kgrpo/sdk/generation_queue.h>
#include <kgrpo/sdk/host.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "policy_qwen/policy.h"

namespace kgrpo::policy {

class CompletionWriter {
 public:
  // `take_device` takes the device for as long as the returned object lives. The policy outlives the writer.
  CompletionWriter(const Host& host, Policy& policy, std::function<DeviceTurn()> take_device)
      : host_(host),
        policy_(policy),
        take_device_(std::move(take_device)),
        queue_([this](std::vector<PendingCompletion>& batch) { Write(batch); }) {}

  // Checks the requests and accepts all or none: throws KGRPO_ERROR_INVALID naming the first that is wrong. [any
  // thread]
  void Submit(const kgrpo_generate_request* const* requests, size_t count);
  void Cancel() { queue_.Cancel(); }  // [any thread]

 private:
  void Write(std::vector<PendingCompletion>& batch);
  void Finish(PendingCompletion& request, const Completion& completion) const;

  Host host_;
  Policy& policy_;
  std::function<DeviceTurn()> take_device_;
  GenerationQueue queue_;  // last: its thread uses all of the above
};

}  // namespace kgrpo::policy

#endif  // KGRPO_PLUGINS_POLICY_QWEN_COMPLETION_WRITER_H_
