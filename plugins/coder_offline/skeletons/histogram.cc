// Counts of bins: counts[bin(values[i])] is increased for each i.
//
// The problem's part holds constexpr int kBins and bin(<type> value, <scalars of launch>), which returns 0 .. kBins
// - 1. Starting option: chunk=C, each thread works on C neighbouring elements. In the naive kernel every element
// is an atomic addition to global memory.
#include "coder_offline/skeleton.h"

namespace kgrpo::coder_offline {
namespace {

std::string CountText(const Program& program, const std::string& value) {
  const std::string bin = CallText(*program.FindFunction("bin"), [&](const Parameter& parameter) {
    return parameter.name == "value" ? value : parameter.name;
  });
  return "atomicAdd(&" + std::string(program.schedule.Has("privatize") ? "block_counts" : program.Output()->name) +
         "[" + bin + "], 1);\n";
}

std::string MissingHistogram(const Program& program) {
  std::string missing = MissingNames(program, {"bin"}, {"n"});
  if (!missing.empty()) return missing;
  if (program.constants.count("kBins") == 0) return "a line constexpr int kBins = <number>;";
  if (program.Output()->type != "int") return "an int output";
  const Parameter* input = FirstInput(program);
  return input == nullptr || (input->type != "int" && input->type != "float") ? "an int or float input" : "";
}

std::string HistogramKernels(const Program& program) {
  const Schedule& schedule = program.schedule;
  const int block = schedule.Get("block", 256);
  const int width = schedule.Get("vectorize", 1);
  const bool privatize = schedule.Has("privatize");
  const Parameter& input = *FirstInput(program);
  const std::string type = input.type + std::to_string(width);
  std::string body;
  if (width == 1) {
    body = CountText(program, input.name + "[i]");
  } else {
    body = VectorLoad(type, "loaded", input.name);
    for (int k = 0; k < width; ++k) body += CountText(program, "loaded" + Component(k));
  }
  const std::string out = program.Output()->name;
  std::string comment = privatize ? "each block counts in shared memory and adds its counts at the end"
                                  : "every element is an atomic addition to global memory";
  if (schedule.Has("grid_stride")) comment += ", threads stride over the array by the size of the grid";
  const int chunk = schedule.Has("grid_stride") ? 1 : ChunkOf(schedule);
  const std::string begin = R"(__shared__ int block_counts[kBins];
for (int b = threadIdx.x; b < kBins; b += blockDim.x) block_counts[b] = 0;
__syncthreads();
)";
  const std::string end =
      "__syncthreads();\nfor (int b = threadIdx.x; b < kBins; b += blockDim.x) {\n"
      "  if (block_counts[b] > 0) atomicAdd(&" +
      out + "[b], block_counts[b]);\n}\n";
  const Values values =
      CommonValues(program, 256,
                   {{"comment", comment},
                    {"loop", ElementLoop(schedule, "if (thread < @count@) {\n  const int i = thread;\n  @body@\n}\n",
                                         body, CountText(program, input.name + "[i]"))},
                    {"private_begin", privatize ? begin : ""},
                    {"private_end", privatize ? end : ""},
                    {"blocks", BlocksText(schedule, "n", block * width * chunk, kGridStrideThreads / block)}});
  return Fill(R"(
// kernels: @comment@.
__global__ void clear_kernel(int* @out@) {
  const int b = blockIdx.x * blockDim.x + threadIdx.x;
  if (b < kBins) @out@[b] = 0;
}

__global__ void count_kernel(@parameters@) {
  @private_begin@
  @loop@
  @private_end@
}

@launch@ {
  clear_kernel<<<(kBins + 255) / 256, 256>>>(@out@);
  @blocks@
  count_kernel<<<blocks, @block@>>>(@arguments@);
}
)",
              values);
}

}  // namespace

const Skeleton* HistogramSkeleton() {
  static const Skeleton kSkeleton = {
      "histogram",
      {"chunk"},
      {{kPrivatize, "a private histogram for each block in shared memory"},
       GridStrideRule(),
       {kCoalesce, "the chunk's elements interleaved, so that access is coalesced", {}, 1, NeedsChunk()},
       VectorRule("vectorised loads, @value@ elements at a time"),
       UnrollRule("the thread's loop", Unless({"chunk", "grid_stride"}, kOneLoop)),
       RestrictRule(),
       BlockRule(),
       FastRule()},
      {{{kTile, kPad, kPrefetch},
        "every value is read once; what is contended are the counters, which can be made private"},
       {{kShuffle, kCooperate},
        "the threads of a warp fall into different bins, so they have no partial result in common"},
       {{kRegister}, "which counter a value adds to is known at run time only, so counters can't be registers"},
       {{kHalf}, "counts are integers"},
       {{kFuse}, "counters must be cleared before any block counts, so the two kernels stay apart"},
       {{kOnePass}, "the values are read once already"},
       {{kHoist}, "nothing is computed that does not depend on the value"},
       {{kBranchless}, kSamePath}},
      "a histogram has no place for it",
      MissingHistogram,
      HistogramKernels};
  return &kSkeleton;
}

}  // namespace kgrpo::coder_offline
