// The verdict on each generated kernel: what the interpreter computed against what the GPU computes. Used by
// sim_vs_gpu.
#ifndef KGRPO_TOOLS_SIM_VS_GPU_GPU_COMPARISON_H
#define KGRPO_TOOLS_SIM_VS_GPU_GPU_COMPARISON_H

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "judge/compile/cuda_toolkit.h"
#include "sim_vs_gpu/generated_unit.h"
#include "sim_vs_gpu/gpu_driver.h"
#include "simt/generated/kernel_generator.h"

namespace kgrpo::bench {

struct ComparisonOptions {
  bool device = true, all = false;
  std::string kinds;                    // those wanted, with commas between; "" for every kind
  std::string different = "different";  // the folder of the sources
};

class Comparison {
 public:
  // Prints the head of the CSV. Both must outlive this.
  Comparison(const ComparisonOptions& options, const evaluator::CudaToolkit& toolkit);

  void Take(const GeneratedUnit& unit);
  // Prints the verdict's line.
  void Verdict(const generated::GeneratedKernel& kernel, const std::string& verdict, std::string text);
  // Prints the table. Returns true if every kernel is equal, within the documented error, or the optimiser's.
  bool Finish(double seconds) const;

 private:
  void Compare(const generated::GeneratedKernel& kernel, const Interpreted& interpreted, const std::string& cubin);
  // Runs the loaded kernel; returns "" or the device's error.
  std::string RunOnGpu(const generated::GeneratedKernel& kernel, const Interpreted& interpreted,
                       generated::Difference& difference);
  // True if nothing differs once ptxas does not optimise. Leaves other machine code loaded.
  bool EqualUnoptimised(const generated::GeneratedKernel& kernel, const Interpreted& interpreted);

  const ComparisonOptions& options_;
  const evaluator::CudaToolkit& toolkit_;
  std::unique_ptr<GpuDriver> gpu_;
  std::unique_ptr<NvrtcCompiler> compiler_;  // made when first needed
  int unoptimised_ = 0;
  std::map<generated::Kind, std::map<std::string, uint64_t>> table_;
  uint64_t compared_ = 0, bad_ = 0, optimiser_ = 0;
};

}  // namespace kgrpo::bench
#endif  // KGRPO_TOOLS_SIM_VS_GPU_GPU_COMPARISON_H
