#include "evaluator_shared/judgement_memory.h"

#include <chrono>
#include <utility>

namespace kgrpo::evaluator {

JudgementMemory::JudgementMemory(const std::string& file, Report report)
    : report_(report ? std::move(report) : [](const char*, double) {}) {
  if (!file.empty()) cache_ = std::make_unique<JudgementCache>(file);
}

Judgement JudgementMemory::FindOrJudge(const std::string& key, const std::function<Judgement()>& judge) {
  if (cache_) {
    if (const std::optional<std::string> kept = cache_->Find(key)) {
      try {
        Judgement judgement = Judgement::FromJson(*kept);
        report_("cached", 1);
        return judgement;
      } catch (const std::exception&) {
        // of a later version: judged again
      }
    }
  }
  report_("cached", 0);
  const auto begin = std::chrono::steady_clock::now();
  Judgement judgement = judge();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  report_("compile_seconds", judgement.compile_seconds);
  report_("compile_cached", judgement.compile_cached ? 1 : 0);
  report_("judge_seconds", seconds - judgement.compile_seconds);
  // A limit of wall-clock time may be the machine's fault: such a verdict is not kept for later runs.
  if (cache_ && judgement.verdict != "timeout" && !judgement.transient) cache_->Keep(key, judgement.ToJson());
  return judgement;
}

Judgement JudgementMemory::Get(const std::string& key, const std::function<Judgement()>& judge) {
  std::promise<Judgement> promise;
  std::shared_future<Judgement> other;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto [place, fresh] = in_progress_.try_emplace(key);
    if (fresh) {
      place->second = promise.get_future().share();
    } else {
      other = place->second;
    }
  }
  if (other.valid()) {
    report_("cached", 1);
    return other.get();
  }
  const auto forget = [this, &key] {
    const std::lock_guard<std::mutex> lock(mutex_);
    in_progress_.erase(key);
  };
  try {
    Judgement judgement = FindOrJudge(key, judge);
    promise.set_value(judgement);
    forget();
    return judgement;
  } catch (...) {
    promise.set_exception(std::current_exception());
    forget();
    throw;
  }
}

}  // namespace kgrpo::evaluator
