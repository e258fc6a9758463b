// The model: each resource of the device is busy for some time if nothing else limits it; a kernel takes a little
// longer than the busiest one (a p-norm), plus its launch. Latency is one of the resources: the time for which the
// warps that fit at once wait.
#include "simt/time/time_model.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "simt/time/advice.h"
#include "simt/time/time_sentence.h"
#include "simt/time/traffic.h"

namespace kgrpo::simt {

namespace {

// The blocks that run at once on a multiprocessor.
double ResidentBlocks(const Device& device, const Occupancy& occupancy, uint64_t blocks) {
  return std::max(1.0, std::min<double>(occupancy.blocks_per_multiprocessor,
                                        std::ceil(static_cast<double>(blocks) / device.multiprocessors)));
}

}  // namespace

Latencies LatenciesOf(const Device& device, const Occupancy& occupancy, uint32_t warps_per_block, uint64_t blocks) {
  Latencies latencies = device.latencies;
  latencies.nanosecond = device.clock_hz * 1e-9;
  latencies.transfer = ResidentBlocks(device, occupancy, blocks) * warps_per_block * device.multiprocessors /
                       device.l2_sectors_per_cycle;
  return latencies;
}

uint32_t L1Share(const Device& device, const KernelResources& resources, uint32_t threads_per_block, uint64_t blocks) {
  const double resident = ResidentBlocks(device, ComputeOccupancy(device, resources, threads_per_block), blocks);
  const double shared = resources.static_shared_bytes + resources.dynamic_shared_bytes;
  const double left = device.l1_bytes - resident * (shared > 0 ? shared + device.shared_reserved_per_block : 0);
  return static_cast<uint32_t>(std::max(1024.0, left / resident));
}

TimeEstimate EstimateTime(const Counts& counts, const KernelResources& resources, const Device& device,
                          L2Contents* contents, bool explain) {
  TimeEstimate estimate;
  L2Contents empty;
  if (contents == nullptr) contents = &empty;
  const L2Contents before = explain ? *contents : L2Contents();
  estimate.launch_seconds = contents->Launch() ? device.next_launch_seconds : device.launch_seconds;
  estimate.occupancy = ComputeOccupancy(device, resources, counts.threads_per_block);
  if (estimate.occupancy.blocks_per_multiprocessor == 0) {
    estimate.seconds = std::numeric_limits<double>::infinity();
    estimate.bound = "occupancy";
    estimate.sentence =
        "does not fit on the device: a block needs more " + estimate.occupancy.limit + " than a multiprocessor has";
    return estimate;
  }
  if (counts.sampled_blocks == 0) {
    estimate.seconds = estimate.launch_seconds;
    estimate.bound = "launch";
    estimate.terms.push_back({"launch", estimate.launch_seconds, "nothing ran"});
    estimate.sentence = "bound by the cost of launching a kernel";
    return estimate;
  }
  const auto sampled = static_cast<double>(counts.sampled_blocks), blocks = static_cast<double>(counts.grid_blocks);
  const double scale = blocks / sampled;
  const double resident = ResidentBlocks(device, estimate.occupancy, counts.grid_blocks);
  // The multiprocessor with the most to do decides when the kernel ends.
  const double most_blocks = std::ceil(blocks / device.multiprocessors);
  const double busiest = counts.busiest_blocks > 0 ? counts.busiest_blocks : most_blocks;
  const double at_once = std::min(blocks, resident * device.multiprocessors);
  const Traffic traffic = SumTraffic(counts, device, scale, at_once, *contents);
  contents->Touch(traffic.touched, device.l2_bytes * device.l2_keeps);
  // Local arrays that the L2 does not hold.
  const double local_bytes = at_once * counts.threads_per_block * counts.local_bytes;
  const double local_missed = std::max(0.0, 1 - device.l2_bytes / std::max(1.0, local_bytes));
  estimate.dram_bytes =
      traffic.dram_read + traffic.dram_written + local_missed * counts.local_sectors * scale * kSectorBytes;
  const double l2_sectors =
      traffic.missed_sectors + traffic.store_sectors + traffic.atomic_sectors + counts.local_sectors * scale;
  estimate.l2_bytes = l2_sectors * kSectorBytes;

  // `detail` is called only where the text is wanted.
  auto add = [&](const char* name, double seconds, auto detail) {
    if (seconds > 0) estimate.terms.push_back({name, seconds, explain ? detail() : std::string()});
  };
  // Cycles of one multiprocessor for `amount` counted over the sampled blocks.
  auto on_sm = [&](double amount, double rate) { return amount / sampled * busiest / rate / device.clock_hz; };
  auto on_device = [&](double amount, double rate) { return amount / rate / device.clock_hz; };

  add("dram", estimate.dram_bytes / (device.dram_bytes_per_second * device.dram_efficiency),
      [&] { return BytesText(estimate.dram_bytes); });
  add("l2",
      on_device(l2_sectors + PartialStoreCost(traffic.partial_lines + counts.local_partial_lines * scale,
                                              traffic.partial_sectors + counts.local_partial_sectors * scale, device),
                device.l2_sectors_per_cycle),
      [&] {
        return BytesText(estimate.l2_bytes) +
               Print(", %.0f%% of the stored sectors only in part",
                     100 * traffic.partial_sectors / std::max(1.0, traffic.store_sectors));
      });
  add("blocks", on_device(blocks, device.blocks_per_cycle), [&] { return Print("%.0f blocks", blocks); });
  add("l1", on_sm(counts.l1_wavefronts + counts.local_lines, device.l1_lines_per_cycle),
      [&] { return Print("%.3g lines", counts.l1_wavefronts * scale); });
  add("shared", on_sm(SharedCycles(counts, device), device.shared_wavefronts_per_cycle), [&] {
    return Print("%.3g cycles, %.3g without bank conflicts; %.3g of shuffles and reads of threadIdx",
                 counts.shared_wavefronts * scale, counts.shared_ideal_wavefronts * scale,
                 counts.exchange_wavefronts * scale);
  });
  add("constant", on_sm(counts.constant_cycles, 1),
      [&] { return Print("%.3g cycles", counts.constant_cycles * scale); });
  add("shared atomics", on_sm(counts.shared_atomic_wavefronts, 1.0 / device.shared_atomic_cycles),
      [&] { return Print("%.3g turns", counts.shared_atomic_wavefronts * scale); });
  const AtomicCycles atomics = CyclesOfAtomics(counts, device);
  add("atomics", std::hypot(atomics.all, atomics.busiest) / device.clock_hz, [&] {
    return Print("%.3g operations, %.3g turns of one unit", counts.global_atomic_operations * scale,
                 counts.busiest_atomic_turns);
  });
  const double rates[] = {device.fp32_rate,
                          device.int_rate,
                          device.half_rate,
                          device.fp64_rate,
                          device.special_rate,
                          device.memory_rate,
                          device.tensor_flops_per_cycle / 4096,
                          0,
                          1};
  for (size_t p = 0; p < counts.pipe.size(); ++p) {
    if (rates[p] > 0)
      add(PipeName(static_cast<Pipe>(p)), on_sm(counts.pipe[p], rates[p]),
          [&] { return Print("%.3g warp instructions", counts.pipe[p] * scale); });
  }
  add("issue", on_sm(counts.issued, device.issue_rate),
      [&] { return Print("%.3g warp instructions", counts.issued * scale); });
  // L1 and shared memory are the same memory and take turns (H100 white paper: unified data cache).
  // Blocks of one generation load, compute and store at about the same times, so that the device waits for one resource
  // after the other; those of many generations are at different places of the kernel. So are those that have met at
  // many barriers: they drift apart (kernels of tiles on an H100 with 16 to 512 barriers).
  constexpr double kBarriersToDrift = 150;
  const double generations = most_blocks / resident;
  const double drift = 1 + counts.barriers / (sampled * counts.warps_per_block * kBarriersToDrift);
  estimate.norm = 1 + (device.norm - 1) * generations * drift / (generations * drift + 1);
  // The terms' p-norm; `memory`: with those beyond the multiprocessor.
  const auto busy_for = [&](double norm, bool memory) {
    double sum = 0, data = 0;
    for (const TimeTerm& term : estimate.terms) {
      if (term.name == "l1" || term.name == "shared") {
        data += term.seconds;
      } else if (memory || (term.name != "dram" && term.name != "l2")) {
        sum += std::pow(term.seconds, norm);
      }
    }
    return std::pow(sum + std::pow(data, norm), 1 / norm);
  };
  const double busy = busy_for(estimate.norm, true), pipes = busy_for(device.norm, false);

  // Latency: generations of resident blocks, one after the other. The first runs in step and finds nothing in the L2
  // but what earlier launches left; later ones find what earlier ones fetched.
  double first = 0, later = 0, longest = 0, mean = 0, fetched = 0, ahead = 0;
  const double rounds = std::max(1.0, 0.5 * (generations + std::ceil(generations)));
  const double from_dram = std::min(1.0, traffic.dram_read / kSectorBytes / std::max(1.0, traffic.first_sectors));
  const double not_kept = 1 - traffic.kept_read / std::max(1.0, traffic.kept_read + traffic.dram_read);
  Latencies latencies = LatenciesOf(device, estimate.occupancy, counts.warps_per_block, counts.grid_blocks);
  latencies.barrier += device.barrier_warp_cycles * counts.warps_per_block;
  double weights = 0;
  for (const BlockLatency& latency : counts.latency) weights += latency.weight;
  LatencyPath chain;  // of all rounds together, as the sum below
  const BlockLatency* longest_block = nullptr;
  const double own_from_dram = counts.busiest_blocks > 0 ? not_kept : 0;
  for (const BlockLatency& latency : counts.latency) {
    const double share = latency.weight / weights;
    const double hit = latency.hit.Cycles(latencies), miss = latency.miss.Cycles(latencies);
    first += (hit + (miss - hit) * not_kept) * share;
    later += (hit + (miss - hit) * from_dram) * share;
    // If blocks differ, the slowest one shares little of the data that it loads, and waits for DRAM.
    const double own = hit + (miss - hit) * own_from_dram;
    mean += own * share;
    ahead += latency.ahead * share;
    fetched += (latency.ahead > 0 ? latency.fetched.Cycles(latencies) : own) * share;
    if (own > longest) {
      longest = own;
      longest_block = &latency;
    }
    if (!explain) continue;
    latency.AddTo(&chain, share, not_kept);
    latency.AddTo(&chain, share * (rounds - 1), from_dram);
    latency.AddTo(&chain, -share, own_from_dram);
  }
  if (longest_block != nullptr) longest_block->AddTo(&chain, 1, own_from_dram);
  const double starting = rounds * device.warp_start_cycles * counts.warps_per_block;
  const double latency_total = first + (rounds - 1) * later + (longest - mean) + starting;
  const double latency_cycles = latency_total / rounds, waited = latency_total / device.clock_hz;
  add("latency", waited, [&] { return Print("%.0f cycles a warp, %.1f rounds", latency_cycles, rounds); });

  // Many warps hide each other's waiting. Few that start together stay in step: they wait together, and then move data
  // together.
  const double warps = at_once * counts.warps_per_block / device.multiprocessors;
  const double hiding = warps / (warps + device.overlap_warps);
  // Warps of a block that meet at barriers wait for one another: only other blocks go on.
  const double apart = device.overlap_blocks / (resident > 1 ? drift : 1);
  const double parties = counts.barriers > 0 ? resident / (resident + apart) : 1;
  const auto join = [](double a, double b, double norm) {
    return std::pow(std::pow(a, norm) + std::pow(b, norm), 1 / norm);
  };
  const double norm = estimate.latency_norm = 1 + (device.latency_norm - 1) * hiding * hiding * parties;
  double seconds = join(busy, waited, norm);
  if (ahead > 0) {
    // What is loaded ahead moves while the warps compute, and they do not wait for it together: the first block that
    // needs data from DRAM fetches it for the others. The longest of computing, of a single warp's chain, which
    // includes its transfers, and of the traffic decides.
    const double computing =
        join(pipes, (rounds * fetched + starting) / device.clock_hz, 1 + (device.latency_norm - 1) * hiding);
    double both = std::max(computing, (rounds * later + starting) / device.clock_hz);
    for (const TimeTerm& term : estimate.terms) {
      if (term.name == "dram" || term.name == "l2") both = join(both, term.seconds, device.norm);
    }
    seconds += ahead * (both - seconds);
  }
  if (const double chained = counts.waited_cycles / device.clock_hz; chained > seconds) {
    seconds = chained;
    add("waiting", chained, [&] { return Print("%.0f cycles, one after the other", counts.waited_cycles); });
  }
  estimate.seconds = estimate.launch_seconds + seconds;
  add("launch", estimate.launch_seconds, [] { return std::string(); });
  if (!explain) return estimate;
  std::stable_sort(estimate.terms.begin(), estimate.terms.end(),
                   [](const TimeTerm& a, const TimeTerm& b) { return a.seconds > b.seconds; });
  estimate.bound = estimate.terms.front().name;
  const Waiting waiting{chain, latencies, latency_total, rounds};
  estimate.sentence = TimeSentence(counts, device, estimate, traffic, waiting);
  if (const std::string advice = Advise(counts, resources, device, before, estimate.seconds); !advice.empty())
    estimate.sentence += ". " + advice;
  return estimate;
}

}  // namespace kgrpo::simt
