// The CUDA driver, loaded at run time: runs a kernel of a cubin on the first GPU. Used by sim_vs_gpu.
#ifndef KGRPO_TOOLS_SIM_VS_GPU_GPU_DRIVER_H
#define KGRPO_TOOLS_SIM_VS_GPU_GPU_DRIVER_H

#include <cstdint>
#include <string>
#include <vector>

namespace kgrpo::bench {

class GpuDriver {
 public:
  // Throws Error(KGRPO_ERROR_UNAVAILABLE) where there is no driver or no device.
  GpuDriver();
  ~GpuDriver();
  GpuDriver(const GpuDriver&) = delete;
  GpuDriver& operator=(const GpuDriver&) = delete;

  const std::string& name() const { return name_; }

  // Makes the cubin's kernels those that Run finds. Throws Error(KGRPO_ERROR_UNAVAILABLE) where the driver does not
  // take it.
  void Load(const std::string& cubin);
  // Runs kernel(in, out, scratch); out and scratch come back as the kernel leaves them, scratch begins as zeros.
  // Returns the driver's error, "" on success. An error leaves a new context: Load again.
  std::string Run(const std::string& kernel, uint32_t blocks, uint32_t threads, const std::vector<uint64_t>& in,
                  std::vector<uint64_t>& out, std::vector<uint64_t>& scratch);

 private:
  void Begin();
  std::string NameOf(int code) const;

  struct Functions;
  Functions* functions_;
  int device_ = 0;
  void* module_ = nullptr;
  std::string name_;
  uint64_t memory_ = 0;  // one allocation for all three
};

}  // namespace kgrpo::bench
#endif  // KGRPO_TOOLS_SIM_VS_GPU_GPU_DRIVER_H
