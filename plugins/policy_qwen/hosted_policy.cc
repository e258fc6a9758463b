#include "policy_qwen/hosted_policy.h"

#include <kgrpo/sdk/collective.h>

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

std::string DeviceName(const Policy& policy) {
  return policy.device().is_cpu() ? "cpu" : policy.device().str();
}

DeviceTurn TakeDevice(const Host& host, const Policy& policy, std::function<void(double seconds)> used) {
  return {host, DeviceName(policy), [device = policy.device()] { WaitForDevice(device); }, std::move(used)};
}

}  // namespace kgrpo::policy
