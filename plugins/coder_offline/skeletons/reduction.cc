// One number from whole arrays: out[0] = finish(combine over i of load(a[i], b[i], ...), n).
//
// The problem's part holds load(<elements>), identity(), combine(float a, float b) and finish(float total, ...).
// In the naive kernel each thread processes a chunk of neighbouring elements, each block reduces its threads by a tree
// with growing stride between active threads, and a second kernel of one thread reduces the blocks' results.
#include "coder_offline/skeleton.h"

namespace kgrpo::coder_offline {
namespace {

constexpr int kMostThreads = 1024 * 256;  // without grid_stride: a round number, as a person would choose

std::string LoadText(const Program& program, const std::function<std::string(const std::string&)>& element) {
  return CallText(*program.FindFunction("load"), [&](const Parameter& parameter) {
    const Parameter* given = program.FindParameter(parameter.name);
    return given->pointer ? element(parameter.name) : parameter.name;
  });
}

std::string Accumulate(const Schedule& schedule, const std::string& loaded) {
  if (!schedule.Has("half")) return "total = combine(total, " + loaded + ");\n";
  return "partial = __float2half(combine(__half2float(partial), " + loaded + "));\n";
}

// The thread's loop over its elements; `total` (or `partial`) must be declared before it.
std::string ThreadLoop(const Program& program) {
  const Schedule& schedule = program.schedule;
  const int width = schedule.Get("vectorize", 1);
  const bool interleaved = schedule.Has("coalesce") || schedule.Has("grid_stride");
  std::string body;
  if (width == 1) {
    body = Accumulate(schedule, LoadText(program, [](const std::string& name) { return name + "[i]"; }));
  } else {
    const std::string type = "float" + std::to_string(width);
    for (const Parameter& parameter : program.FindFunction("load")->parameters) {
      if (!program.FindParameter(parameter.name)->pointer) continue;
      body += VectorLoad(type, parameter.name + "_vector", parameter.name);
    }
    for (int k = 0; k < width; ++k) {
      body += Accumulate(schedule,
                         LoadText(program, [&](const std::string& name) { return name + "_vector" + Component(k); }));
    }
  }
  Values values = {
      {"width", width},
      {"count", width == 1 ? "n" : "count"},
      {"unroll", UnrollPragma(schedule)},
      {"body", body},
      {"single", Accumulate(schedule, LoadText(program, [](const std::string& name) { return name + "[i]"; }))}};
  std::string text = width == 1 ? "" : Fill("const int count = n / @width@;\n", values);
  if (interleaved) {
    text += Fill(R"(
@unroll@
for (int i = thread; i < @count@; i += threads) {
  @body@
}
)",
                 values);
  } else {
    text += Fill(R"(
const int chunk = (@count@ + threads - 1) / threads;
const int end = min((thread + 1) * chunk, @count@);
@unroll@
for (int i = thread * chunk; i < end; ++i) {
  @body@
}
)",
                 values);
  }
  if (width > 1) {
    text += Fill(R"(
for (int i = count * @width@ + thread; i < n; i += threads) {
  @single@
}
)",
                 values);
  }
  return text;
}

std::string JoinBlockHelper(const Schedule& schedule) {
  const int block = schedule.Get("block", 256);
  const Values values = {{"block", block}, {"half", block / 2}, {"warps", block / 32}};
  if (schedule.Has("shuffle")) {
    return Fill(R"(
__device__ float warp_join(float value) {
  for (int offset = 16; offset > 0; offset /= 2) {
    value = combine(value, __shfl_down_sync(0xffffffffu, value, offset));
  }
  return value;
}

// Thread 0 gets the joined value of all threads of the block.
__device__ float block_join(float value) {
  __shared__ float values[@warps@];  // one for each warp
  value = warp_join(value);
  if (threadIdx.x % 32 == 0) values[threadIdx.x / 32] = value;
  __syncthreads();
  value = threadIdx.x < @warps@ ? values[threadIdx.x] : identity();
  if (threadIdx.x < 32) value = warp_join(value);
  __syncthreads();  // values may be used again
  return value;
}
)",
                values);
  }
  const std::string tree = schedule.Has("branchless") ? R"(
  for (int active = @half@; active > 0; active /= 2) {
    if (threadIdx.x < active) values[threadIdx.x] = combine(values[threadIdx.x], values[threadIdx.x + active]);
    __syncthreads();
  }
)"
                                                      : R"(
  for (int distance = 1; distance < @block@; distance *= 2) {
    if (threadIdx.x % (2 * distance) == 0) {
      values[threadIdx.x] = combine(values[threadIdx.x], values[threadIdx.x + distance]);
    }
    __syncthreads();
  }
)";
  return Fill(R"(
// Thread 0 gets the joined value of all threads of the block.
__device__ float block_join(float value) {
  __shared__ float values[@block@];
  values[threadIdx.x] = value;
  __syncthreads();
)" + tree.substr(1) +
                  R"(
  value = values[0];
  __syncthreads();  // values may be used again
  return value;
}
)",
              values);
}

