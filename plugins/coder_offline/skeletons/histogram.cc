// Counts of bins: counts[bin(values[i])] is increased for each i.
//
// The problem's part holds constexpr int kBins and bin(<type> value, <scalars of launch>), which returns 0 .. kBins
// - 1. Starting option: chunk=C, each thread works on C neighbouring elements. In the naive kernel every element
// is an atomic addition to global memory.
#include <algorithm>

#include "coder_offline/skeleton.h"
#include "coder_offline/skeletons/all.h"
#include "coder_offline/skeletons/shared.h"
#include "coder_offline/text.h"

namespace kgrpo::coder_offline {
namespace {

std::string CountText(const Program& program, const std::string& value) {
  const std::string bin = CallText(*program.FindFunction("bin"), [&](const Parameter& parameter) {
    return parameter.name == "value" ? value : parameter.name;
  });
  return "atomicAdd(&" + std::string(program.schedule.Has("privatize") ? "block_counts" : program.Output()->name) +
         "[" + bin + "], 1);\n";
}

class Histogram : public Skeleton {
 public:
  std::string_view name() const override { return "histogram"; }
  std::vector<std::string> starting_options() const override { return {"chunk"}; }

  const std::vector<Rule>& rules() const override {
    static const std::vector<Rule> kRules = {
        {Technique::kPrivatize, "privatize", {}, 1, "a private histogram for each block in shared memory", nullptr},
        {Technique::kGridStride,
         "grid_stride",
         {},
         1,
         "a grid-stride loop over a grid that just fills the device",
         nullptr},
        {Technique::kCoalesce,
         "coalesce",
         {},
         1,
         "the chunk's elements interleaved, so that access is coalesced",
         [](const Program& program) -> std::string {
           if (program.schedule.Has("grid_stride")) return "the grid-stride loop is coalesced already";
           return program.schedule.Has("chunk") ? "" : "neighbouring threads read neighbouring elements already";
         }},
        {Technique::kVectorize, "vectorize", {2, 4}, 4, "vectorised loads, @value@ elements at a time", nullptr},
        {Technique::kUnroll,
         "unroll",
         {2, 4, 8},
         4,
         "the thread's loop unrolled @value@ times",
         [](const Program& program) -> std::string {
           return program.schedule.Has("chunk") || program.schedule.Has("grid_stride")
                      ? ""
                      : "a thread has one element and no loop to unroll";
         }},
        RestrictRule(),
        BlockRule(),
        FastRule(),
    };
    return kRules;
  }

  std::string Missing(const Program& program) const override {
    std::string missing = MissingNames(program, {"bin"}, {"n"});
    if (!missing.empty()) return missing;
    if (program.constants.count("kBins") == 0) return "a line constexpr int kBins = <number>;";
    if (program.Output()->type != "int") return "an int output";
    const Parameter* input = FirstInput(program);
    if (input == nullptr || (input->type != "int" && input->type != "float")) return "an int or float input";
    return "";
  }

  std::string WhyNever(Technique technique) const override {
    switch (technique) {
      case Technique::kTile:
      case Technique::kPad:
      case Technique::kPrefetch:
        return "every value is read once; what is contended are the counters, which can be made private";
      case Technique::kShuffle:
      case Technique::kCooperate:
        return "the threads of a warp fall into different bins, so they have no partial result in common";
      case Technique::kRegister:
        return "which counter a value adds to is known at run time only, so counters can't be registers";
      case Technique::kHalf:
        return "counts are integers";
      case Technique::kFuse:
        return "counters must be cleared before any block counts, so the two kernels stay apart";
      case Technique::kOnePass:
        return "the values are read once already";
      case Technique::kHoist:
        return "nothing is computed that does not depend on the value";
      case Technique::kBranchless:
        return "the threads of a warp take the same path";
      default:
        return "a histogram has no place for it";
    }
  }

