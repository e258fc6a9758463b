#include "simt/time/time_sentence.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace kgrpo::simt {

namespace {

constexpr double kLeastShare = 0.1;  // least share of the cycles that is named
constexpr size_t kMostShares = 3;
constexpr double kLargeShare = 0.2;  // least share of the time at which the launch cost is named
constexpr double kSmallGrid = 0.75;  // in units of the blocks that fit on the device at once

// By LatencyTerm.
constexpr std::array<const char*, kLatencyTerms> kWaits = {"waiting for arithmetic",
                                                           "waiting for fp64 arithmetic",
                                                           "waiting for special functions",
                                                           "waiting for tensor cores",
                                                           "waiting for shared memory",
                                                           "waiting for shuffles",
                                                           "waiting for constant memory",
                                                           "waiting for the L1",
                                                           "waiting for the L2",
                                                           "waiting for DRAM",
                                                           "waiting for atomics or fences",
                                                           "at barriers",
                                                           "waiting for transfers from the L2"};

// "bound by latency: 61% waiting for DRAM, 20% at barriers (about 2310 cycles a warp)"
std::string LatencyText(const Waiting& waiting) {
  std::vector<std::pair<double, const char*>> shares;
  double waited = waiting.chain.issue;
  const auto by_term = waiting.latencies.ByTerm();
  for (size_t i = 0; i < kLatencyTerms; ++i) {
    const double cycles = waiting.chain.steps[i] * by_term[i];
    waited += cycles;
    shares.emplace_back(cycles, kWaits[i]);
  }
  shares.emplace_back(waiting.chain.issue, "issuing instructions");
  shares.emplace_back(waiting.cycles - waited, "starting blocks");
  std::stable_sort(shares.begin(), shares.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string text = "bound by latency";
  for (size_t i = 0; i < kMostShares && shares[i].first >= kLeastShare * waiting.cycles; ++i)
    text += Print("%s%.0f%% %s", i == 0 ? ": " : ", ", 100 * shares[i].first / waiting.cycles, shares[i].second);
  return text + Print(" (about %.0f cycles a warp)", waiting.cycles / waiting.rounds);
}

}  // namespace

std::string TimeSentence(const Counts& counts, const Device& device, const TimeEstimate& estimate,
                         const Traffic& traffic, const Waiting& waiting) {
  const std::string& bound = estimate.bound;
  const double requests = std::max(1.0, traffic.load_sectors + traffic.store_sectors);
  const double used = std::min(1.0, (traffic.useful_load + traffic.useful_store) / requests);
  std::string text;
  if (bound == "dram") {
    text = "bound by DRAM traffic: " + BytesText(estimate.dram_bytes);
  } else if (bound == "l2") {
    text = "bound by L2 traffic: " + BytesText(estimate.l2_bytes);
  } else if (bound == "l1") {
    text = Print("bound by the L1 cache: %.1f lines for each load or store instruction",
                 counts.l1_wavefronts / std::max(1.0, [&] {
                   double n = 0;
                   for (const ArrayTraffic& array : counts.arrays) n += array.load_requests + array.store_requests;
                   return n;
                 }()));
  } else if (bound == "shared" && counts.exchange_wavefronts > counts.shared_wavefronts) {
    text = "bound by shuffles, which pass through the data path of shared memory";
  } else if (bound == "shared" && counts.shared_wavefronts < 1.05 * counts.shared_ideal_wavefronts) {
    text = "bound by the number of shared memory accesses, which have no bank conflicts: fewer or wider ones help";
  } else if (bound == "shared") {
    text = Print("bound by shared memory: %.1f cycles an access where %.1f would do",
                 counts.shared_wavefronts / std::max(1.0, counts.shared_requests),
                 counts.shared_ideal_wavefronts / std::max(1.0, counts.shared_requests));
  } else if (bound == "atomics") {
    const auto [all, busiest] = CyclesOfAtomics(counts, device);
    text = all > busiest ? "bound by the number of atomic operations"
                         : "bound by atomic operations on the same addresses or their neighbours";
  } else if (bound == "shared atomics") {
    text = "bound by atomic operations on shared memory";
  } else if (bound == "blocks") {
    text = Print("bound by the number of blocks: %.0f with little work each", static_cast<double>(counts.grid_blocks));
  } else if (bound == "latency") {
    text = LatencyText(waiting);
    const double blocks = static_cast<double>(counts.grid_blocks);
    if (blocks < device.multiprocessors)
      text += Print("; only %.0f of %d multiprocessors have a block", blocks, device.multiprocessors);
  } else if (bound == "launch") {
    text = "bound by the cost of launching a kernel";
  } else if (bound == "memory") {
    text = "bound by the number of load and store instructions";
  } else if (bound == "issue") {
    text = "bound by the number of instructions";
  } else if (bound == "tensor") {
    text = "bound by tensor core throughput";
  } else if (bound == "waiting") {
    text =
        "bound by threads that wait for one another: flags, locks or compare-and-swaps at one address, one after "
        "the other";
  } else if (bound == "constant") {
    text = "bound by constant memory, which serves lanes that read different words one by one";
  } else if (bound == "serial") {
    text = "bound by fences, sleeps or branches that split warps";
  } else {
    text = "bound by " + bound + " arithmetic";
  }
  if (used < 0.9 && traffic.load_sectors + traffic.store_sectors > 0) {
    text += Print("; only %.0f%% of the bytes of the sectors it touches are used", 100 * used);
    for (size_t i = 0; i < std::min<size_t>(3, traffic.wasteful.size()); ++i) {
      const Traffic::Wasteful& one = traffic.wasteful[i];
      text += Print(i == 0 ? " (%s of %s: %.3g us of the L2" : ", %s of %s: %.3g us", one.load ? "loads" : "stores",
                    one.array->name.c_str(), 1e6 * one.seconds);
    }
    if (!traffic.wasteful.empty()) text += ")";
  }
  if (counts.shared_ideal_wavefronts > 0 && counts.shared_wavefronts > 1.5 * counts.shared_ideal_wavefronts &&
      bound != "shared") {
    text += Print("; bank conflicts make shared memory accesses %.1f times as long",
                  counts.shared_wavefronts / counts.shared_ideal_wavefronts);
  }
  if (counts.thread_instructions < 0.7 * 32 * counts.issued) {
    text += Print("; only %.0f%% of the lanes are active", 100 * counts.thread_instructions / (32 * counts.issued));
  }
  text += Print("; occupancy limit %.0f%%", 100 * estimate.occupancy.fraction);
  if (estimate.occupancy.fraction < 0.99) text += " (by " + estimate.occupancy.limit + ")";
  const double blocks = static_cast<double>(counts.grid_blocks), multiprocessors = device.multiprocessors,
               filled = blocks / (estimate.occupancy.blocks_per_multiprocessor * multiprocessors);
  const bool said = bound == "latency" && blocks < multiprocessors;
  if (filled < kSmallGrid && !said)
    text += Print(", but the grid's %.0f blocks fill %.0f%% of that", blocks, 100 * filled);
  if (bound != "launch" && estimate.launch_seconds > kLargeShare * estimate.seconds)
    text += Print("; the launch costs %.0f%% of the time", 100 * estimate.launch_seconds / estimate.seconds);
  return text;
}

}  // namespace kgrpo::simt
