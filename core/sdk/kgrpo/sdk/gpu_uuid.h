// SPDX-License-Identifier: Apache-2.0
// kgrpo/sdk/gpu_uuid.h - the UUID of an NVIDIA GPU as text. The host names a device's lock files by it, evaluator_cuda
// the device that its workers may see.
#ifndef KGRPO_SDK_GPU_UUID_H
#define KGRPO_SDK_GPU_UUID_H
#include <string>

namespace kgrpo {

// "GPU-8a3f...", as nvidia-smi -L prints it and CUDA_VISIBLE_DEVICES takes it. `uuid`: 16 bytes, a CUuuid or
// cudaUUID_t.
inline std::string GpuUuidText(const void* uuid) {
  const auto* bytes = static_cast<const unsigned char*>(uuid);
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += "0123456789abcdef"[bytes[i] >> 4];
    text += "0123456789abcdef"[bytes[i] & 15];
  }
  return text;
}

}  // namespace kgrpo
#endif
