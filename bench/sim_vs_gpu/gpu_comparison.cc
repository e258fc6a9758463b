#include "sim_vs_gpu/gpu_comparison.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <utility>
#include <vector>

namespace kgrpo::bench {
namespace {

namespace fs = std::filesystem;

// Maximum number of differences that are tried without ptxas's optimisations: each is compiled on its own. More than a
// few mean that the interpreter is at fault.
constexpr int kMostUnoptimised = 200;

}  // namespace

Comparison::Comparison(const ComparisonOptions& options, const evaluator::CudaToolkit& toolkit)
    : options_(options), toolkit_(toolkit) {
  if (options_.device) gpu_ = std::make_unique<GpuDriver>();
  std::printf("# %s\nnumber,kind,verdict,first_difference\n", gpu_ ? gpu_->name().c_str() : "without a device");
}

void Comparison::Take(const GeneratedUnit& unit) {
  if (gpu_) gpu_->Load(unit.cubin);
  for (const Interpreted& interpreted : unit.kernels) {
    const generated::GeneratedKernel kernel = generated::Generate(interpreted.number);
    if (!interpreted.trouble.empty()) {
      const size_t colon = interpreted.trouble.find(": ");
      Verdict(kernel, interpreted.trouble.substr(0, colon), interpreted.trouble.substr(colon + 2));
    } else if (!gpu_) {
      Verdict(kernel, "equal", "");
    } else {
      Compare(kernel, interpreted, unit.cubin);
    }
  }
}

void Comparison::Verdict(const generated::GeneratedKernel& kernel, const std::string& verdict, std::string text) {
  const bool wanted =
      options_.kinds.empty() ||
      ("," + options_.kinds + ",").find("," + std::string(KindName(kernel.kind)) + ",") != std::string::npos;
  if (!wanted) return;
  ++table_[kernel.kind][verdict];
  ++compared_;
  const bool good = verdict == "equal" || verdict == "within";
  if (!good) {
    verdict == "optimiser" ? ++optimiser_ : ++bad_;
    fs::create_directories(options_.different);
    std::ofstream(options_.different + "/" + kernel.name + ".cu")
        << "// " << verdict << ": " << text << "\n// " << KindName(kernel.kind) << ", " << kernel.blocks
        << " blocks of " << kernel.threads << " threads, unit " << kernel.number / kUnitKernels << "\n"
        << generated::DevicePrelude() << kernel.source;
  }
  if (good && !options_.all) return;
  text.resize(std::min<size_t>(text.size(), 400));
  std::replace(text.begin(), text.end(), '\n', ' ');
  std::replace(text.begin(), text.end(), '"', '\'');
  std::printf("%llu,%s,%s,\"%s\"\n", static_cast<unsigned long long>(kernel.number), KindName(kernel.kind),
              verdict.c_str(), text.c_str());
  std::fflush(stdout);
}

bool Comparison::Finish(double seconds) const {
  for (const auto& [kind, verdicts] : table_) {
    std::printf("# %-12s", KindName(kind));
    for (const auto& [verdict, count] : verdicts)
      std::printf(" %s %llu", verdict.c_str(), static_cast<unsigned long long>(count));
    std::printf("\n");
  }
  std::printf("# %llu kernels in %.1f s, %llu neither equal nor within, %llu changed by ptxas's optimisations\n",
              static_cast<unsigned long long>(compared_), seconds, static_cast<unsigned long long>(bad_),
              static_cast<unsigned long long>(optimiser_));
  return bad_ == 0;
}

void Comparison::Compare(const generated::GeneratedKernel& kernel, const Interpreted& interpreted,
                         const std::string& cubin) {
  generated::Difference difference;
  const std::string error = RunOnGpu(kernel, interpreted, difference);
  if (!error.empty()) {
    gpu_->Load(cubin);  // into the new context
    return Verdict(kernel, "device_error", error);
  }
  if (!difference.different) return Verdict(kernel, difference.within ? "within" : "equal", "");
  const bool optimiser = EqualUnoptimised(kernel, interpreted);
  gpu_->Load(cubin);
  Verdict(kernel, optimiser ? "optimiser" : "different", "GPU against interpreter: " + difference.text);
}

std::string Comparison::RunOnGpu(const generated::GeneratedKernel& kernel, const Interpreted& interpreted,
                                 generated::Difference& difference) {
  std::vector<uint64_t> out(interpreted.out.size()), scratch(interpreted.scratch.size());
  std::string error =
      gpu_->Run(kernel.name, kernel.blocks, kernel.threads, generated::InputsOf(kernel.number), out, scratch);
  if (error.empty()) difference = generated::Compare(kernel, out, interpreted.out, scratch, interpreted.scratch);
  return error;
}

bool Comparison::EqualUnoptimised(const generated::GeneratedKernel& kernel, const Interpreted& interpreted) {
  if (++unoptimised_ > kMostUnoptimised) return false;
  if (compiler_ == nullptr) compiler_ = std::make_unique<NvrtcCompiler>(toolkit_.nvrtc, toolkit_.include_directories);
  gpu_->Load(UnoptimisedCubin(*compiler_, kernel.number));
  generated::Difference difference;
  return RunOnGpu(kernel, interpreted, difference).empty() && !difference.different;
}

}  // namespace kgrpo::bench
