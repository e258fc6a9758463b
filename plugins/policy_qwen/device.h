// The device of the model: "cpu", or "cuda:N", for which libtorch's CUDA library is loaded at run time. Used by the
// policy.
#ifndef KGRPO_PLUGINS_POLICY_QWEN_DEVICE_H_
#define KGRPO_PLUGINS_POLICY_QWEN_DEVICE_H_

#include <c10/core/Device.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/InferenceMode.h>

#include <cstdint>
#include <string>

namespace kgrpo::policy {

// Returns the device that "cpu", "cuda" or "cuda:N" names. Throws kgrpo::Error if it does not exist, naming what is
// missing: the library, a driver, or that many GPUs.
at::Device OpenDevice(const std::string& name);

// Number of GPUs that this process sees. Throws if libtorch's CUDA library is missing.
int DeviceCount();

// Bytes of this machine's memory.
uint64_t MachineBytes();

// Bytes of a GPU's memory: free ones, including those that libtorch holds without using them; all.
int64_t FreeBytesOf(at::Device device);
int64_t TotalBytesOf(at::Device device);

// Waits until the device has finished all work of this process; does nothing for a CPU.
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
