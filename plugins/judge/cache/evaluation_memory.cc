#include "judge/cache/evaluation_memory.h"

#include <chrono>
#include <utility>

namespace kgrpo::evaluator {
namespace {

constexpr int kEvaluationCacheId = 0x6b676a63;  // "kgjc"

}  // namespace

EvaluationCache::EvaluationCache(const std::string& path)
    : file_(path, kEvaluationCacheId,
            "CREATE TABLE IF NOT EXISTS evaluation(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;",
            "the evaluation cache") {}

std::optional<std::string> EvaluationCache::Find(const std::string& key) {
  const std::lock_guard<std::mutex> lock(mutex_);
  file_.MendIfDamaged();
  CacheFile::Statement select(file_, "SELECT value FROM evaluation WHERE key = ?");
  if (!select.Bind(1, key).Row()) return std::nullopt;
  return select.Text(0);
}

void EvaluationCache::Keep(const std::string& key, const std::string& value) {
  const std::lock_guard<std::mutex> lock(mutex_);
  file_.MendIfDamaged();
  CacheFile::Statement insert(file_, "INSERT OR IGNORE INTO evaluation(key, value) VALUES(?, ?)");
  insert.Bind(1, key).Bind(2, value).Done();
}

EvaluationMemory::EvaluationMemory(const std::string& file, Report report)
    : report_(report ? std::move(report) : [](const char*, double) {}) {
  if (!file.empty()) cache_ = std::make_unique<EvaluationCache>(file);
}

KernelEvaluation EvaluationMemory::FindOrEvaluate(const std::string& key,
                                                  const std::function<KernelEvaluation()>& evaluate) {
  if (cache_) {
    if (const std::optional<std::string> kept = cache_->Find(key)) {
      try {
        KernelEvaluation evaluation = KernelEvaluation::FromJson(*kept);
        report_("cached", 1);
        return evaluation;
      } catch (const std::exception&) {
        // of a later version: judged again
      }
    }
  }
  report_("cached", 0);
  const auto begin = std::chrono::steady_clock::now();
  KernelEvaluation evaluation = evaluate();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  report_("compile_seconds", evaluation.compile_seconds);
  report_("compile_cached", evaluation.compile_cached ? 1 : 0);
  report_("judge_seconds", seconds - evaluation.compile_seconds);
  // A limit of wall-clock time may be the machine's fault: such a verdict is not kept for later runs.
  if (cache_ && evaluation.verdict != "timeout" && !evaluation.transient) cache_->Keep(key, evaluation.ToJson());
  return evaluation;
}

KernelEvaluation EvaluationMemory::Get(const std::string& key, const std::function<KernelEvaluation()>& evaluate) {
  std::promise<KernelEvaluation> promise;
  std::shared_future<KernelEvaluation> other;
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
    KernelEvaluation evaluation = FindOrEvaluate(key, evaluate);
    promise.set_value(evaluation);
    forget();
    return evaluation;
  } catch (...) {
    promise.set_exception(std::current_exception());
    forget();
    throw;
  }
}

}  // namespace kgrpo::evaluator
