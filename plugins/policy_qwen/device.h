// The device of the model: "cpu", or "cuda:N", for which libtorch's CUDA library is loaded at run time. Used by the
// policy.
#ifndef KGRPO_PLUGINS_POLICY_QWEN_DEVICE_H_
#define KGRPO_PLUGINS_POLICY_QWEN_DEVICE_H_

#include <c10/core/Device.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/InferenceMode.h>

#include <string>

namespace kgrpo::policy {

// "cpu", "cuda" or "cuda:N" as a device that is there. Throws kgrpo::Error saying what is missing: the library, a
// driver, or that many GPUs.
at::Device OpenDevice(const std::string& name);

// How many GPUs this process sees. Throws where libtorch's CUDA library is missing.
int DeviceCount();

// Waits until the device has done all that this process gave it; nothing on the CPU.
void WaitForDevice(at::Device device);

// The stream on which libtorch queues this thread's work for the device: a cudaStream_t, null being the default stream;
// null for a CPU.
void* CurrentStream(at::Device device);

// While it lives, this thread's operators record no gradients or versions, and tensors live on that device.
struct DeviceScope {
  explicit DeviceScope(at::Device device) : guard(device) {}
  c10::InferenceMode inference;
  c10::DeviceGuard guard;
};

}  // namespace kgrpo::policy

#endif  // KGRPO_PLUGINS_POLICY_QWEN_DEVICE_H_
