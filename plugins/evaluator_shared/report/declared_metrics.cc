#include "evaluator_shared/report/declared_metrics.h"

namespace kgrpo::evaluator {
namespace {

constexpr const char *kTime = "Time", *kCode = "Machine code", *kLaunch = "Launch", *kRoofline = "Roofline",
                     *kChecks = "Cross-checks", *kProfile = "Profile (Nsight Compute)",
                     *kPipes = "Busy by pipe, each as if alone", *kLevels = "Busy by memory level, each as if alone",
                     *kWaiting = "Waiting and fixed costs", *kAccesses = "Memory accesses",
                     *kInstructions = "Instructions", *kEvaluation = "The evaluation itself", *kSteps = "Evaluator";

constexpr auto kNumber = KGRPO_METRIC_NUMBER, kQuantity = KGRPO_METRIC_QUANTITY, kSeconds = KGRPO_METRIC_SECONDS,
               kRunTime = KGRPO_METRIC_RUN_TIME, kFraction = KGRPO_METRIC_FRACTION, kFlag = KGRPO_METRIC_FLAG;
constexpr auto kHigherIsBetter = KGRPO_METRIC_HIGHER_IS_BETTER, kLowerIsBetter = KGRPO_METRIC_LOWER_IS_BETTER;

constexpr MetricDeclaration kDeclared[] = {
    {"speedup", "speedup", "", kNumber, "", kHigherIsBetter},
    {"modelled_seconds", "a call, modelled", kTime, kSeconds, "", kLowerIsBetter},
    {"measured_seconds", "a call, beside the reference", kTime, kSeconds, "", kLowerIsBetter},
    {"baseline_seconds", "the reference, beside it", kTime, kSeconds},
    {"timing_rounds", "timing rounds", kTime},
    {"timing_throttled_rounds", "throttled rounds", kTime},
    {"timing_dropped_rounds", "throttled rounds (dropped)", kTime},
    {"timing_calls", "calls timed", kTime},
    {"timing_sets", "sets of inputs", kTime},
    {"timing_gated", "calls launched ahead (1) or not (0)", kTime},
    {"timing_baseline_gated", "reference launched ahead (1) or not (0)", kTime},
    {"timing_early_checks", "batches checked for early work", kTime},
    {"timing_pairs", "processes of each side, in turns", kTime},
    {"timing_looks", "timings (above 1: after a suspicious result)", kTime},
    {"launch_seconds", "a launch, by its process", kTime, kSeconds},
    {"baseline_launch_seconds", "a launch, by the reference's process", kTime, kSeconds},
    {"baseline_launches", "kernels a call of the reference", kTime},
    {"clock_mhz", "clock", kTime, kNumber, "MHz"},

    {"seconds/issue", "issue (all instructions)", kPipes, kRunTime},
    {"seconds/fp32", "fp32 (and integer products)", kPipes, kRunTime},
    {"seconds/int", "int (and compare, select)", kPipes, kRunTime},
    {"seconds/half", "half (fp16, bf16)", kPipes, kRunTime},
    {"seconds/fp64", "fp64", kPipes, kRunTime},
    {"seconds/special", "special (exp, sin, rsqrt, conversions)", kPipes, kRunTime},
    {"seconds/tensor", "tensor", kPipes, kRunTime},
    {"seconds/memory", "memory (load, store, shuffle instructions)", kPipes, kRunTime},

    {"seconds/shared", "shared (with bank conflicts, shuffles)", kLevels, kRunTime},
    {"seconds/shared atomics", "shared atomics", kLevels, kRunTime},
    {"seconds/l1", "l1 (cache)", kLevels, kRunTime},
    {"seconds/l2", "l2 (cache)", kLevels, kRunTime},
    {"seconds/atomics", "atomics (at the L2)", kLevels, kRunTime},
    {"seconds/dram", "dram (device memory)", kLevels, kRunTime},

    {"seconds/latency", "latency (warps that wait for results)", kWaiting, kRunTime},
    {"seconds/blocks", "blocks (starting them)", kWaiting, kRunTime},
    {"seconds/launch", "launch (fixed cost of launches)", kWaiting, kRunTime},
    {"seconds/copies", "copies (memsets, allocations)", kWaiting, kRunTime},
    {"seconds/", "", kWaiting, kRunTime},

    {"load_sectors", "sectors a load request", kAccesses, kNumber, "", kLowerIsBetter},
    {"load_sectors_used", "bytes of those sectors that are asked for", kAccesses, kFraction, "", kHigherIsBetter},
    {"store_sectors", "sectors a store request", kAccesses, kNumber, "", kLowerIsBetter},
    {"store_sectors_used", "bytes of those sectors that are written", kAccesses, kFraction, "", kHigherIsBetter},
    {"shared_cycles", "cycles a shared memory access", kAccesses},
    {"shared_conflicts", "of them by bank conflicts", kAccesses, kFraction, "", kLowerIsBetter},
    {"dram_bytes", "DRAM traffic", kAccesses, kQuantity, "B"},
    {"l2_bytes", "L2 traffic", kAccesses, kQuantity, "B"},

    {"issued_instructions", "warp instructions", kInstructions, kQuantity},
    {"active_lanes", "lanes active", kInstructions, kFraction, "", kHigherIsBetter},
    {"divergent_branches", "branches at which a warp parts", kInstructions, kFraction, "", kLowerIsBetter},

    {"occupancy", "occupancy", kOccupancyTitle, kFraction, "", kHigherIsBetter},
    {"resident_blocks", "blocks at once on a multiprocessor", kOccupancyTitle},
    {"resident_blocks_by/", "blocks at once as far as it goes by", kOccupancyTitle},
    {"waves", "waves of blocks", kOccupancyTitle},

    {"launches", "kernels a call", kLaunch},
    {"grid_blocks", "blocks", kLaunch},
    {"block_threads", "threads a block", kLaunch},
    {"dynamic_shared_bytes", "dynamic shared memory a block", kLaunch, kQuantity, "B"},

    {"registers", "registers a thread", kCode},
    {"spill_bytes", "registers spilled", kCode, kQuantity, "B", kLowerIsBetter},
    {"shared_bytes", "shared memory a block", kCode, kQuantity, "B"},
    {"static_shared_bytes", "static shared memory a block", kCode, kQuantity, "B"},
    {"stack_bytes", "local memory a thread", kCode, kQuantity, "B"},
    {"constant_bytes", "constant memory", kCode, kQuantity, "B"},

    {"roofline_fraction", "the roofline's time, of the call's", kRoofline, kFraction, "", kHigherIsBetter},
    {"roofline_seconds", "a call at the roofline", kRoofline, kSeconds},
    {"needed_bytes", "traffic needed (needs.bytes)", kRoofline, kQuantity, "B"},
    {"tensor_bytes", "every tensor once", kRoofline, kQuantity, "B"},
    {"needed_operations", "operations needed (needs.flops)", kRoofline, kQuantity},
    {"counted_operations", "floating-point operations, at most", kRoofline, kQuantity},
    {"bytes_per_second", "needed traffic", kRoofline, kQuantity, "B/s"},
    {"bandwidth_fraction", "needed traffic, of the bandwidth", kRoofline, kFraction, "", kHigherIsBetter},
    {"bandwidth_peak", "DRAM bandwidth by the data sheet", kRoofline, kQuantity, "B/s"},
    {"bandwidth_ceiling", "DRAM bandwidth reached by a plain read", kRoofline, kQuantity, "B/s"},
    {"l2_bandwidth_ceiling", "L2 bandwidth reached by a plain read", kRoofline, kQuantity, "B/s"},
    {"operations_per_second", "needed arithmetic", kRoofline, kQuantity, "FLOP/s"},
    {"arithmetic_fraction", "needed arithmetic, of the rate", kRoofline, kFraction, "", kHigherIsBetter},
    {"arithmetic_ceiling", "arithmetic rate reached by a plain loop", kRoofline, kQuantity, "FLOP/s"},
    {"arithmetic_peak/", "arithmetic rate at most,", kRoofline, kQuantity, "FLOP/s"},
    {"issue_peak", "warp instructions at most", kRoofline, kQuantity, "/s"},
    {"least_seconds", "a call by the fastest units there are", kRoofline, kSeconds},

    {"profile.kernels", "kernels profiled", kProfile},
    {"profile.seconds", "all of them", kProfile, kSeconds},
    {"profile.longest_seconds", "the longest, of which the rest is", kProfile, kSeconds},
    {"profile.occupancy", "achieved occupancy", kProfile, kFraction, "", kHigherIsBetter},
    {"profile.dram_fraction", "DRAM throughput, of its peak", kProfile, kFraction},
    {"profile.dram_bytes", "DRAM traffic", kProfile, kQuantity, "B"},
    {"profile.l2_hits", "L2 hits", kProfile, kFraction, "", kHigherIsBetter},
    {"profile.l1_hits", "L1 hits", kProfile, kFraction, "", kHigherIsBetter},
    {"profile.multiprocessor_fraction", "multiprocessor throughput, of its peak", kProfile, kFraction},
    {"profile.tensor_fraction", "tensor pipe busy", kProfile, kFraction},
    {"profile.issue_fraction", "issue slots used", kProfile, kFraction},
    {"profile.load_sectors", "sectors a global load request", kProfile},
    {"profile.store_sectors", "sectors a global store request", kProfile},
    {"profile.bank_conflicts", "shared memory bank conflicts", kProfile, kNumber, "", kLowerIsBetter},
    {"profile.stalls.", "warps' time lost to", kProfile, kFraction},

    {"event_seconds", "a call by events of its own process", kChecks, kSeconds},
    {"checks_interpreted", "correctness cases interpreted too", kChecks, kFlag},
    {"placement_fastest_seconds", "a call at the fastest placement", kChecks, kSeconds},
    {"placement_slowest_seconds", "a call at the slowest placement", kChecks, kSeconds},
    {"first_call_seconds", "first call of a batch longer by", kChecks, kSeconds},
    {"worst_error/", "", ""},  // shown above the facts
    {"same_bits_twice", "same bits when called twice", kChecks, kFlag},
    {"checked_warp_instructions", "warp instructions checked", kChecks},

    {"judge_wait_seconds", "wait for the device", kEvaluation, kSeconds},
    {"judge_load_seconds", "loading", kEvaluation, kSeconds},
    {"judge_check_seconds", "correctness", kEvaluation, kSeconds},
    {"judge_time_seconds", "timing", kEvaluation, kSeconds},
    {"judge_interpret_seconds", "wait for the interpreter, after the device", kEvaluation, kSeconds},

    // Told as remarks on lines: RemarksOf.
    {"line/", "", "", kFraction},
    {"line_sectors/", "", ""},
    {"line_sectors_used/", "", "", kFraction},
    {"line_shared_cycles/", "", ""},
    {"line_shared_conflicts/", "", "", kFraction},

    {"evaluator/cached", "evaluations that were kept", kSteps, kFraction},
    {"evaluator/compile_seconds", "compiling a kernel", kSteps, kSeconds},
    {"evaluator/compile_cached", "kernels that had been compiled before", kSteps, kFraction},
    {"evaluator/judge_seconds", "judging a kernel", kSteps, kSeconds},
};

}  // namespace

std::span<const MetricDeclaration> DeclaredMetrics() {
  return kDeclared;
}

}  // namespace kgrpo::evaluator
