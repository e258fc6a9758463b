#include "eval/kernelbench_rules.h"

#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>

#include "store/files.h"  // ReadFile

namespace kgrpo::cli {
namespace {

constexpr double kMillisecond = 1e-3;

// Verdicts of our evaluators that a comparison of outputs cannot find. Evaluations with them have no time. not_timed is
// left out: without correctness sizes, the correctness of such a kernel is unknown.
constexpr std::array<std::string_view, 10> kNotLookedFor = {
    "race",        "uninitialised",  "divergent",   "input_modified", "non_deterministic",
    "implausible", "unsynchronised", "hidden_work", "unfinished",     "interference"};

}  // namespace

bool CountsAsCorrect(const std::string& verdict) {
  return verdict == "correct" || std::find(kNotLookedFor.begin(), kNotLookedFor.end(), verdict) != kNotLookedFor.end();
}

PytorchTimes::PytorchTimes(const std::string& file) {
  if (!std::filesystem::is_regular_file(file))
    throw Error(KGRPO_ERROR_NOT_FOUND, "--pytorch-times " + file + ": there is no such file");
  nlohmann::json json = nlohmann::json::parse(ReadFile(file), nullptr, false);
  if (!json.is_object()) json = nlohmann::json::object();
  for (const auto& [level, problems] : json.items()) {
    int level_number = 0;
    if (std::sscanf(level.c_str(), "level%d", &level_number) != 1 || !problems.is_object()) continue;
    for (const auto& [name, row] : problems.items()) {
      const int number = std::atoi(name.c_str());
      if (number < 1 || !row.is_object() || !row.contains("mean") || !row["mean"].is_number()) continue;
      const double mean = row["mean"].get<double>();
      if (mean > 0) seconds_[{level_number, number}] = mean * kMillisecond;
      if (row.contains("hardware") && row["hardware"].is_string()) hardware_ = row["hardware"].get<std::string>();
    }
  }
  if (seconds_.empty()) {
    throw Error(KGRPO_ERROR_INVALID,
                "--pytorch-times " + file +
                    R"(: holds no times; expected {"level1": {"19_ReLU.py": {"mean": MS}}}, as in )"
                    "KernelBench's results/timing");
  }
}

std::optional<double> PytorchTimes::SecondsOf(const std::string& problem) const {
  int level = 0, number = 0;
  if (std::sscanf(problem.c_str(), "kb_l%d_%d_", &level, &number) != 2) return std::nullopt;
  const auto found = seconds_.find({level, number});
  return found == seconds_.end() ? std::nullopt : std::optional<double>(found->second);
}

}  // namespace kgrpo::cli
