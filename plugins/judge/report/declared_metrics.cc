#include "judge/report/declared_metrics.h"

namespace kgrpo::evaluator {
namespace {

constexpr const char *kTime = "Time", *kCode = "Machine code", *kLaunch = "Launch", *kRoofline = "Roofline",
                     *kChecks = "Cross-checks", *kProfile = "Profile (Nsight Compute)",
                     *kPipes = "Time by pipe, each alone", *kLevels = "Time by memory level, each alone",
                     *kWaiting = "Waiting and fixed costs", *kAccesses = "Memory accesses",
                     *kInstructions = "Instructions", *kEvaluation = "The evaluation itself", *kSteps = "Evaluator";

constexpr auto kNumber = KGRPO_METRIC_NUMBER, kQuantity = KGRPO_METRIC_QUANTITY, kSeconds = KGRPO_METRIC_SECONDS,
               kRunTime = KGRPO_METRIC_RUN_TIME, kFraction = KGRPO_METRIC_FRACTION, kFlag = KGRPO_METRIC_FLAG;
constexpr auto kHigherIsBetter = KGRPO_METRIC_HIGHER_IS_BETTER, kLowerIsBetter = KGRPO_METRIC_LOWER_IS_BETTER;

constexpr MetricDeclaration kDeclared[] = {
    {"modelled_seconds", "a call, modelled", kTime, kSeconds, "", kLowerIsBetter},
    {"measured_seconds", "a call, in turns with the reference", kTime, kSeconds, "", kLowerIsBetter},
    {"baseline_seconds", "the reference, in turns with it", kTime, kSeconds},
    {"pytorch_seconds", "PyTorch eager, mean", kTime, kSeconds},
    {"pytorch_deviation", "PyTorch eager, standard deviation", kTime, kSeconds},
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
    {"launch_seconds", "launch overhead", kTime, kSeconds},
    {"baseline_launch_seconds", "launch overhead of the reference", kTime, kSeconds},
    {"baseline_launches", "kernels a call, of the reference", kTime},
    {"clock_mhz", "clock", kTime, kNumber, "MHz"},

    {"seconds/issue", "issue (all instructions)", kPipes, kRunTime},
    {"seconds/fp32", "fp32 (and integer products)", kPipes, kRunTime},
    {"seconds/int", "int (and compare, select)", kPipes, kRunTime},
    {"seconds/half", "half (fp16, bf16)", kPipes, kRunTime},
    {"seconds/fp64", "fp64", kPipes, kRunTime},
    {"seconds/special", "special (exp, sin, rsqrt, conversions)", kPipes, kRunTime},
    {"seconds/tensor", "tensor", kPipes, kRunTime},
    {"seconds/memory", "memory (load, store, shuffle instructions)", kPipes, kRunTime},
    {"seconds/serial", "serial (fences, sleeps, split warps)", kPipes, kRunTime},

    {"seconds/constant", "constant (lanes that read different words)", kLevels, kRunTime},
    {"seconds/shared", "shared (with bank conflicts, shuffles)", kLevels, kRunTime},
    {"seconds/shared atomics", "shared atomics", kLevels, kRunTime},
    {"seconds/l1", "l1 (cache)", kLevels, kRunTime},
    {"seconds/l2", "l2 (cache)", kLevels, kRunTime},
    {"seconds/atomics", "atomics (at the L2)", kLevels, kRunTime},
    {"seconds/dram", "dram (device memory)", kLevels, kRunTime},

    {"seconds/latency", "latency (warps that wait for results)", kWaiting, kRunTime},
    {"seconds/host", "host (its calls, and waits for the device)", kWaiting, kRunTime},
    {"seconds/waiting", "waiting (threads for one another, in a chain)", kWaiting, kRunTime},
    {"seconds/blocks", "blocks (starting them)", kWaiting, kRunTime},
    {"seconds/launch", "launch (fixed cost of launches)", kWaiting, kRunTime},
    {"seconds/copies", "copies (memsets, allocations)", kWaiting, kRunTime},
    {"seconds/", "", kWaiting, kRunTime},

    {"load_sectors", "sectors a load request", kAccesses, kNumber, "", kLowerIsBetter},
    {"load_sectors_used", "requested share of their bytes", kAccesses, kFraction, "", kHigherIsBetter},
    {"store_sectors", "sectors a store request", kAccesses, kNumber, "", kLowerIsBetter},
    {"store_sectors_used", "written share of their bytes", kAccesses, kFraction, "", kHigherIsBetter},
    {"shared_cycles", "cycles a shared memory access", kAccesses},
    {"shared_conflicts", "share of bank conflicts", kAccesses, kFraction, "", kLowerIsBetter},
    {"dram_bytes", "DRAM traffic", kAccesses, kQuantity, "B"},
    {"l2_bytes", "L2 traffic", kAccesses, kQuantity, "B"},

    {"issued_instructions", "warp instructions", kInstructions, kQuantity},
    {"sample_spread", "standard error of the counted blocks' work", kInstructions, kFraction, "", kLowerIsBetter},
    {"active_lanes", "lanes active", kInstructions, kFraction, "", kHigherIsBetter},
    {"divergent_branches", "divergent branches", kInstructions, kFraction, "", kLowerIsBetter},

    {"occupancy", "occupancy", kOccupancyTitle, kFraction, "", kHigherIsBetter},
    {"resident_blocks", "blocks at once on a multiprocessor", kOccupancyTitle},
    {"resident_blocks_by/", "blocks at once, limit by", kOccupancyTitle},
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

    {"roofline_fraction", "roofline reached", kRoofline, kFraction, "", kHigherIsBetter},
    {"roofline_seconds", "a call at the roofline", kRoofline, kSeconds},
    {"needed_bytes", "traffic needed (needs.bytes)", kRoofline, kQuantity, "B"},
    {"tensor_bytes", "traffic, every tensor once", kRoofline, kQuantity, "B"},
    {"needed_operations", "operations needed (needs.flops)", kRoofline, kQuantity},
    {"counted_operations", "floating-point operations (upper bound)", kRoofline, kQuantity},
    {"bytes_per_second", "needed traffic", kRoofline, kQuantity, "B/s"},
    {"bandwidth_fraction", "needed traffic, share of the bandwidth", kRoofline, kFraction, "", kHigherIsBetter},
    {"bandwidth_peak", "DRAM bandwidth by the data sheet", kRoofline, kQuantity, "B/s"},
    {"bandwidth_ceiling", "DRAM bandwidth reached by a plain read", kRoofline, kQuantity, "B/s"},
    {"l2_bandwidth_ceiling", "L2 bandwidth reached by a plain read", kRoofline, kQuantity, "B/s"},
    {"operations_per_second", "needed arithmetic", kRoofline, kQuantity, "FLOP/s"},
    {"arithmetic_fraction", "needed arithmetic, share of the rate", kRoofline, kFraction, "", kHigherIsBetter},
    {"arithmetic_ceiling", "arithmetic rate reached by a plain loop", kRoofline, kQuantity, "FLOP/s"},
    {"arithmetic_peak/", "peak arithmetic rate,", kRoofline, kQuantity, "FLOP/s"},
    {"issue_peak", "peak warp instructions", kRoofline, kQuantity, "/s"},
    {"least_seconds", "a call on the fastest units", kRoofline, kSeconds},

    {"profile.kernels", "kernels profiled", kProfile},
    {"profile.seconds", "all profiled kernels", kProfile, kSeconds},
    {"profile.longest_seconds", "the longest kernel (figures below)", kProfile, kSeconds},
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

    {"event_seconds", "a call, by events in its process", kChecks, kSeconds},
    {"checks_interpreted", "correctness cases interpreted too", kChecks, kFlag},
    {"placement_fastest_seconds", "a call at the fastest placement", kChecks, kSeconds},
    {"placement_slowest_seconds", "a call at the slowest placement", kChecks, kSeconds},
    {"first_call_seconds", "extra time of a batch's first call", kChecks, kSeconds},
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

    {"evaluator/cached", "evaluations from the cache", kSteps, kFraction},
    {"evaluator/compile_seconds", "compiling a kernel", kSteps, kSeconds},
    {"evaluator/compile_cached", "compiled kernels from the cache", kSteps, kFraction},
    {"evaluator/judge_seconds", "judging a kernel", kSteps, kSeconds},
};

}  // namespace

std::span<const MetricDeclaration> DeclaredMetrics() { return kDeclared; }

}  // namespace kgrpo::evaluator