std::string MissingReduction(const Program& program) {
  const std::string missing = MissingNames(program, {"load", "identity", "combine", "finish"}, {"n"});
  if (!missing.empty()) return missing;
  return Refused(program, *program.FindFunction("load"), "named after a float input or a scalar of launch",
                 [](const std::string&, const Parameter* given) {
                   return given != nullptr && (!given->pointer || (given->constant && given->type == "float"));
                 });
}

std::string ReductionKernels(const Program& program) {
  const Schedule& schedule = program.schedule;
  const int block = schedule.Get("block", 256);
  const bool half = schedule.Has("half");
  const bool one_pass = schedule.Has("one_pass");
  const int most_blocks = (schedule.Has("grid_stride") ? kGridStrideThreads : kMostThreads) / block;
  Values values = CommonValues(
      program, 256,
      {{"most_blocks", most_blocks},
       {"join_block", JoinBlockHelper(schedule)},
       {"accumulator", half ? "__half partial = __float2half(identity());" : "float total = identity();"},
       {"loop", ThreadLoop(program)},
       {"total", half ? "__half2float(partial)" : "total"},
       {"finish", CallText(*program.FindFunction("finish"), [](const Parameter& p) { return p.name; })},
       {"comment",
        std::string(schedule.Has("coalesce") || schedule.Has("grid_stride")
                        ? "threads take turns over the elements"
                        : "each thread walks a chunk of neighbouring elements") +
            (schedule.Has("shuffle") ? ", blocks join by shuffles" : ", blocks join by a tree in shared memory") +
            (one_pass ? ", the last block finishes" : ", a second kernel joins the blocks")}});
  if (one_pass) {
    values["end"] = Fill(R"(
  __shared__ bool last;
  if (threadIdx.x == 0) {
    block_totals[blockIdx.x] = joined;
    __threadfence();
    last = atomicAdd(&blocks_done, 1u) == gridDim.x - 1;
  }
  __syncthreads();
  if (!last) return;
  __threadfence();
  float rest = identity();
  for (int i = threadIdx.x; i < gridDim.x; i += blockDim.x) rest = combine(rest, block_totals[i]);
  joined = block_join(rest);
  if (threadIdx.x == 0) {
    const float total = joined;
    @out@[0] = @finish@;
    blocks_done = 0;  // ready for the next launch
  }
)",
                         values);
  } else {
    values["end"] = "if (threadIdx.x == 0) block_totals[blockIdx.x] = joined;\n";
  }
  values["counter"] = one_pass ? "__device__ unsigned int blocks_done = 0;\n" : "";
  std::string text = Fill(R"(
// kernels: @comment@.
constexpr int kMostBlocks = @most_blocks@;
__device__ float block_totals[kMostBlocks];
@counter@

@join_block@

__global__ void reduce_kernel(@parameters@) {
  const int thread = blockIdx.x * blockDim.x + threadIdx.x;
  const int threads = gridDim.x * blockDim.x;
  @accumulator@
  @loop@
  float joined = block_join(@total@);
  @end@
}

)",
                          values);
  if (!one_pass) {
    text += Fill(R"(
__global__ void join_blocks_kernel(@parameters@, int blocks) {
  float total = identity();
  for (int i = 0; i < blocks; ++i) total = combine(total, block_totals[i]);
  @out@[0] = @finish@;
}

)",
                 values);
  }
  text += Fill(R"(
@launch@ {
  const int needed = (n + @block@ - 1) / @block@;
  const int blocks = needed < kMostBlocks ? needed : kMostBlocks;
  reduce_kernel<<<blocks, @block@>>>(@arguments@);
)",
               values);
  if (!one_pass) text += Fill("  join_blocks_kernel<<<1, 1>>>(@arguments@, blocks);\n", values);
  return text + "}\n";
}

}  // namespace

const Skeleton* ReductionSkeleton() {
  static const Skeleton kSkeleton = {
      "reduction",
      {},
      {{kCoalesce,
        "neighbouring threads on neighbouring elements",
        {},
        1,
        If("grid_stride", "the grid-stride loop is coalesced already")},
       GridStrideRule(),
       {kShuffle, "blocks joined by warp shuffles"},
       {kBranchless,
        "the active threads of the tree kept together, so that warps do not diverge",
        {},
        1,
        If("shuffle", "with warp shuffles there is no divergent tree left")},
       {kOnePass, "one pass: the last block to finish joins the blocks' results"},
       VectorRule("vectorised loads, float@value@"),
       UnrollRule("the thread's loop"),
       RestrictRule(),
       BlockRule(),
       FastRule(),
       {kHalf, "partial results accumulated in half precision"}},
      {{{kTile, kPad, kPrefetch}, kTileUsedOnce},
       {{kRegister}, "the result is one number, which is in a register already"},
       {{kFuse},
        "the element's work and the sum are in one kernel already; the blocks' results can be joined in one pass"},
       {{kCooperate}, "the threads of a block join their results already"},
       {{kPrivatize}, "every thread has a total of its own already"},
       {{kHoist}, "nothing in the loop is computed twice"}},
      "a reduction has no place for it",
      MissingReduction,
      ReductionKernels};
  return &kSkeleton;
}

}  // namespace kgrpo::coder_offline