  std::string Kernels(const Program& program) const override {
    const Schedule& schedule = program.schedule;
    const int block = schedule.Get("block", 256);
    const int width = schedule.Get("vectorize", 1);
    const int chunk = schedule.Has("chunk") ? std::max(1, schedule.Get("chunk", 1) / width) : 1;
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
    std::map<std::string, std::string> values = {
        {"body", body},
        {"single", CountText(program, input.name + "[i]")},
        {"unroll", UnrollPragma(schedule)},
        {"count", width == 1 ? "n" : "count"},
        {"width", std::to_string(width)},
        {"chunk", std::to_string(chunk)},
        {"out", program.Output()->name},
        {"block", std::to_string(block)},
        {"parameters", ParameterList(program.parameters, schedule.Has("restrict"))},
        {"arguments", ArgumentList(program.parameters)},
        {"launch", LaunchLine(program)},
        {"comment", std::string(privatize ? "each block counts in shared memory and adds its counts at the end"
                                          : "every element is an atomic addition to global memory")}};
    std::string loop;
    if (schedule.Has("grid_stride")) {
      loop = "@unroll@\nfor (int i = thread; i < @count@; i += gridDim.x * blockDim.x) {\n  @body@\n}\n";
      values["comment"] += ", threads stride over the array by the size of the grid";
    } else if (schedule.Has("chunk") && schedule.Has("coalesce")) {
      loop =
          "const int end = min((blockIdx.x + 1) * blockDim.x * @chunk@, @count@);\n@unroll@\n"
          "for (int i = blockIdx.x * blockDim.x * @chunk@ + threadIdx.x; i < end; i += blockDim.x) {\n  @body@\n}\n";
    } else if (schedule.Has("chunk")) {
      loop =
          "const int end = min((thread + 1) * @chunk@, @count@);\n@unroll@\n"
          "for (int i = thread * @chunk@; i < end; ++i) {\n  @body@\n}\n";
    } else {
      loop = "if (thread < @count@) {\n  const int i = thread;\n  @body@\n}\n";
    }
    values["loop"] = (width == 1 ? "" : Fill("const int count = n / @width@;\n", values)) + Fill(loop, values);
    if (width > 1) {
      values["loop"] += Fill(
          "if (thread < n - count * @width@) {\n  const int i = count * @width@ + thread;  // the last elements, one a "
          "thread\n  @single@\n}\n",
          values);
    }
    if (ReplaceWord(values["loop"], "thread", "") != values["loop"]) {
      values["loop"] = "const int thread = blockIdx.x * blockDim.x + threadIdx.x;\n" + values["loop"];
    }
    values["private_begin"] =
        privatize ? "__shared__ int block_counts[kBins];\n"
                    "for (int b = threadIdx.x; b < kBins; b += blockDim.x) block_counts[b] = 0;\n__syncthreads();\n"
                  : "";
    values["private_end"] = privatize
                                ? Fill(
                                      "__syncthreads();\nfor (int b = threadIdx.x; b < kBins; b += blockDim.x) {\n"
                                      "  if (block_counts[b] > 0) atomicAdd(&@out@[b], block_counts[b]);\n}\n",
                                      values)
                                : "";
    const int per_block = block * width * (schedule.Has("grid_stride") ? 1 : chunk);
    const std::string needed = "(n + " + std::to_string(per_block - 1) + ") / " + std::to_string(per_block);
    const std::string most = std::to_string(kGridStrideThreads / block);
    values["blocks"] = schedule.Has("grid_stride")
                           ? "const int needed = " + needed + ";\nconst int blocks = needed < " + most +
                                 " ? needed : " + most + ";  // enough to fill the device\n"
                           : "const int blocks = " + needed + ";\n";
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
};

}  // namespace

const Skeleton* HistogramSkeleton() {
  static const Histogram kSkeleton;
  return &kSkeleton;
}

}  // namespace kgrpo::coder_offline
