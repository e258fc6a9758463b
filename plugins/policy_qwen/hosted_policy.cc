#include "policy_qwen/hosted_policy.h"

#include <kgrpo/sdk/collective.h>
#include <kgrpo/sdk/text.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "policy_qwen/device.h"
#include "policy_qwen/files.h"
#include "policy_qwen/model/safetensors.h"
#include "policy_qwen/rank_device.h"

namespace kgrpo::policy {
namespace {

RankPlace PlaceOf(const Collective& ranks) {
  const char* chosen = std::getenv("CUDA_VISIBLE_DEVICES");
  return {ranks.local_rank(), ranks.local_size(), chosen != nullptr && *chosen != '\0'};
}

SamplingOptions ToOptions(const kgrpo_sampling& sampling) {
  return {sampling.max_new_tokens, sampling.temperature, sampling.top_k, sampling.top_p, sampling.min_p};
}

}  // namespace

std::unique_ptr<Policy> OpenPolicy(const kgrpo_host* raw_host, PolicyOptions options, uint64_t seed) {
  const Host host(raw_host);
  const Collective ranks(raw_host);
  options.device = DeviceOfRank(options.devices, PlaceOf(ranks), DeviceCount, options.part);
  if (options.random_weights && HasTensorFiles(SnapshotOf(options.model))) {
    host.Warn("init: random: the weights in " + options.model +
              " are not read; to start from them, set init: pretrained");
  }
  const DeviceLock lock(host, options.device);
  auto policy = std::make_unique<Policy>(options, seed);
  WaitForDevice(policy->device());
  for (const std::string& note : policy->config().notes) host.Warn(note);
  for (const std::string& marker : policy->ForeignMarkers()) {
    host.Warn("the chat template of " + options.model + " writes " + marker +
              ", which is not one token of its vocabulary but several");
  }
  const std::string where = options.part + " on " + DeviceName(*policy) + ": ";
  if (policy->device().is_cuda()) {
    const KernelChoice& choice = policy->engine_choice();
    host.Info(where + "generation by " + (choice.ours ? "the engine" : "the CPU (" + choice.why_not + ")") +
              (options.trains ? ", training by fused kernels" : ""));
  }
  if (policy->parameter_count() > 0 && (policy->device().is_cuda() || options.adapter || !options.trains)) {
    const MemoryNeeds needs = policy->Memory(ranks.size());
    host.Info((options.trains ? "" : where) + MemoryText(needs));
    if (const std::string warning = MemoryWarning(needs); !warning.empty()) host.Warn(warning);
  }
  if (!options.trains && policy->engine_choice().ours) {
    policy->Engine();
    host.Info(where + policy->PromptNote());
  }
  return policy;
}

std::string DeviceName(const Policy& policy) { return policy.device().is_cpu() ? "cpu" : policy.device().str(); }

DeviceTurn TakeDevice(const Host& host, const Policy& policy, std::function<void(double seconds)> used) {
  return {host, DeviceName(policy), [device = policy.device()] { WaitForDevice(device); }, std::move(used)};
}

void CompletionWriter::Submit(const kgrpo_generate_request* const* requests, size_t count) {
  policy_.RequireWeights();
  for (size_t i = 0; i < count; ++i) {
    const std::string what = "request " + std::to_string(i);
    policy_.CheckPrompt({requests[i]->prompt_ids, requests[i]->prompt_size}, what);
    try {
      CheckSamplingOptions(ToOptions(*requests[i]->sampling));
    } catch (const Error& error) {
      throw Error(error.code(), what + ": " + error.what());
    }
  }
  queue_.Submit(requests, count);
}

// Requests that arrive meanwhile join at once. Between turns of the scheduler nothing is queued on the device.
void CompletionWriter::Write(std::vector<PendingCompletion>& batch) {
  DeviceTurn turn = take_device_();
  const bool is_first = policy_.PromptNote().empty();
  GenerationScheduler& scheduler = policy_.Engine();
  if (is_first && !policy_.PromptNote().empty())
    host_.Info(policy_.options().part + " on " + policy_.device().str() + ": " + policy_.PromptNote());
  const bool on_device = policy_.generates_on_device();
  if (!on_device) turn.Pause();  // the weights are on the host
  size_t submitted = 0;
  std::vector<Completion> finished;
  try {
    do {
      if (queue_.Cancelled() || host_.Cancelled()) throw Error(KGRPO_ERROR_CANCELLED, "cancelled while generating");
      queue_.TakeWaiting(batch);
      for (; submitted < batch.size(); ++submitted) {
        PendingCompletion& request = batch[submitted];
        try {
          scheduler.Submit(submitted, {request.prompt(), request.seed()}, ToOptions(request.sampling()));
        } catch (const Error& error) {
          request.Fail(error.code(), error.what());
        }
      }
      scheduler.Turn([&](const Completion& completion) { finished.push_back(completion); });
      if (finished.empty() && !turn.SliceIsOver()) continue;
      turn.Pause();
      for (const Completion& completion : finished) Finish(batch[completion.request], completion);
      finished.clear();
      if (on_device && !scheduler.idle()) turn.Resume();
    } while (!scheduler.idle());
  } catch (...) {
    scheduler.Clear();
    throw;
  }
}

void CompletionWriter::Finish(PendingCompletion& request, const Completion& completion) const {
  if (!std::ranges::all_of(completion.logprobs, [](float logprob) { return std::isfinite(logprob); })) {
    request.Fail(KGRPO_ERROR_NOT_FINITE,
                 "the model's logits are not finite: its weights have diverged, or its values are too large for its "
                 "dtype (with bfloat16, try float32)");
    return;
  }
  const std::string text = policy_.tokenizer().Decode(completion.ids, /*skip_special=*/true);
  request.Finish({.struct_size = sizeof(kgrpo_completion),
                  .finish_reason = static_cast<uint32_t>(completion.ended ? KGRPO_FINISH_STOP : KGRPO_FINISH_LENGTH),
                  .ids = completion.ids.data(),
                  .logprobs = completion.logprobs.data(),
                  .size = completion.ids.size(),
                  .text = Str(text)});
}

}  // namespace kgrpo::policy
