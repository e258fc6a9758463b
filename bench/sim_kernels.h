// The kernels that measurements of the evaluator without a GPU run over: problems' references, what coder_offline makes
// of them, and the files of a folder such as build/test_data/judging/honest. Used by sim_speed.cc and sim_verdict.cc.
#ifndef KGRPO_BENCH_SIM_KERNELS_H
#define KGRPO_BENCH_SIM_KERNELS_H

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "evaluator_sim/open_problem.h"

namespace kgrpo::bench {

struct SimKernel {
  const evaluator_sim::OpenProblem* open = nullptr;
  std::string name;  // "matmul", "matmul/tile 32 + unroll 4", "honest/affine_asserts"
  std::string source;
};

class SimKernels {
 public:
  // Of each problem's folder the reference and `variants` kernels spread over what suggestions lead to; then every .cu
  // file of `folder` (none where it is empty) whose first line names its problem, relative to the working directory.
  // Throws kgrpo::Error for a problem that does not open.
  SimKernels(const std::vector<std::string>& problems, size_t variants, const std::string& folder);

  const std::vector<SimKernel>& kernels() const { return kernels_; }

 private:
  const evaluator_sim::OpenProblem* Open(const std::string& folder);

  std::map<std::string, std::unique_ptr<evaluator_sim::OpenProblem>> problems_;
  std::vector<SimKernel> kernels_;
};

// Names without commas, for CSV.
std::string CsvName(std::string name);

}  // namespace kgrpo::bench

#endif
