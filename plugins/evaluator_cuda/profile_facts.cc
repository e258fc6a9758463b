#include "evaluator_cuda/profile_facts.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <sstream>
#include <string_view>

namespace kgrpo::evaluator_cuda {
namespace {

constexpr const char* kDuration = "gpu__time_duration.sum";  // nanoseconds
constexpr const char *kRead = "dram__bytes_read.sum", *kWritten = "dram__bytes_write.sum";

// One of ncu's metrics as one of ours.
struct Count {
  const char* ncu;
  const char* name;
  double scale;  // ours is ncu's times this
};
constexpr auto kCounts = std::to_array<Count>({
    {"sm__warps_active.avg.pct_of_peak_sustained_active", "profile.occupancy", 0.01},
    {"dram__throughput.avg.pct_of_peak_sustained_elapsed", "profile.dram_fraction", 0.01},
    {"lts__t_sector_hit_rate.pct", "profile.l2_hits", 0.01},
    {"l1tex__t_sector_hit_rate.pct", "profile.l1_hits", 0.01},
    {"sm__throughput.avg.pct_of_peak_sustained_elapsed", "profile.multiprocessor_fraction", 0.01},
    {"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active", "profile.tensor_fraction", 0.01},
    {"smsp__issue_active.avg.pct_of_peak_sustained_active", "profile.issue_fraction", 0.01},
    {"l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio", "profile.load_sectors", 1},
    {"l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_st.ratio", "profile.store_sectors", 1},
    {"l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum", "profile.bank_conflicts", 1},
});

// The reasons why a warp does not issue, by ncu's name and in words. "selected" is the warp that does issue.
struct Stall {
  const char* name;
  const char* words;
};
constexpr auto kStalls = std::to_array<Stall>({
    {"long_scoreboard", "data from global or local memory"},
    {"short_scoreboard", "data from shared memory or the special function units"},
    {"barrier", "other warps at a barrier"},
    {"membar", "a memory barrier"},
    {"mio_throttle", "room in the queue of shared memory and special instructions"},
    {"lg_throttle", "room in the queue of global and local memory instructions"},
    {"tex_throttle", "room in the texture queue"},
    {"math_pipe_throttle", "an arithmetic pipe"},
    {"wait", "instructions of fixed latency"},
    {"not_selected", "their turn, other warps being ready too"},
    {"no_instruction", "instructions to be fetched"},
    {"imc_miss", "constants"},
    {"branch_resolving", "branches"},
    {"dispatch_stall", "the dispatcher"},
    {"drain", "stores to drain at their end"},
    {"sleeping", "their own sleep"},
    {"gmma", "asynchronous matrix products"},
    {"misc", "miscellaneous reasons"},
});
constexpr const char* kSelected = "selected";

std::string StallMetric(const std::string& reason) {
  return "smsp__average_warps_issue_stalled_" + reason + "_per_issue_active.ratio";
}

std::optional<double> FindValue(const ProfiledKernel& kernel, const std::string& name) {
  const auto found = kernel.counts.find(name);
  return found == kernel.counts.end() ? std::nullopt : std::optional<double>(found->second);
}

double Seconds(const ProfiledKernel& kernel) { return FindValue(kernel, kDuration).value_or(0) * 1e-9; }

// Returns the reasons with their shares of the time that warps are resident, largest first.
std::vector<std::pair<Stall, double>> StallShares(const ProfiledKernel& kernel) {
  std::vector<std::pair<Stall, double>> shares;
  double all = FindValue(kernel, StallMetric(kSelected)).value_or(0);
  for (const Stall& stall : kStalls) {
    const double warps = FindValue(kernel, StallMetric(stall.name)).value_or(0);
    all += warps;
    if (warps > 0) shares.emplace_back(stall, warps);
  }
  for (auto& [stall, share] : shares) share /= all;
  std::stable_sort(shares.begin(), shares.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  return shares;
}

std::string Microseconds(double seconds) {
  std::ostringstream text;
  text.precision(3);
  text << seconds * 1e6 << " us";
  return text.str();
}

std::string Percent(double fraction) {
  std::ostringstream text;
  text << std::fixed;
  text.precision(100 * fraction < 10 ? 1 : 0);
  text << 100 * fraction << "%";
  return text.str();
}

// "rows 12 us, fold 2 us and 3 more", the longest first.
std::string DurationsOf(std::vector<ProfiledKernel> kernels) {
  constexpr size_t kNamed = 4;
  std::stable_sort(kernels.begin(), kernels.end(),
                   [](const ProfiledKernel& a, const ProfiledKernel& b) { return Seconds(a) > Seconds(b); });
  std::string text;
  for (size_t i = 0; i < std::min(kernels.size(), kNamed); ++i)
    text += (i == 0 ? "" : ", ") + kernels[i].name + " " + Microseconds(Seconds(kernels[i]));
  if (kernels.size() > kNamed) text += " and " + std::to_string(kernels.size() - kNamed) + " more";
  return text;
}

// Sentences on the kernels' durations, and on the one that takes longest.
std::string TextOf(const std::vector<ProfiledKernel>& kernels, const ProfiledKernel& longest, double all_seconds) {
  std::ostringstream text;
  text.precision(3);
  text << "Profiled by Nsight Compute, with cold caches: ";
  if (kernels.size() > 1) {
    text << kernels.size() << " kernels take " << Microseconds(all_seconds) << ": " << DurationsOf(kernels)
         << ". The longest:";
  } else {
    text << longest.name << " takes " << Microseconds(Seconds(longest)) << ".";
  }
  std::string list;
  const auto say = [&](const char* before, const char* metric, const char* after) {
    const auto* count = std::find_if(kCounts.begin(), kCounts.end(),
                                     [metric](const Count& one) { return std::string_view(one.name) == metric; });
    if (const auto value = FindValue(longest, count->ncu))
      list += (list.empty() ? " " : ", ") + std::string(before) + Percent(*value * count->scale) + after;
  };
  say("DRAM at ", "profile.dram_fraction", " of its peak");
  say("L2 hits ", "profile.l2_hits", "");
  say("multiprocessors at ", "profile.multiprocessor_fraction", " of theirs");
  say("tensor pipe busy ", "profile.tensor_fraction", "");
  say("issue slots used ", "profile.issue_fraction", "");
  say("achieved occupancy ", "profile.occupancy", "");
  if (!list.empty()) text << list << ".";
  const std::vector<std::pair<Stall, double>> stalls = StallShares(longest);
  for (size_t i = 0; i < std::min<size_t>(stalls.size(), 3); ++i) {
    text << (i == 0                                        ? " Its warps spend "
             : i + 1 == std::min<size_t>(stalls.size(), 3) ? " and "
                                                           : ", ")
         << Percent(stalls[i].second) << (i == 0 ? " of their time waiting for " : " for ") << stalls[i].first.words;
  }
  if (!stalls.empty()) text << ".";
  const auto requests = [&](const char* ncu, const char* words) {
    const std::optional<double> sectors = FindValue(longest, ncu);
    if (sectors && *sectors > 0) text << " A warp's global " << words << " touches " << *sectors << " sectors.";
  };
  requests("l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio", "load");
  requests("l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_st.ratio", "store");
  if (const auto conflicts = FindValue(longest, "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum"); conflicts > 0.0)
    text << " Shared memory: " << static_cast<uint64_t>(*conflicts) << " bank conflicts.";
  return text.str();
}

}  // namespace

std::vector<std::string> NcuMetrics(int compute_capability) {
  std::vector<std::string> metrics = {kDuration, kRead, kWritten};
  for (const Count& count : kCounts) metrics.emplace_back(count.ncu);
  metrics.push_back(StallMetric(kSelected));
  for (const Stall& stall : kStalls) {
    // wgmma is there on Hopper alone.
    if (std::string_view(stall.name) == "gmma" && compute_capability != 90) continue;
    metrics.push_back(StallMetric(stall.name));
  }
  return metrics;
}

ProfileFacts FactsOf(const std::vector<ProfiledKernel>& kernels) {
  const ProfiledKernel& longest =
      *std::max_element(kernels.begin(), kernels.end(),
                        [](const ProfiledKernel& a, const ProfiledKernel& b) { return Seconds(a) < Seconds(b); });
  double all_seconds = 0;
  for (const ProfiledKernel& kernel : kernels) all_seconds += Seconds(kernel);
  ProfileFacts facts;
  const auto add = [&facts](const std::string& name, double value) { facts.metrics.emplace_back(name, value); };
  add("profile.kernels", static_cast<double>(kernels.size()));
  add("profile.seconds", all_seconds);
  add("profile.longest_seconds", Seconds(longest));
  for (const Count& count : kCounts) {
    if (const auto value = FindValue(longest, count.ncu)) add(count.name, *value * count.scale);
  }
  if (const auto read = FindValue(longest, kRead), written = FindValue(longest, kWritten); read && written)
    add("profile.dram_bytes", *read + *written);
  const std::vector<std::pair<Stall, double>> stalls = StallShares(longest);
  for (size_t i = 0; i < std::min<size_t>(stalls.size(), 4); ++i)
    add(std::string("profile.stalls.") + stalls[i].first.name, stalls[i].second);
  facts.text = TextOf(kernels, longest, all_seconds);
  return facts;
}

}  // namespace kgrpo::evaluator_cuda
