// DeviceSession's launches: refused where CUDA would refuse them, else interpreted and recorded.
#include <time.h>

#include <algorithm>
#include <cstring>
#include <sstream>
#include <vector>

#include "cuda_source/own_headers.h"
#include "interpreter/client/cuda_types.h"
#include "interpreter/device_session.h"
#include "judge/compile/candidate_form.h"   // OwnFileName
#include "judge/compile/compiled_kernel.h"  // KernelName

namespace kgrpo::interpreter {
namespace {

std::string DimText(const simt::Dim3& dim) {
  return "(" + std::to_string(dim.x) + ", " + std::to_string(dim.y) + ", " + std::to_string(dim.z) + ")";
}

// Returns ": \"out[i] = x[i];\"", the source line of a finding. Empty if the line is unknown or in no file of the
// source.
std::string QuotedLine(const std::string& source, const simt::Finding& finding) {
  constexpr size_t kLongest = 100;
  const std::vector<cuda_source::SourcePlace> places =
      cuda_source::PlacesOfLines(source, evaluator::OwnFileName(source));
  const auto place = std::find_if(places.begin(), places.end(), [&](const cuda_source::SourcePlace& one) {
    return one.line == finding.line && finding.file.ends_with(one.file);
  });
  if (finding.line <= 0 || place == places.end()) return "";
  std::istringstream lines(source);
  std::string line;
  for (auto at = places.begin(); at <= place; ++at) std::getline(lines, line);
  const size_t first = line.find_first_not_of(" \t\r"), last = line.find_last_not_of(" \t\r");
  if (first == std::string::npos) return "";
  line = line.substr(first, last - first + 1);
  if (line.size() > kLongest) line = line.substr(0, kLongest) + "...";
  std::replace_if(
      line.begin(), line.end(), [](char c) { return c < 0x20 || c >= 0x7f; }, '?');
  return ": \"" + line + "\"";
}

std::string Sentence(const std::string& source, const simt::Finding& finding) {
  if (finding.code != simt::FindingCode::kOutOfBounds) return finding.message;
  const bool past = finding.message.find(" past the end of ") != std::string::npos;
  return finding.message + QuotedLine(source, finding) +
         (past ? "; guard the access: a size need not be a multiple of the block or the vector" : "");
}

}  // namespace

double ThreadSeconds() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

simt::KernelResources DeviceSession::ResourcesOf(int kernel, uint32_t dynamic_shared_bytes) const {
  const simt::KernelInfo& info = module_->kernels()[static_cast<size_t>(kernel)];
  simt::KernelResources resources;
  resources.static_shared_bytes = info.static_shared_bytes;
  resources.dynamic_shared_bytes = dynamic_shared_bytes;
  resources.registers_per_thread = static_cast<int>(info.registers_estimate);
  if (const auto found = usage_.find(info.name); found != usage_.end()) {
    resources.registers_per_thread = found->second.registers;
    resources.spill_bytes = static_cast<uint32_t>(found->second.spill_bytes);
  }
  return resources;
}

// Estimates the launch's time. If the further blocks take longer, the counted ones are not representative: then the
// further ones count.
simt::TimeEstimate DeviceSession::TimeOf(simt::LaunchResult& result, const simt::KernelResources& resources) {
  constexpr double kLonger = 1.25;  // above the difference that a sample of few blocks makes
  simt::L2Contents before = l2_;
  simt::TimeEstimate estimate = simt::EstimateTime(result.counts, resources, device_, &l2_);
  if (result.further.sampled_blocks == 0) return estimate;
  // Contention at one address depends on the number of sampled blocks, so keep the first sample's figures.
  result.further.busiest_atomic_turns = result.counts.busiest_atomic_turns;
  result.further.fewer_atomic_turns = result.counts.fewer_atomic_turns;
  result.further.busiest_blocks = result.counts.busiest_blocks;
  simt::L2Contents contents = before;
  const double others = simt::EstimateTime(result.further, resources, device_, &contents, false).seconds;
  if (others <= kLonger * estimate.seconds) return estimate;
  result.counts = std::move(result.further);
  l2_ = before;
  return simt::EstimateTime(result.counts, resources, device_, &l2_);
}

Reply DeviceSession::Launch(const std::vector<uint8_t>& payload) {
  LaunchRequest launch = {};
  if (payload.size() < sizeof launch) {
    Stop("forbidden", "The host code sent a malformed launch.");
    return {kCudaInvalidValue, 0, 0, 0};
  }
  std::memcpy(&launch, payload.data(), sizeof launch);
  if (launch.kernel >= module_->kernels().size()) return {kCudaInvalidDeviceFunction, 0, 0, 0};
  const int kernel = static_cast<int>(launch.kernel);
  const simt::KernelInfo& info = module_->kernels()[launch.kernel];

  simt::LaunchConfig config;
  config.grid = {launch.grid[0], launch.grid[1], launch.grid[2]};
  config.block = {launch.block[0], launch.block[1], launch.block[2]};
  config.parameters.assign(payload.begin() + sizeof launch, payload.end());
  config.mode = mode_;
  config.instruction_budget = instructions_left_;
  config.sampled_blocks = block_choice_.blocks;
  config.sample_seed = block_choice_.seed;
  config.further_blocks = block_choice_.further_blocks;
  config.further_seed = block_choice_.further_seed;
  config.whole = block_choice_.whole;
  config.find_stored = record_->launches == 0;
  if (block_choice_.known_work != nullptr && record_->launches < block_choice_.known_work->size()) {
    const std::vector<uint64_t>& work = (*block_choice_.known_work)[record_->launches];
    if (work.size() == config.grid.Count()) config.known_work = work;
  }
  config.last_block_first = block_choice_.last_block_first;
  config.unwritten_shared = block_choice_.unwritten_shared;
  config.other_choices = block_choice_.other_choices;
  if (block_choice_.racing_reads != nullptr && record_->launches < block_choice_.racing_reads->size())
    config.racing_reads = &(*block_choice_.racing_reads)[record_->launches];
  config.choose_checked = block_choice_.choose_checked;
  config.checked_instructions = block_choice_.checked_instructions;
  config.only_checked = block_choice_.only_checked;
  if (block_choice_.checked_blocks != nullptr && record_->launches < block_choice_.checked_blocks->size())
    config.checked_blocks = (*block_choice_.checked_blocks)[record_->launches];
  // The correctness cases have decided about reads of unwritten bytes that may be unused.
  if (mode_ != simt::Mode::kChecked && !config.unwritten_shared) config.unwritten_shared = 0xFF;
  config.cooperative = launch.cooperative != 0;
  in_flight_.Begin(launch.overlaps != 0, &config);

  const std::string name = evaluator::KernelName(info.name);
  const std::string what = "Kernel " + name + " cannot be launched with grid " + DimText(config.grid) + " and block " +
                           DimText(config.block) + ": ";
  const auto refuse = [&](int error, const std::string& why) {
    Stop("invalid_launch", what + why);
    return Reply{error, 0, 0, 0};
  };
  const uint64_t threads = config.block.Count(), blocks = config.grid.Count();
  if (threads == 0 || blocks == 0) return refuse(kCudaInvalidConfiguration, "a dimension is 0.");
  if (threads > 1024 || config.block.x > 1024 || config.block.y > 1024 || config.block.z > 64) {
    return refuse(kCudaInvalidConfiguration, "a block has at most 1024 threads (z at most 64).");
  }
  if (info.max_threads != 0 && threads > info.max_threads) {
    return refuse(kCudaInvalidValue,
                  "its __launch_bounds__ allow " + std::to_string(info.max_threads) + " threads a block.");
  }
  if (config.grid.x > 2147483647u || config.grid.y > 65535 || config.grid.z > 65535) {
    return refuse(kCudaInvalidConfiguration, "a grid's y and z are at most 65535.");
  }
  if (const uint32_t most = shared_limits_[launch.kernel]; launch.dynamic_shared_bytes > most) {
    const bool raised = most + info.static_shared_bytes >= static_cast<uint32_t>(device_.shared_bytes_per_block);
    return refuse(kCudaInvalidValue,
                  std::to_string(launch.dynamic_shared_bytes) + " bytes of dynamic shared memory are more than the " +
                      std::to_string(most) + " it may use" +
                      (raised ? "." : " (cudaFuncSetAttribute raises that to 227 KiB less its static use)."));
  }
  config.dynamic_shared_bytes = static_cast<uint32_t>(launch.dynamic_shared_bytes);
  const simt::KernelResources resources = ResourcesOf(kernel, config.dynamic_shared_bytes);
  const simt::Occupancy occupancy = simt::ComputeOccupancy(device_, resources, static_cast<uint32_t>(threads));
  if (occupancy.blocks_per_multiprocessor == 0) {
    return refuse(kCudaLaunchOutOfResources,
                  "one block needs more " + occupancy.limit + " than a multiprocessor has (" +
                      std::to_string(resources.registers_per_thread) + " registers a thread).");
  }

  config.multiprocessors = static_cast<uint32_t>(device_.multiprocessors);
  config.resident_blocks = static_cast<uint32_t>(occupancy.blocks_per_multiprocessor * device_.multiprocessors);
  config.latencies = simt::LatenciesOf(device_, occupancy, static_cast<uint32_t>((threads + 31) / 32), blocks);
  config.l1_share = simt::L1Share(device_, resources, static_cast<uint32_t>(threads), blocks);
  const double start = ThreadSeconds();
  const auto spent = [&] { return processor_seconds_ + ThreadSeconds() - start; };
  bool too_long = false;
  config.look = [&] {
    ThrowIfCancelled();
    too_long = spent() > limits_.processor_seconds;
    return !too_long;
  };
  simt::LaunchResult result = simt::Launch(instance_, kernel, config);
  record_->interpreting_seconds += ThreadSeconds() - start;
  in_flight_.End(&result);
  ++record_->launches;
  record_->racing_reads.push_back(std::move(result.racing_reads));
  if (result.choice && record_->choice.empty()) record_->choice = Sentence(source_, *result.choice);
  coverage_[launch.kernel].Add(result.coverage);
  record_->firsts.emplace_back(launch.kernel, std::move(result.coverage.firsts));
  record_->independent = record_->independent && result.independent;
  record_->warp_instructions += result.warp_instructions;
  instructions_left_ -= std::min(instructions_left_, result.warp_instructions);
  record_->data_decides = record_->data_decides || result.data_decides;
  record_->reads_clock = record_->reads_clock || result.reads_clock;
  if (mode_ == simt::Mode::kCounted) {
    record_->must_run_whole = record_->must_run_whole || result.must_run_whole;
    record_->sample_stands = record_->sample_stands && result.sample_stands;
    record_->further_failed = record_->further_failed || result.further_failed;
    record_->stored = std::move(result.stored);
    record_->blocks_run += result.blocks_run;
    record_->blocks += blocks;
    record_->work.push_back(std::move(result.work));
    record_->estimates.push_back(TimeOf(result, resources));
    clock_.Submit(record_->estimates.back().seconds);
    record_->resources.push_back(resources);
    record_->counts.push_back(std::move(result.counts));
  }
  for (const std::string& note : result.notes) {
    if (std::find(record_->notes.begin(), record_->notes.end(), note) == record_->notes.end())
      record_->notes.push_back(note);
  }
  const simt::Finding* chosen = nullptr;
  for (const simt::Finding& finding : result.findings) {
    if (chosen == nullptr || (finding.fatal && !chosen->fatal)) chosen = &finding;
  }
  if (chosen != nullptr) {
    std::string code = simt::FindingName(chosen->code);
    if (chosen->code == simt::FindingCode::kDivergentBarrier || chosen->code == simt::FindingCode::kInvalidShuffle)
      code = "divergent";
    if (chosen->code == simt::FindingCode::kTrap) code = "trap";
    record_->may_be_unused = chosen->may_be_unused;
    if (chosen->code == simt::FindingCode::kOutOfBounds && pins_host_memory_ && simt::MayBeOfHost(chosen->address)) {
      Stop("unsupported", "The simulated device cannot run it: kernel '" + chosen->kernel + "', line " +
                              std::to_string(chosen->line) +
                              " accesses host memory, perhaps memory of cudaMallocHost or cudaHostAlloc.");
      return {kCudaLaunchFailure, 0, 0, 0};
    }
    Stop(code, Sentence(source_, *chosen));
    return {kCudaLaunchFailure, 0, 0, 0};
  }
  if (result.status == simt::LaunchStatus::kBudgetExceeded) {
    record_->out_of_budget = !too_long;
    const std::string limit = too_long ? std::to_string(static_cast<int>(limits_.processor_seconds)) +
                                             " seconds of processor time, which " +
                                             "interpreting it in all its calls may take"
                                       : std::to_string(instructions_of_call_ / 1000000) + " million warp instructions";
    Stop("timeout", "Kernel " + name + " did not end within " + limit +
                        (result.unfinished.empty() ? "." : ": " + result.unfinished + "."));
    return {kCudaLaunchFailure, 0, 0, 0};
  }
  return {kCudaSuccess, 0, 0, 0};
}

}  // namespace kgrpo::interpreter
