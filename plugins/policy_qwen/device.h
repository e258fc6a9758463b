// Where the model runs: "cpu", or "cuda:N", for which libtorch's CUDA library is loaded at run time. Used by the
// policy.
#ifndef KGRPO_PLUGINS_POLICY_QWEN_DEVICE_H_
#define KGRPO_PLUGINS_POLICY_QWEN_DEVICE_H_

#include <c10/core/Device.h>

#include <cstdint>
#include <string>

namespace kgrpo::policy {

// "cpu", "cuda" or "cuda:N" as a device that is there. Throws kgrpo::Error saying what is missing: the library, a
// driver, or that many GPUs.
at::Device OpenDevice(const std::string& name);

// Of several ranks on a machine each takes its own GPU for "cuda"; what names one stays as it is. Throws as OpenDevice.
std::string DeviceOfRank(const std::string& name, uint32_t local_rank);

// Waits until the device has done all that this process gave it; nothing on the CPU.
void WaitForDevice(at::Device device);

// The stream on which libtorch queues this thread's work for the device: a cudaStream_t, null being the default stream;
// null for a CPU.
void* CurrentStream(at::Device device);

}  // namespace kgrpo::policy

#endif  // KGRPO_PLUGINS_POLICY_QWEN_DEVICE_H_
