#include "calibrate/counted_kernel.h"

#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "coder_offline/coder.h"
#include "common/figures.h"
#include "common/parallel.h"

namespace kgrpo::simt {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(LatencyPath, issue, steps)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(BlockLatency, hit, miss, fetched, instructions, ahead, weight)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(KernelResources, registers_per_thread, static_shared_bytes, dynamic_shared_bytes,
                                   spill_bytes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ArrayTraffic, name, address, bytes, low, high, load_requests, load_sectors,
                                   load_ideal_sectors, l1_miss_sectors, store_requests, store_sectors,
                                   store_ideal_sectors, store_partial_sectors, store_partial_lines, atomic_requests,
                                   atomic_sectors, unique_load_sectors, unique_store_sectors, unique_store_bytes,
                                   whole_store_sectors, unique_load_pairs, load_again, store_again, all_load_sectors,
                                   all_store_sectors)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Counts, kernel, grid_blocks, sampled_blocks, busiest_blocks, threads_per_block,
                                   warps_per_block, issued, thread_instructions, pipe, tensor_flops, arrays, l1_share,
                                   l1_wavefronts, local_sectors, local_lines, local_partial_lines,
                                   local_partial_sectors, local_bytes, constant_cycles, waited_cycles, shared_requests,
                                   shared_wavefronts, shared_ideal_wavefronts, merged_loads, shared_atomic_wavefronts,
                                   exchange_wavefronts, global_atomic_operations, busiest_atomic_turns, barriers,
                                   divergent_branches, branches, latency, block_issued)

}  // namespace kgrpo::simt

namespace kgrpo::bench {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(CountedKernel, problem, schedule, family, measured, copy_seconds, counts, resources)

double CountedKernel::Predict(const simt::Device& device) const {
  double seconds = copy_seconds;
  simt::L2Contents contents;
  for (size_t i = 0; i < counts.size(); ++i)
    seconds += simt::EstimateTime(counts[i], resources[i], device, &contents, false).seconds;
  return seconds;
}

bool IsCorrectVerdict(const std::string& verdict) {
  return verdict == "correct" || verdict == "right" || verdict == "ok";
}

std::vector<MeasuredKernel> ReadMeasured(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw Error(KGRPO_ERROR_NOT_FOUND, path + ": cannot be read");
  std::vector<MeasuredKernel> all;
  std::map<std::string, std::vector<double>> times;  // by problem,schedule
  std::set<std::string> not_correct;
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (line.empty() || line[0] == '#' || line.starts_with("problem,")) continue;
    std::vector<std::string> fields;
    std::stringstream text(line);
    for (std::string field; std::getline(text, field, ',');) fields.push_back(field);
    if (fields.size() >= 3 && !IsCorrectVerdict(fields[2])) {
      not_correct.insert(fields[0] + "," + fields[1]);
      continue;
    }
    try {
      const double microseconds = std::stod(fields.at(3));
      std::vector<double>& known = times[fields[0] + "," + fields[1]];
      if (known.empty()) all.push_back({fields[0], fields[1]});
      known.push_back(microseconds);
    } catch (const std::exception&) {
      throw Error(KGRPO_ERROR_INVALID,
                  path + ":" + std::to_string(number) + ": expected problem,schedule,verdict,microseconds");
    }
  }
  for (MeasuredKernel& kernel : all) kernel.microseconds = Median(times.at(kernel.problem + "," + kernel.schedule));
  std::erase_if(all, [&](const MeasuredKernel& k) { return not_correct.contains(k.problem + "," + k.schedule); });
  return all;
}

std::vector<MeasuredKernel> Sample(const std::vector<MeasuredKernel>& all, size_t count) {
  std::map<std::string, std::vector<MeasuredKernel>> by_problem;
  for (const MeasuredKernel& kernel : all) by_problem[kernel.problem].push_back(kernel);
  std::vector<MeasuredKernel> sample;
  for (const auto& [problem, kernels] : by_problem) {
    const size_t n = kernels.size(), taken = count == 0 ? n : std::min(n, count);
    for (size_t i = 0; i < taken; ++i) sample.push_back(kernels[i * n / taken]);
  }
  return sample;
}

KernelCounter::KernelCounter(const std::string& problems, const std::string& device, const std::string& cache_directory,
                             size_t threads)
    : problems_(problems), cache_directory_(cache_directory), threads_(threads), evaluator_([&] {
        evaluator_sim::KernelEvaluator::Options options;
        options.device = device;
        options.compile_cache = cache_directory + "/compiles.sqlite";
        options.concurrency = threads;
        return options;
      }()) {}

std::vector<CountedKernel> KernelCounter::Count(const std::vector<MeasuredKernel>& kernels) {
  std::map<std::string, std::unique_ptr<evaluator_sim::OpenProblem>> problems;
  for (const MeasuredKernel& kernel : kernels) {
    auto& open = problems[kernel.problem];
    if (open == nullptr)
      open = std::make_unique<evaluator_sim::OpenProblem>(problems_ + "/" + kernel.problem, cache_directory_);
  }
  std::vector<CountedKernel> counted(kernels.size());
  std::atomic<size_t> done = 0;
  InParallel(threads_, 0, kernels.size(), [&](uint64_t i) {
    const MeasuredKernel& kernel = kernels[i];
    const evaluator_sim::OpenProblem& open = *problems.at(kernel.problem);
    std::string source = open.problem.reference_source;
    const std::string mark = "// schedule: ";
    const size_t at = source.find(mark) + mark.size();
    source.replace(at, source.find('\n', at) - at, kernel.schedule);
    std::string why;
    source = coder_offline::Rewrite(source, &why);
    interpreter::CallRecord record;
    evaluator::Trouble trouble{"not written", why};
    if (!source.empty()) trouble = evaluator_.Count(open, source, &record);
    if (trouble) {
      std::fprintf(stderr, "%s, %s: %s: %s\n", kernel.problem.c_str(), kernel.schedule.c_str(), trouble.code.c_str(),
                   trouble.sentence.c_str());
      return;
    }
    CountedKernel& result = counted[i];
    result = {kernel.problem,
              kernel.schedule,
              open.problem.family,
              kernel.microseconds * 1e-6,
              record.copy_seconds + record.host_seconds,
              std::move(record.counts),
              std::move(record.resources)};
    if (const size_t n = ++done; n % 100 == 0) std::fprintf(stderr, "%zu of %zu counted\n", n, kernels.size());
  });
  std::erase_if(counted, [](const CountedKernel& kernel) { return kernel.counts.empty(); });
  return counted;
}

void Save(const std::string& path, const std::vector<CountedKernel>& kernels) {
  std::ofstream file(path);
  for (const CountedKernel& kernel : kernels) file << nlohmann::json(kernel).dump() << '\n';
  if (!file.flush()) throw Error(KGRPO_ERROR_INTERNAL, path + ": cannot be written");
}

std::vector<CountedKernel> Load(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw Error(KGRPO_ERROR_NOT_FOUND, path + ": cannot be read");
  std::vector<CountedKernel> kernels;
  for (std::string line; std::getline(file, line);) {
    try {
      kernels.push_back(nlohmann::json::parse(line).get<CountedKernel>());
    } catch (const nlohmann::json::exception& error) {
      throw Error(KGRPO_ERROR_INVALID,
                  path + ":" + std::to_string(kernels.size() + 1) +
                      ": counted by another version; delete the file to count again: " + error.what());
    }
  }
  return kernels;
}

}  // namespace kgrpo::bench
