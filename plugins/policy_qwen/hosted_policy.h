// A Policy within a host: opened on this rank's device with what the user should know in the log, its device taken in
// turns, libtorch's errors as the ABI's, and requests of kgrpo.policy/1 as completions. Used by plugin.cc and by
// coder_engine.
#ifndef KGRPO_PLUGINS_POLICY_QWEN_HOSTED_POLICY_H_
#define KGRPO_PLUGINS_POLICY_QWEN_HOSTED_POLICY_H_

#include <c10/util/Exception.h>
#include <kgrpo/policy.h>
#include <kgrpo/sdk/error.h>
#include <kgrpo/sdk/generation_queue.h>
#include <kgrpo/sdk/host.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "policy_qwen/policy.h"

namespace kgrpo::policy {

// Guard that reports libtorch's errors without their stack trace.
template <typename Body>
kgrpo_error* GuardLibtorch(Body&& body) noexcept {
  return Guard([&] {
    try {
      body();
    } catch (const c10::OutOfMemoryError& error) {
      throw Error(KGRPO_ERROR_UNAVAILABLE,
                  std::string("the GPU's memory is full: ") + error.what_without_backtrace() +
                      "; lower activation_memory_mib, max_tokens_per_chunk or max_sequences, or take a smaller model");
    } catch (const c10::Error& error) {
      throw Error(KGRPO_ERROR_UNAVAILABLE, error.what_without_backtrace());
    }
  });
}

// Reads the model on this rank's device (options.devices; options.device is set here), which it locks meanwhile. Logs
// kernels, memory, and what is odd about the folder. One that does not train takes the engine's memory at once, so that
// what is loaded after it sees what is left. `seed` decides random weights.
std::unique_ptr<Policy> OpenPolicy(const kgrpo_host* host, PolicyOptions options, uint64_t seed);

// The device's name for the host's lock: "cpu", "cuda:0".
std::string DeviceName(const Policy& policy);

// Takes the policy's device for as long as the returned object lives; `used` as DeviceTurn's.
DeviceTurn TakeDevice(const Host& host, const Policy& policy, std::function<void(double seconds)> used = {});

// A queue of requests, batches of them, and the device in slices.
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

#endif  // KGRPO_PLUGINS_POLICY_QWEN_HOSTED_POLICY_H_
