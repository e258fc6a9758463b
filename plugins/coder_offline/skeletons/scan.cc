// Prefix scans of rows: out[row][col] = combine of load(x[row][0]) ... load(x[row][col]).
//
// The problem's part holds load(float x), identity() and combine(float a, float b). In the naive kernel a thread walks
// its row.
#include "coder_offline/skeletons/row_kernel.h"

namespace kgrpo::coder_offline {
namespace {

// A thread walks the whole row.
std::string SerialBody(const Program& program, const Values& values) {
  const int width = program.schedule.Get("vectorize", 1);
  const std::string single = Fill(R"(
@unroll@
for (int col = @first_single@; col < cols; ++col) {
  before = combine(before, load(@in@_row[col]));
  @out@_row[col] = before;
}
)",
                                  values);
  if (width == 1) return "float before = identity();\n" + single;
  std::string items;
  for (int k = 0; k < width; ++k) {
    items += Fill("before = combine(before, load(loaded@component@));\nscanned@component@ = before;\n",
                  {{"component", Component(k)}});
  }
  Values more = values;
  more["items"] = items;
  return Fill(R"(
float before = identity();
@unroll@
for (int i = 0; i < vectors; ++i) {
  const @type@ loaded = reinterpret_cast<const @type@*>(@in@_row)[i];
  @type@ scanned;
  @items@
  reinterpret_cast<@type@*>(@out@_row)[i] = scanned;
}
)",
              more) +
         single;
}

// Statements of an inclusive scan within a warp: `value` combines the `total` of this lane and of the lanes before it.
std::string WarpScan() {
  return R"(float value = total;
for (int offset = 1; offset < 32; offset *= 2) {
  const float left = __shfl_up_sync(0xffffffffu, value, offset);
  if (lane >= offset) value = combine(left, value);
}
)";
}

// Statements that combine the workers' `total`: `before` gets the result of the row before this worker's elements, and
// `carry` that up to the end of the segment.
std::string JoinText(const Program& program) {
  const Schedule& schedule = program.schedule;
  const int block = schedule.Get("block", 256);
  if (OwnerOf(schedule) == RowOwner::kWarp) {
    return WarpScan() + R"(const float left = __shfl_up_sync(0xffffffffu, value, 1);
const float before = lane == 0 ? carry : combine(carry, left);
carry = combine(carry, __shfl_sync(0xffffffffu, value, 31));
)";
  }
  const Values values = {{"block", block}, {"warps", block / 32}, {"warp_scan", WarpScan()}};
  if (schedule.Has("shuffle")) {
    return Fill(R"(
@warp_scan@
if (lane == 31) warp_totals[threadIdx.x / 32] = value;
const float left = __shfl_up_sync(0xffffffffu, value, 1);
__syncthreads();
float before = carry;
for (int warp = 0; warp < @warps@; ++warp) {
  const float warp_total = warp_totals[warp];
  if (warp < threadIdx.x / 32) before = combine(before, warp_total);
  carry = combine(carry, warp_total);
}
if (lane != 0) before = combine(before, left);
__syncthreads();  // warp_totals may be used again
)",
                values);
  }
  return Fill(R"(
values[threadIdx.x] = total;
__syncthreads();
for (int offset = 1; offset < @block@; offset *= 2) {
  const float left = threadIdx.x >= offset ? values[threadIdx.x - offset] : identity();
  __syncthreads();
  values[threadIdx.x] = combine(left, values[threadIdx.x]);
  __syncthreads();
}
const float before = threadIdx.x == 0 ? carry : combine(carry, values[threadIdx.x - 1]);
carry = combine(carry, values[@block@ - 1]);
__syncthreads();  // values may be used again
)",
              values);
}

