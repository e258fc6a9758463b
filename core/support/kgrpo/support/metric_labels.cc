#include <kgrpo/support/metric_labels.h>

#include <algorithm>
#include <array>

namespace kgrpo {
namespace {

constexpr std::string_view kTime = "Time", kCode = "Machine code", kLaunch = "Launch", kRoofline = "Roofline",
                           kChecks = "Cross-checks", kProfile = "Profile (Nsight Compute)",
                           kPipes = "Busy by pipe, each as if alone",
                           kLevels = "Busy by memory level, each as if alone", kWaiting = "Waiting and fixed costs",
                           kAccesses = "Memory accesses", kInstructions = "Instructions",
                           kJudge = "The judgement itself";

// In the order in which they are shown.
constexpr auto kLabels = std::to_array<MetricLabel>({
    {"speedup", "", "speedup", Unit::kNumber},
    {"modelled_seconds", kTime, "a call, modelled", Unit::kSeconds},
    {"measured_seconds", kTime, "a call, beside the reference", Unit::kSeconds},
    {"baseline_seconds", kTime, "the reference, beside it", Unit::kSeconds},
    {"timing_rounds", kTime, "timing rounds", Unit::kNumber},
    {"timing_throttled_rounds", kTime, "throttled rounds", Unit::kNumber},
    {"timing_dropped_rounds", kTime, "throttled rounds (dropped)", Unit::kNumber},
    {"timing_calls", kTime, "calls timed", Unit::kNumber},
    {"timing_sets", kTime, "sets of inputs", Unit::kNumber},
    {"timing_gated", kTime, "calls launched ahead (1) or not (0)", Unit::kNumber},
    {"timing_baseline_gated", kTime, "reference launched ahead (1) or not (0)", Unit::kNumber},
    {"timing_early_checks", kTime, "batches checked for early work", Unit::kNumber},
    {"timing_pairs", kTime, "processes of each side, in turns", Unit::kNumber},
    {"timing_looks", kTime, "timings (above 1: after a suspicious result)", Unit::kNumber},
    {"launch_seconds", kTime, "a launch, by its process", Unit::kSeconds},
    {"baseline_launch_seconds", kTime, "a launch, by the reference's process", Unit::kSeconds},
    {"baseline_launches", kTime, "kernels a call of the reference", Unit::kNumber},
    {"clock_mhz", kTime, "clock", Unit::kMegahertz},

    {"seconds/issue", kPipes, "issue (all instructions)", Unit::kSeconds},
    {"seconds/fp32", kPipes, "fp32 (and integer products)", Unit::kSeconds},
    {"seconds/int", kPipes, "int (and compare, select)", Unit::kSeconds},
    {"seconds/half", kPipes, "half (fp16, bf16)", Unit::kSeconds},
    {"seconds/fp64", kPipes, "fp64", Unit::kSeconds},
    {"seconds/special", kPipes, "special (exp, sin, rsqrt, conversions)", Unit::kSeconds},
    {"seconds/tensor", kPipes, "tensor", Unit::kSeconds},
    {"seconds/memory", kPipes, "memory (load, store, shuffle instructions)", Unit::kSeconds},

    {"seconds/shared", kLevels, "shared (with bank conflicts, shuffles)", Unit::kSeconds},
    {"seconds/shared atomics", kLevels, "shared atomics", Unit::kSeconds},
    {"seconds/l1", kLevels, "l1 (cache)", Unit::kSeconds},
    {"seconds/l2", kLevels, "l2 (cache)", Unit::kSeconds},
    {"seconds/atomics", kLevels, "atomics (at the L2)", Unit::kSeconds},
    {"seconds/dram", kLevels, "dram (device memory)", Unit::kSeconds},

    {"seconds/latency", kWaiting, "latency (warps that wait for results)", Unit::kSeconds},
    {"seconds/blocks", kWaiting, "blocks (starting them)", Unit::kSeconds},
    {"seconds/launch", kWaiting, "launch (fixed cost of launches)", Unit::kSeconds},
    {"seconds/copies", kWaiting, "copies (memsets, allocations)", Unit::kSeconds},
    {"seconds/", kWaiting, "", Unit::kSeconds},

    {"load_sectors", kAccesses, "sectors a load request", Unit::kNumber},
    {"load_sectors_used", kAccesses, "bytes of those sectors that are asked for", Unit::kFraction},
    {"store_sectors", kAccesses, "sectors a store request", Unit::kNumber},
    {"store_sectors_used", kAccesses, "bytes of those sectors that are written", Unit::kFraction},
    {"shared_cycles", kAccesses, "cycles a shared memory access", Unit::kNumber},
    {"shared_conflicts", kAccesses, "of them by bank conflicts", Unit::kFraction},
    {"dram_bytes", kAccesses, "DRAM traffic", Unit::kBytes},
    {"l2_bytes", kAccesses, "L2 traffic", Unit::kBytes},

    {"issued_instructions", kInstructions, "warp instructions", Unit::kCount},
    {"active_lanes", kInstructions, "lanes active", Unit::kFraction},
    {"divergent_branches", kInstructions, "branches at which a warp parts", Unit::kFraction},

    {"occupancy", kOccupancy, "occupancy", Unit::kFraction},
    {"resident_blocks", kOccupancy, "blocks at once on a multiprocessor", Unit::kNumber},
    {"resident_blocks_by/", kOccupancy, "blocks at once as far as it goes by", Unit::kNumber},
    {"waves", kOccupancy, "waves of blocks", Unit::kNumber},

    {"launches", kLaunch, "kernels a call", Unit::kNumber},
    {"grid_blocks", kLaunch, "blocks", Unit::kNumber},
    {"block_threads", kLaunch, "threads a block", Unit::kNumber},
    {"dynamic_shared_bytes", kLaunch, "dynamic shared memory a block", Unit::kBytes},

    {"registers", kCode, "registers a thread", Unit::kNumber},
    {"spill_bytes", kCode, "registers spilled", Unit::kBytes},
    {"shared_bytes", kCode, "shared memory a block", Unit::kBytes},
    {"static_shared_bytes", kCode, "static shared memory a block", Unit::kBytes},
    {"stack_bytes", kCode, "local memory a thread", Unit::kBytes},
    {"constant_bytes", kCode, "constant memory", Unit::kBytes},

    {"roofline_fraction", kRoofline, "the roofline's time, of the call's", Unit::kFraction},
    {"roofline_seconds", kRoofline, "a call at the roofline", Unit::kSeconds},
    {"bytes_per_second", kRoofline, "needed traffic", Unit::kBytesPerSecond},
    {"bandwidth_fraction", kRoofline, "needed traffic, of the bandwidth", Unit::kFraction},
    {"bandwidth_peak", kRoofline, "DRAM bandwidth by the data sheet", Unit::kBytesPerSecond},
    {"bandwidth_ceiling", kRoofline, "DRAM bandwidth reached by a plain read", Unit::kBytesPerSecond},
    {"l2_bandwidth_ceiling", kRoofline, "L2 bandwidth reached by a plain read", Unit::kBytesPerSecond},
    {"operations_per_second", kRoofline, "needed arithmetic", Unit::kOperationsPerSecond},
    {"arithmetic_fraction", kRoofline, "needed arithmetic, of the rate", Unit::kFraction},
    {"arithmetic_ceiling", kRoofline, "arithmetic rate reached by a plain loop", Unit::kOperationsPerSecond},
    {"arithmetic_peak/", kRoofline, "arithmetic rate at most,", Unit::kOperationsPerSecond},
    {"issue_peak", kRoofline, "warp instructions at most", Unit::kPerSecond},
    {"least_seconds", kRoofline, "a call by the fastest units there are", Unit::kSeconds},

    {"profile.kernels", kProfile, "kernels profiled", Unit::kNumber},
    {"profile.seconds", kProfile, "all of them", Unit::kSeconds},
    {"profile.longest_seconds", kProfile, "the longest, of which the rest is", Unit::kSeconds},
    {"profile.occupancy", kProfile, "achieved occupancy", Unit::kFraction},
    {"profile.dram_fraction", kProfile, "DRAM throughput, of its peak", Unit::kFraction},
    {"profile.dram_bytes", kProfile, "DRAM traffic", Unit::kBytes},
    {"profile.l2_hits", kProfile, "L2 hits", Unit::kFraction},
    {"profile.l1_hits", kProfile, "L1 hits", Unit::kFraction},
    {"profile.multiprocessor_fraction", kProfile, "multiprocessor throughput, of its peak", Unit::kFraction},
    {"profile.tensor_fraction", kProfile, "tensor pipe busy", Unit::kFraction},
    {"profile.issue_fraction", kProfile, "issue slots used", Unit::kFraction},
    {"profile.load_sectors", kProfile, "sectors a global load request", Unit::kNumber},
    {"profile.store_sectors", kProfile, "sectors a global store request", Unit::kNumber},
    {"profile.bank_conflicts", kProfile, "shared memory bank conflicts", Unit::kNumber},
    {"profile.stalls.", kProfile, "warps' time lost to", Unit::kFraction},

    {"event_seconds", kChecks, "a call by events of its own process", Unit::kSeconds},
    {"checks_interpreted", kChecks, "correctness cases interpreted too", Unit::kYesNo},
    {"placement_fastest_seconds", kChecks, "a call at the fastest placement", Unit::kSeconds},
    {"placement_slowest_seconds", kChecks, "a call at the slowest placement", Unit::kSeconds},
    {"first_call_seconds", kChecks, "first call of a batch longer by", Unit::kSeconds},
    {"worst_error/", "", "", Unit::kNumber},  // shown above the facts
    {"same_bits_twice", kChecks, "same bits when called twice", Unit::kYesNo},
    {"checked_warp_instructions", kChecks, "warp instructions checked", Unit::kNumber},

    {"judge_wait_seconds", kJudge, "wait for the device", Unit::kSeconds},
    {"judge_load_seconds", kJudge, "loading", Unit::kSeconds},
    {"judge_check_seconds", kJudge, "correctness", Unit::kSeconds},
    {"judge_time_seconds", kJudge, "timing", Unit::kSeconds},
    {"judge_interpret_seconds", kJudge, "wait for the interpreter, after the device", Unit::kSeconds},

    // Told by line: LinesOf.
    {"line/", "", "", Unit::kFraction},
    {"line_sectors/", "", "", Unit::kNumber},
    {"line_sectors_used/", "", "", Unit::kFraction},
    {"line_shared_cycles/", "", "", Unit::kNumber},
    {"line_shared_conflicts/", "", "", Unit::kFraction},
});

}  // namespace

const MetricLabel* LabelOf(std::string_view name, size_t* order) {
  // An exact name goes before the family that it belongs to.
  name = name.substr(0, name.find(" of "));
  const auto found = std::find_if(kLabels.begin(), kLabels.end(), [name](const MetricLabel& label) {
    return label.IsFamily() ? name.starts_with(label.name) && name.size() > label.name.size() : name == label.name;
  });
  *order = static_cast<size_t>(found - kLabels.begin());
  return found == kLabels.end() ? nullptr : &*found;
}

}  // namespace kgrpo
