// The model: each resource of the device is busy for some time if nothing else limits it; a kernel takes a little
// longer than the busiest one (a p-norm), plus its launch. Latency is one of the resources: the time for which the
// warps that fit at once wait.
#include "evaluator_sim/simt/time_model.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

namespace kgrpo::simt {
namespace {

constexpr double kSectorBytes = 32;

template <typename... Args>
std::string Print(const char* format, Args... args) {
  char text[512];
  std::snprintf(text, sizeof text, format, args...);
  return text;
}

std::string Bytes(double bytes) {
  if (bytes >= 1e9) return Print("%.2f GB", bytes / 1e9);
  if (bytes >= 1e6) return Print("%.1f MB", bytes / 1e6);
  return Print("%.1f kB", bytes / 1e3);
}

// Sectors that go past an L1 of `share` times the even share: between the counted sizes on a logarithmic scale.
double MissedSectors(const ArrayTraffic& array, double share) {
  if (share <= kL1Shares.front()) return array.l1_miss_sectors.front();
  for (size_t i = 1; i < kL1Shares.size(); ++i) {
    if (share > kL1Shares[i]) continue;
    const double t = std::log(share / kL1Shares[i - 1]) / std::log(kL1Shares[i] / kL1Shares[i - 1]);
    return array.l1_miss_sectors[i - 1] * (1 - t) + array.l1_miss_sectors[i] * t;
  }
  return array.l1_miss_sectors.back();
}

struct Traffic {
  double load_sectors = 0, missed_sectors = 0, store_sectors = 0, partial_sectors = 0,
         atomic_sectors = 0;                 // whole grid
  double dram_read = 0, dram_written = 0;    // bytes
  double useful_load = 0, useful_store = 0;  // sectors, had they been filled
  const ArrayTraffic* worst = nullptr;       // the array whose sectors are used worst
};

Traffic SumTraffic(const Counts& counts, const Device& device, double scale, double l1_share, double blocks_at_once) {
  Traffic sum;
  double footprint = 0;
  for (const ArrayTraffic& array : counts.arrays) {
    footprint += std::min(static_cast<double>(array.bytes),
                          scale * (array.unique_load_sectors + array.unique_store_sectors) * kSectorBytes);
  }
  // What does not fit into the L2 is fetched again by each generation of blocks that run together.
  const double overflow = std::max(0.0, 1.0 - device.l2_bytes / std::max(footprint, 1.0));
  const double generations = std::max(1.0, static_cast<double>(counts.grid_blocks) / std::max(1.0, blocks_at_once));
  double worst = 0;
  for (const ArrayTraffic& array : counts.arrays) {
    const double missed = MissedSectors(array, l1_share) * scale;
    sum.load_sectors += array.load_sectors * scale;
    sum.missed_sectors += missed;
    sum.store_sectors += array.store_sectors * scale;
    sum.partial_sectors += array.store_partial_sectors * scale;
    sum.atomic_sectors += array.atomic_sectors * scale;
    sum.useful_load += array.load_ideal_sectors * scale;
    sum.useful_store += array.store_ideal_sectors * scale;
    const double whole = std::ceil(static_cast<double>(array.bytes) / kSectorBytes);
    const double once = std::min(whole, array.unique_load_sectors * scale);
    // Blocks that run together share part of what they load.
    const double per_block =
        array.unique_load_sectors / std::max<double>(1, static_cast<double>(counts.sampled_blocks));
    const double a_generation = std::min(once, per_block * std::sqrt(std::max(1.0, blocks_at_once)));
    const double again = overflow * std::max(0.0, std::min(generations * a_generation, missed) - once);
    sum.dram_read += (once + again) * kSectorBytes;
    const double stored = std::min(whole, array.unique_store_sectors * scale);
    sum.dram_written += stored * kSectorBytes;
    if (array.atomic_sectors > 0) sum.dram_read += std::min(whole, array.atomic_sectors * scale) * kSectorBytes;
    const double waste =
        (array.load_sectors - array.load_ideal_sectors) + (array.store_sectors - array.store_ideal_sectors);
    if (waste > worst) {
      worst = waste;
      sum.worst = &array;
    }
  }
  return sum;
}

std::string Sentence(const Counts& counts, const Device& device, const TimeEstimate& estimate, const Traffic& traffic,
                     double latency_cycles) {
  const std::string& bound = estimate.bound;
  const double requests = std::max(1.0, traffic.load_sectors + traffic.store_sectors);
  const double used = std::min(1.0, (traffic.useful_load + traffic.useful_store) / requests);
  std::string text;
  if (bound == "dram") {
    text = "bound by DRAM traffic: " + Bytes(estimate.dram_bytes);
  } else if (bound == "l2") {
    text = "bound by L2 traffic: " + Bytes(estimate.l2_bytes);
  } else if (bound == "l1") {
    text = Print("bound by the L1 cache: %.1f lines for each load or store instruction",
                 counts.l1_wavefronts / std::max(1.0, [&] {
                   double n = 0;
                   for (const ArrayTraffic& array : counts.arrays) n += array.load_requests + array.store_requests;
                   return n;
                 }()));
  } else if (bound == "shared") {
    text = Print("bound by shared memory: %.1f cycles an access where %.1f would do",
                 counts.shared_wavefronts / std::max(1.0, counts.shared_requests),
                 counts.shared_ideal_wavefronts / std::max(1.0, counts.shared_requests));
  } else if (bound == "atomics") {
    text = "bound by atomic operations on the same addresses";
  } else if (bound == "shared atomics") {
    text = "bound by atomic operations on shared memory";
  } else if (bound == "blocks") {
    text = Print("bound by the number of blocks: %.0f with little work each", static_cast<double>(counts.grid_blocks));
  } else if (bound == "latency") {
    text = Print("bound by latency: each warp waits through about %.0f cycles", latency_cycles);
    const double blocks = static_cast<double>(counts.grid_blocks);
    if (blocks < device.multiprocessors)
      text += Print(", and only %.0f of %d multiprocessors have a block", blocks, device.multiprocessors);
  } else if (bound == "launch") {
    text = "bound by the cost of launching a kernel";
  } else if (bound == "memory") {
    text = "bound by the number of load and store instructions";
  } else if (bound == "issue") {
    text = "bound by the number of instructions";
  } else if (bound == "tensor") {
    text = "bound by tensor core throughput";
  } else {
    text = "bound by " + bound + " arithmetic";
  }
  if (used < 0.9 && traffic.load_sectors + traffic.store_sectors > 0) {
    text += Print("; only %.0f%% of the bytes of the sectors it touches are used", 100 * used);
    if (traffic.worst != nullptr) text += " (worst: " + traffic.worst->name + ")";
  }
  if (counts.shared_ideal_wavefronts > 0 && counts.shared_wavefronts > 1.5 * counts.shared_ideal_wavefronts &&
      bound != "shared") {
    text += Print("; bank conflicts make shared memory accesses %.1f times as long",
                  counts.shared_wavefronts / counts.shared_ideal_wavefronts);
  }
  if (counts.thread_instructions < 0.7 * 32 * counts.issued) {
    text += Print("; only %.0f%% of the lanes are active", 100 * counts.thread_instructions / (32 * counts.issued));
  }
  text += Print("; occupancy %.0f%%", 100 * estimate.occupancy.fraction);
  if (estimate.occupancy.fraction < 0.99) text += " (limited by " + estimate.occupancy.limit + ")";
  return text;
}

}  // namespace

uint32_t L1Share(const Device& device, const KernelResources& resources, uint32_t threads_per_block, uint64_t blocks) {
  const Occupancy occupancy = ComputeOccupancy(device, resources, threads_per_block);
  const double resident =
      std::max(1.0, std::min<double>(occupancy.blocks_per_multiprocessor,
                                     std::ceil(static_cast<double>(blocks) / device.multiprocessors)));
  const double shared = resources.static_shared_bytes + resources.dynamic_shared_bytes;
  const double left = device.l1_bytes - resident * (shared > 0 ? shared + device.shared_reserved_per_block : 0);
  return static_cast<uint32_t>(std::max(1024.0, left / resident));
}

TimeEstimate EstimateTime(const Counts& counts, const KernelResources& resources, const Device& device) {
  TimeEstimate estimate;
  estimate.launch_seconds = device.launch_seconds;
  estimate.occupancy = ComputeOccupancy(device, resources, counts.threads_per_block);
  if (estimate.occupancy.blocks_per_multiprocessor == 0) {
    estimate.seconds = std::numeric_limits<double>::infinity();
    estimate.bound = "occupancy";
    estimate.sentence =
        "does not fit on the device: a block needs more " + estimate.occupancy.limit + " than a multiprocessor has";
    return estimate;
  }
  if (counts.sampled_blocks == 0) {
    estimate.seconds = device.launch_seconds;
    estimate.bound = "launch";
    estimate.terms.push_back({"launch", device.launch_seconds, "nothing ran"});
    estimate.sentence = "bound by the cost of launching a kernel";
    return estimate;
  }
  const auto sampled = static_cast<double>(counts.sampled_blocks), blocks = static_cast<double>(counts.grid_blocks);
  const double scale = blocks / sampled;
  const double resident =
      std::min<double>(estimate.occupancy.blocks_per_multiprocessor, std::ceil(blocks / device.multiprocessors));
  // The multiprocessor with the most blocks decides when the kernel ends.
  const double busiest = std::ceil(blocks / device.multiprocessors);
  const double at_once = std::min(blocks, resident * device.multiprocessors);
  const double l1_share = device.l1_effective;
  const Traffic traffic = SumTraffic(counts, device, scale, l1_share, at_once);
  estimate.dram_bytes = traffic.dram_read + traffic.dram_written;
  const double l2_sectors =
      traffic.missed_sectors + traffic.store_sectors + traffic.atomic_sectors + counts.local_sectors * scale * 0.1;
  estimate.l2_bytes = l2_sectors * kSectorBytes;

  auto add = [&](const char* name, double seconds, std::string detail) {
    if (seconds > 0) estimate.terms.push_back({name, seconds, std::move(detail)});
  };
  // Cycles of one multiprocessor for `amount` counted over the sampled blocks.
  auto on_sm = [&](double amount, double rate) { return amount / sampled * busiest / rate / device.clock_hz; };
  auto on_device = [&](double amount, double rate) { return amount / rate / device.clock_hz; };

  add("dram", estimate.dram_bytes / (device.dram_bytes_per_second * device.dram_efficiency),
      Bytes(estimate.dram_bytes));
  add("l2",
      on_device(l2_sectors + traffic.partial_sectors * (device.l2_partial_store - 1), device.l2_sectors_per_cycle),
      Bytes(estimate.l2_bytes) + Print(", %.0f%% of the stored sectors only in part",
                                       100 * traffic.partial_sectors / std::max(1.0, traffic.store_sectors)));
  add("blocks", on_device(blocks, device.blocks_per_cycle), Print("%.0f blocks", blocks));
  add("l1", on_sm(counts.l1_wavefronts + counts.local_sectors / 4, device.l1_lines_per_cycle),
      Print("%.3g lines", counts.l1_wavefronts * scale));
  add("shared",
      on_sm(
          counts.shared_ideal_wavefronts +
              device.shared_conflict_cycles * std::max(0.0, counts.shared_wavefronts - counts.shared_ideal_wavefronts),
          device.shared_wavefronts_per_cycle),
      Print("%.3g cycles, %.3g without bank conflicts", counts.shared_wavefronts * scale,
            counts.shared_ideal_wavefronts * scale));
  add("shared atomics", on_sm(counts.shared_atomic_wavefronts, 1.0 / device.shared_atomic_cycles),
      Print("%.3g turns", counts.shared_atomic_wavefronts * scale));
  add("atomics",
      std::max(on_device(counts.global_atomic_operations * scale, device.l2_atomics_per_cycle),
               on_device(counts.hottest_line_sectors * device.atomic_sector_cycles +
                             counts.hottest_line_repeats * device.same_address_atomic_cycles,
                         1)),
      Print("%.3g operations, %.3g in one line", counts.global_atomic_operations * scale,
            counts.hottest_line_sectors + counts.hottest_line_repeats));
  const double rates[] = {device.fp32_rate,
                          device.int_rate,
                          device.half_rate,
                          device.fp64_rate,
                          device.special_rate,
                          device.memory_rate,
                          0,
                          0};
  for (size_t p = 0; p < counts.pipe.size(); ++p) {
    if (rates[p] > 0)
      add(PipeName(static_cast<Pipe>(p)), on_sm(counts.pipe[p], rates[p]),
          Print("%.3g warp instructions", counts.pipe[p] * scale));
  }
  add("tensor", on_sm(counts.tensor_flops, device.tensor_flops_per_cycle),
      Print("%.3g operations", counts.tensor_flops * scale));
  add("issue", on_sm(counts.issued, device.issue_rate), Print("%.3g warp instructions", counts.issued * scale));

  // Latency: generations of resident blocks, one after the other. The first runs in step and finds nothing in the L2;
  // later ones find what earlier ones fetched.
  double first = 0, later = 0, longest = 0, mean = 0;
  const double from_dram = std::min(1.0, traffic.dram_read / kSectorBytes / std::max(1.0, traffic.missed_sectors));
  for (const BlockLatency& latency : counts.latency) {
    const double share = 1.0 / static_cast<double>(counts.latency.size());
    const double hit = latency.hit.Cycles(device.latencies), miss = latency.miss.Cycles(device.latencies);
    first += miss * share;
    later += (hit + (miss - hit) * from_dram) * share;
    mean += hit * share;
    longest = std::max(longest, hit);
  }
  const double generations = busiest / resident;
  const double rounds = std::max(1.0, 0.5 * (generations + std::ceil(generations)));
  const double latency_total = first + (rounds - 1) * later + (longest - mean) + rounds * device.block_start_cycles;
  const double latency_cycles = latency_total / rounds;
  add("latency", latency_total / device.clock_hz, Print("%.0f cycles a warp, %.1f rounds", latency_cycles, rounds));

  double sum = 0;
  for (const TimeTerm& term : estimate.terms) sum += std::pow(term.seconds, device.norm);
  estimate.seconds = device.launch_seconds + std::pow(sum, 1 / device.norm);
  add("launch", device.launch_seconds, "");
  std::stable_sort(estimate.terms.begin(), estimate.terms.end(),
                   [](const TimeTerm& a, const TimeTerm& b) { return a.seconds > b.seconds; });
  estimate.bound = estimate.terms.front().name;
  estimate.sentence = Sentence(counts, device, estimate, traffic, latency_cycles);
  return estimate;
}

}  // namespace kgrpo::simt