// A warp or a block walks the row, a segment at a time.
std::string JointBody(const Program& program, Values values) {
  const Schedule& schedule = program.schedule;
  const int width = schedule.Get("vectorize", 1);
  const bool warp = OwnerOf(schedule) == RowOwner::kWarp;
  values["segment"] = std::to_string((warp ? 32 : schedule.Get("block", 256)) * width);
  values["worker"] = warp ? "lane" : "threadIdx.x";
  values["join"] = JoinText(program);
  if (width == 1) {
    return Fill(R"(
float carry = identity();
@unroll@
for (int start = 0; start < cols; start += @segment@) {
  const int col = start + @worker@;
  const float total = col < cols ? load(@in@_row[col]) : identity();
  @join@
  if (col < cols) @out@_row[col] = combine(before, total);
}
)",
                values);
  }
  std::string take;
  std::string give;
  for (int k = 0; k < width; ++k) {
    const std::string index = std::to_string(k);
    take += "item[" + index + "] = load(loaded" + Component(k) + ");\n";
    give += "scanned" + Component(k) + " = combine(before, item[" + index + "]);\n";
  }
  values["take"] = take;
  values["give"] = give;
  return Fill(R"(
float carry = identity();
@unroll@
for (int start = 0; start < cols; start += @segment@) {
  const int col = start + @worker@ * @width@;
  const bool whole = cols % @width@ == 0 && col < cols;
  float item[@width@];
  if (whole) {
    const @type@ loaded = *reinterpret_cast<const @type@*>(@in@_row + col);
    @take@
  } else {
    for (int j = 0; j < @width@; ++j) item[j] = col + j < cols ? load(@in@_row[col + j]) : identity();
  }
  for (int j = 1; j < @width@; ++j) item[j] = combine(item[j - 1], item[j]);
  const float total = item[@width@ - 1];
  @join@
  if (whole) {
    @type@ scanned;
    @give@
    *reinterpret_cast<@type@*>(@out@_row + col) = scanned;
  } else {
    for (int j = 0; j < @width@; ++j) {
      if (col + j < cols) @out@_row[col + j] = combine(before, item[j]);
    }
  }
}
)",
              values);
}

std::string MissingScan(const Program& program) {
  const std::string missing = MissingRowParts(program, {"load", "identity", "combine"});
  if (!missing.empty()) return missing;
  if (FirstInput(program) == nullptr) return "an input";
  for (const Parameter& parameter : program.parameters) {
    if (parameter.pointer && program.AxesOf(parameter.name).size() != 2)
      return "input and output with the axes [rows][cols]";
  }
  return program.FindFunction("load")->parameters.size() == 1 ? "" : "load(float x)";
}

std::string ScanKernels(const Program& program) {
  const Schedule& schedule = program.schedule;
  const int width = schedule.Get("vectorize", 1);
  const RowOwner owner = OwnerOf(schedule);
  const Values values = CommonValues(program, 256,
                                     {{"in", FirstInput(program)->name},
                                      {"width", width},
                                      {"type", "float" + std::to_string(width)},
                                      {"first_single", width == 1 ? "0" : "vectors * " + std::to_string(width)}});
  std::string shared;
  std::string start = RowStart(program);
  if (owner != RowOwner::kThread && width > 1) start = start.substr(0, start.find("const int vectors"));
  if (owner == RowOwner::kBlock) {
    const int block = schedule.Get("block", 256);
    shared = schedule.Has("shuffle") ? "__shared__ float warp_totals[" + std::to_string(block / 32) + "];"
                                     : "__shared__ float values[" + std::to_string(block) + "];";
    if (schedule.Has("shuffle")) start = "const int lane = threadIdx.x % 32;\n" + start;
  }
  return Fill(
      R"(
// kernels: @comment@.
__global__ void scan_kernel(@parameters@) {
  @shared@
  @start@
  @body@
}

@launch@
)",
      CommonValues(
          program, 256,
          {{"comment", owner == RowOwner::kThread ? "a thread walks its row"
                       : owner == RowOwner::kWarp ? "a warp walks its row, scanning a segment by shuffles"
                       : schedule.Has("shuffle")  ? "a block walks its row, scanning a segment by shuffles"
                                                  : "a block walks its row, scanning a segment in shared memory"},
           {"shared", shared},
           {"start", start},
           {"body", owner == RowOwner::kThread ? SerialBody(program, values) : JointBody(program, values)},
           {"launch", RowLaunch(program, "scan_kernel", "")}}));
}

}  // namespace

const Skeleton* ScanSkeleton() {
  static const Skeleton kSkeleton = {
      "scan",
      {},
      {{kCooperate, "one block a row, scanned across its threads"},
       {kShuffle, "scan by warp shuffles (a warp a row unless a block has the row)"},
       VectorRule("float@value@ loads and stores, @value@ neighbouring elements a thread"),
       UnrollRule("the walk along the row"),
       RestrictRule(),
       BlockRule(),
       FastRule()},
      {{{kCoalesce},
        "a thread needs its whole row in order; access becomes coalesced when a block or a warp shares the row"},
       {{kTile, kPad, kPrefetch}, kTileUsedOnce},
       {{kRegister}, "the running result is in a register already"},
       {{kFuse, kOnePass}, "the row is swept once already, by one kernel"},
       {{kHalf}, "the running result would lose most of its digits, and the arrays are float32 anyway"},
       {{kGridStride}, kOwnRow},
       {{kBranchless}, "the threads of a warp take the same path, or a predicate"}},
      "a scan has no place for it",
      MissingScan,
      ScanKernels};
  return &kSkeleton;
}

}  // namespace kgrpo::coder_offline
