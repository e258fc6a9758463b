#include "loop/screen.h"

#include "base/cancel.h"
#include "loop/round_faults.h"
#include "loop/statistics.h"

#include <kgrpo/sdk/error.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace kgrpo {
namespace {

// Advice for a screen that cannot be used.
constexpr const char* kInstead =
    "name another evaluator by --screen PLUGIN, or judge every kernel by the run's own evaluator with --screen none";

Problem OpenBy(Evaluator& evaluator, const std::string& name, const std::string& directory) {
  try {
    return evaluator.OpenProblem(directory);
  } catch (const Error& error) {
    if (error.code() == KGRPO_ERROR_CANCELLED) throw;
    throw Error(KGRPO_ERROR_INVALID,
                "the screen (" + name + ") cannot open the problem: " + error.what() + "; " + kInstead);
  }
}

}  // namespace

Screen::Screen(std::unique_ptr<Evaluator> evaluator, std::string name, const std::string& directory,
               const std::string& start, const Evaluation& measured, uint64_t seed)
    : evaluator_(std::move(evaluator)), name_(std::move(name)), problem_(OpenBy(*evaluator_, name_, directory)) {
  Evaluation screening;
  try {
    screening = EvaluateWithRetries(*evaluator_, problem_, start, seed, /*thorough=*/false, CancelRequested);
  } catch (const Error& error) {
    if (error.code() == KGRPO_ERROR_CANCELLED) throw;
    screening.verdict = KGRPO_VERDICT_UNSUPPORTED;
    screening.diagnosis = error.what();
  }
  if (!screening.correct) {
    throw Error(KGRPO_ERROR_INVALID, "the screen (" + name_ + ") cannot judge the kernel to begin with (" +
                                         screening.verdict + "): " + screening.diagnosis + "; " + kInstead);
  }
  start_seconds_ = screening.seconds;
  screened_.emplace(start, screening);
  measured_.emplace(start, measured);
  warned_ = false;
}

Evaluation Screen::Judge(const std::string& source, uint64_t seed) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = screened_.find(source); known != screened_.end()) return known->second;
  }
  Evaluation screening;
  try {
    screening = evaluator_->Evaluate(problem_, source, seed);
  } catch (const Error& error) {
    if (error.code() == KGRPO_ERROR_CANCELLED) throw;
    if (!warned_.exchange(true))
      spdlog::warn("the screen ({}) failed; kernels are evaluated without it: {}", name_, error.what());
    screening.compiled = true;
    screening.verdict = KGRPO_VERDICT_UNSUPPORTED;
    screening.diagnosis = error.what();
  }
  const std::lock_guard lock(mutex_);
  return screened_.emplace(source, std::move(screening)).first->second;
}

bool Screen::Decided(const Evaluation& screening) {
  return screening.verdict != KGRPO_VERDICT_TIMEOUT && screening.verdict != KGRPO_VERDICT_UNSUPPORTED &&
         screening.verdict != KGRPO_VERDICT_NOT_TIMED;
}

double Screen::Speedup(const Evaluation& screening) const {
  return screening.correct ? start_seconds_ / screening.seconds : 0;
}

double Screen::ScreenedSeconds(const std::string& source) const {
  const std::lock_guard lock(mutex_);
  const auto known = screened_.find(source);
  return known != screened_.end() && known->second.correct ? known->second.seconds : 0;
}

const Evaluation* Screen::Measured(const std::string& source) const {
  const auto known = measured_.find(source);
  return known == measured_.end() ? nullptr : &known->second;
}

void Screen::Learn(const std::string& source, const std::string& parent, const Evaluation& measured) {
  if (!measured_.emplace(source, measured).second || !measured.correct) return;
  const double screened = ScreenedSeconds(source), screened_parent = ScreenedSeconds(parent);
  if (screened > 0 && screened_parent > 0) {
    misses_.push_back(std::log(measured_.at(parent).seconds / measured.seconds) - std::log(screened_parent / screened));
  }
}

Screen::Prediction Screen::Predict(const Kernel& kernel) const {
  const double screened = ScreenedSeconds(kernel.source), parent = ScreenedSeconds(kernel.parent);
  if (screened == 0 || parent == 0) return {};
  const bool few = misses_.size() < kPredictions;
  const double gain = few ? 0 : Mean(misses_) + 2 * StandardDeviation(misses_);
  return {measured_.at(kernel.parent).seconds * screened / parent / std::exp(gain), few};
}

double Screen::SlowestOfBeam(const std::set<std::string>& rivals, size_t beam) const {
  std::vector<double> seconds;
  for (const std::string& rival : rivals) {
    if (const Evaluation* measured = Measured(rival); measured != nullptr && measured->correct)
      seconds.push_back(measured->seconds);
  }
  if (seconds.empty()) return std::numeric_limits<double>::infinity();
  std::ranges::sort(seconds);
  return seconds[std::min(beam, seconds.size()) - 1];
}

std::vector<size_t> Screen::Promising(const std::vector<Kernel>& kernels, const std::set<std::string>& rivals,
                                      size_t beam) const {
  const double slowest = SlowestOfBeam(rivals, beam);
  std::vector<std::pair<double, size_t>> order;  // in the order given where times are equal
  for (size_t i = 0; i < kernels.size(); ++i) {
    {
      const std::lock_guard lock(mutex_);
      const Evaluation& screening = screened_.at(kernels[i].source);
      if (!screening.correct && Decided(screening)) continue;
    }
    const Prediction prediction = Predict(kernels[i]);
    if (prediction.uncertain || prediction.seconds < slowest) order.emplace_back(prediction.seconds, i);
  }
  std::ranges::sort(order);
  std::vector<size_t> promising;
  std::set<std::string> sources;
  for (const auto& [seconds, i] : order) {
    if (sources.insert(kernels[i].source).second) promising.push_back(i);
  }
  return promising;
}

}  // namespace kgrpo
