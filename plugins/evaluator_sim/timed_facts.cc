#include "evaluator_sim/timed_facts.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "simt/time/time_by_line.h"

namespace kgrpo::evaluator_sim {

using evaluator::KernelEvaluation;

namespace {

constexpr size_t kMostLines = 16;         // source lines reported
constexpr double kLeastLineShare = 0.01;  // of the time; a line below it is not reported

template <typename Key>
std::vector<std::pair<Key, double>> LargestFirst(const std::map<Key, double>& values) {
  std::vector<std::pair<Key, double>> sorted(values.begin(), values.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  return sorted;
}

class Facts {
 public:
  explicit Facts(KernelEvaluation* evaluation) : evaluation_(evaluation) {}
  void Add(const std::string& name, double value) { evaluation_->metrics.emplace_back(name, value); }
  // Adds nothing if `whole` is 0.
  void AddPart(const std::string& name, double part, double whole) {
    if (whole > 0) Add(name, part / whole);
  }

 private:
  KernelEvaluation* evaluation_;
};

// The relative standard error of the counted blocks' mean work.
double SampleSpread(const simt::Counts& counts) {
  double sum = 0, squares = 0;
  const auto blocks = static_cast<double>(counts.block_issued.size());
  for (const double issued : counts.block_issued) sum += issued;
  for (const double issued : counts.block_issued) squares += std::pow(issued - sum / blocks, 2);
  return sum > 0 ? std::sqrt(squares) / sum : 0;
}

// Adds the launch's size, occupancy and waves.
void AddLaunch(const simt::Counts& counts, const simt::Occupancy& occupancy, const simt::Device& device, Facts& facts) {
  facts.Add("grid_blocks", static_cast<double>(counts.grid_blocks));
  facts.Add("block_threads", counts.threads_per_block);
  facts.Add("occupancy", occupancy.fraction);
  facts.Add("resident_blocks", occupancy.blocks_per_multiprocessor);
  facts.Add("resident_blocks_by/registers", occupancy.by_registers);
  if (occupancy.by_shared_memory >= 0) facts.Add("resident_blocks_by/shared_memory", occupancy.by_shared_memory);
  facts.Add("resident_blocks_by/threads", occupancy.by_threads);
  facts.Add("resident_blocks_by/blocks", occupancy.by_blocks);
  facts.AddPart("waves", static_cast<double>(counts.grid_blocks),
                static_cast<double>(occupancy.blocks_per_multiprocessor) * device.multiprocessors);
}

// The device's peaks and ceilings.
void AddCeilings(const simt::Device& device, Facts& facts) {
  const double cycles = device.multiprocessors * device.clock_hz;
  facts.Add("bandwidth_peak", device.dram_bytes_per_second);
  facts.Add("bandwidth_ceiling", device.dram_bytes_per_second * device.dram_efficiency);
  facts.Add("l2_bandwidth_ceiling", device.l2_sectors_per_cycle * 32 * device.clock_hz);
  // A multiply-add is two operations, over 32 lanes; a half instruction does two multiply-adds a lane.
  facts.Add("arithmetic_peak/fp32", device.fp32_rate * 64 * cycles);
  facts.Add("arithmetic_peak/half", device.half_rate * 128 * cycles);
  facts.Add("arithmetic_peak/fp64", device.fp64_rate * 64 * cycles);
  facts.Add("arithmetic_peak/tensor", device.tensor_flops_per_cycle * cycles);
  facts.Add("issue_peak", device.issue_rate * cycles);
}

// Adds how efficiently a launch uses the sectors and shared-memory cycles of its accesses.
void AddAccesses(const simt::Counts& counts, Facts& facts) {
  simt::ArrayTraffic all;
  for (const simt::ArrayTraffic& array : counts.arrays) {
    all.load_requests += array.load_requests;
    all.load_sectors += array.load_sectors;
    all.load_ideal_sectors += array.load_ideal_sectors;
    all.store_requests += array.store_requests;
    all.store_sectors += array.store_sectors;
    all.store_ideal_sectors += array.store_ideal_sectors;
  }
  facts.AddPart("load_sectors", all.load_sectors, all.load_requests);
  // If lanes load the same bytes, the ideal sectors can exceed the loaded ones.
  facts.AddPart("load_sectors_used", std::min(all.load_ideal_sectors, all.load_sectors), all.load_sectors);
  facts.AddPart("store_sectors", all.store_sectors, all.store_requests);
  facts.AddPart("store_sectors_used", all.store_ideal_sectors, all.store_sectors);
  const double shared_cycles = counts.shared_wavefronts + counts.shared_atomic_wavefronts;
  facts.AddPart("shared_cycles", shared_cycles, counts.shared_requests);
  facts.AddPart("shared_conflicts", counts.shared_wavefronts - counts.shared_ideal_wavefronts, shared_cycles);
  // Loads that ptxas merges are issued once, but thread_instructions counts the lanes of every load.
  facts.AddPart("active_lanes", std::min(counts.thread_instructions, 32 * counts.issued), 32 * counts.issued);
  facts.AddPart("divergent_branches", counts.divergent_branches, counts.branches);
}

// Adds the problem's declared work, the bytes of its tensors, and the counted operations.
void AddBound(const TimedFacts& timed, Facts& facts) {
  const evaluator::Problem& problem = timed.problem;
  double tensor_bytes = 0, operations = 0;
  for (const evaluator::Parameter& parameter : problem.parameters) {
    if (!parameter.IsTensor()) continue;
    const auto bytes = static_cast<double>(parameter.Elements(problem.timing)) *
                       static_cast<double>(evaluator::Info(parameter.dtype).size);
    tensor_bytes += parameter.role == evaluator::Role::kInout ? 2 * bytes : bytes;
  }
  for (const simt::Counts& counts : timed.record.counts) {
    if (counts.sampled_blocks == 0) continue;
    const auto pipe = [&](simt::Pipe of) { return counts.pipe[static_cast<size_t>(of)]; };
    // An upper bound, in the units of the peaks above: two operations a lane, four for halves, one for special
    // functions. Integer products share the fp32 pipe.
    const double counted = 64 * (pipe(simt::Pipe::kFp32) + pipe(simt::Pipe::kFp64)) + 128 * pipe(simt::Pipe::kHalf) +
                           32 * pipe(simt::Pipe::kSpecial) + counts.tensor_flops;
    operations += counted * static_cast<double>(counts.grid_blocks) / static_cast<double>(counts.sampled_blocks);
  }
  facts.Add("needed_bytes", problem.needed_bytes.Evaluate(problem.timing));
  facts.Add("tensor_bytes", tensor_bytes);
  facts.Add("needed_operations", problem.needed_flops.Evaluate(problem.timing));
  facts.Add("counted_operations", operations);
}

// Adds the time of the most expensive source lines, and how they access memory.
void AddLines(const TimedFacts& timed, Facts& facts) {
  std::map<std::pair<int, std::string>, double> times;  // by source line and the term that bounds it
  std::map<int, simt::Demand> demands;
  for (size_t i = 0; i < timed.record.estimates.size(); ++i) {
    const simt::Counts& counts = timed.record.counts[i];
    for (const simt::LineTime& line : simt::TimeByLine(counts, timed.record.estimates[i], timed.device))
      if (line.line > 0 && line.file.ends_with(timed.own_file)) times[{line.line, line.bound}] += line.seconds;
    if (counts.sampled_blocks == 0) continue;
    const double scale = static_cast<double>(counts.grid_blocks) / static_cast<double>(counts.sampled_blocks);
    for (const simt::LineDemand& line : counts.lines) {
      if (!line.file.ends_with(timed.own_file)) continue;
      simt::Demand& demand = demands[line.line];
      for (double simt::Demand::*figure :
           {&simt::Demand::requests, &simt::Demand::sectors, &simt::Demand::ideal_sectors,
            &simt::Demand::shared_requests, &simt::Demand::shared_wavefronts, &simt::Demand::shared_ideal_wavefronts,
            &simt::Demand::shared_atomic_wavefronts}) {
        demand.*figure += scale * line.*figure;
      }
    }
  }
  std::set<int> named;
  for (const auto& [place, seconds] : LargestFirst(times)) {
    if (seconds < kLeastLineShare * timed.seconds) break;
    if (named.size() == kMostLines && !named.contains(place.first)) continue;
    named.insert(place.first);
    facts.Add("line/" + std::to_string(place.first) + " " + place.second, seconds / timed.seconds);
  }
  for (const int line : named) {
    const simt::Demand& demand = demands[line];
    const std::string number = std::to_string(line);
    facts.AddPart("line_sectors/" + number, demand.sectors, demand.requests);
    facts.AddPart("line_sectors_used/" + number, std::min(demand.ideal_sectors, demand.sectors), demand.sectors);
    const double shared_cycles = demand.shared_wavefronts + demand.shared_atomic_wavefronts;
    facts.AddPart("line_shared_cycles/" + number, shared_cycles, demand.shared_requests);
    facts.AddPart("line_shared_conflicts/" + number, demand.shared_wavefronts - demand.shared_ideal_wavefronts,
                  shared_cycles);
  }
}

}  // namespace

void AddTimeFacts(const TimedFacts& timed, KernelEvaluation* evaluation) {
  Facts facts(evaluation);
  const interpreter::CallRecord& record = timed.record;
  double dram_bytes = 0, l2_bytes = 0, issued = 0;
  std::map<std::string, double> terms;
  for (size_t i = 0; i < record.estimates.size(); ++i) {
    dram_bytes += record.estimates[i].dram_bytes;
    l2_bytes += record.estimates[i].l2_bytes;
    const simt::Counts& counts = record.counts[i];
    if (counts.sampled_blocks > 0)
      issued += counts.issued * static_cast<double>(counts.grid_blocks) / static_cast<double>(counts.sampled_blocks);
    for (const simt::TimeTerm& term : record.estimates[i].terms) terms[term.name] += term.seconds;
  }
  if (record.copy_seconds > 0) terms["copies"] = record.copy_seconds;
  if (record.host_seconds > 0) terms["host"] = record.host_seconds;
  const simt::KernelResources& resources = record.resources[timed.longest];
  facts.Add("modelled_seconds", timed.seconds);
  facts.Add("launches", static_cast<double>(record.launches));
  facts.Add("shared_bytes",
            static_cast<double>(resources.static_shared_bytes) + static_cast<double>(resources.dynamic_shared_bytes));
  AddLaunch(record.counts[timed.longest], record.estimates[timed.longest].occupancy, timed.device, facts);
  facts.Add("dram_bytes", dram_bytes);
  facts.Add("l2_bytes", l2_bytes);
  facts.Add("issued_instructions", issued);
  facts.Add("sample_spread", SampleSpread(record.counts[timed.longest]));
  const double bytes = timed.problem.needed_bytes.Evaluate(timed.problem.timing),
               operations = timed.problem.needed_flops.Evaluate(timed.problem.timing);
  AddBound(timed, facts);
  facts.Add("bytes_per_second", bytes / timed.seconds);
  facts.Add("bandwidth_fraction", bytes / timed.seconds / timed.device.dram_bytes_per_second);
  facts.Add("operations_per_second", operations / timed.seconds);
  AddCeilings(timed.device, facts);
  for (const auto& [name, value] : LargestFirst(terms)) facts.Add("seconds/" + name, value);
  AddLines(timed, facts);
  AddAccesses(record.counts[timed.longest], facts);
}

}  // namespace kgrpo::evaluator_sim
