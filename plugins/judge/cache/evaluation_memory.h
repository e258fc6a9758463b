// An evaluator's cache in memory: equal requests are judged once, also when several threads make them at the same time,
// and the evaluation is kept on disk for later runs. Used by each evaluator, which defines when requests are equal.
#pragma once

#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "judge/cache/cache_file.h"           // CacheFile
#include "judge/verdict/kernel_evaluation.h"  // KernelEvaluation

namespace kgrpo::evaluator {

// Keeps evaluations by content in SQLite, so that the same source is judged once on a machine, in whatever run or
// process.
// [any thread]; several processes may have the same file open.
class EvaluationCache {
 public:
  // Opens or makes the file. A file that is damaged, or of another program, is set aside as FILE.damaged and begun
  // anew, since a cache can be rebuilt. Throws Error(KGRPO_ERROR_UNAVAILABLE) where it cannot be written at all.
  explicit EvaluationCache(const std::string& path);

  // The text kept under the key, if any. A failing disk is a miss.
  std::optional<std::string> Find(const std::string& key);

  // Keeps a value; where two processes race, the first one stays. A failure is no error: the source is judged again.
  void Keep(const std::string& key, const std::string& value);

 private:
  std::mutex mutex_;
  CacheFile file_;
};

// [any thread]
class EvaluationMemory {
 public:
  // Called for each request: "cached" (1 or 0), and if it was judged, "compile_seconds" and "judge_seconds" of wall
  // clock.
  using Report = std::function<void(const char* name, double value)>;

  // `file`: where answers are kept; "" for not at all.
  EvaluationMemory(const std::string& file, Report report);

  // Returns the evaluation under `key`, by `evaluate` where it is not known. An exception of `evaluate` reaches every
  // caller that waits for this key, and is not kept.
  KernelEvaluation Get(const std::string& key, const std::function<KernelEvaluation()>& evaluate);

 private:
  KernelEvaluation FindOrEvaluate(const std::string& key, const std::function<KernelEvaluation()>& evaluate);

  const Report report_;
  std::unique_ptr<EvaluationCache> cache_;
  std::mutex mutex_;
  std::map<std::string, std::shared_future<KernelEvaluation>> in_progress_;
};

}  // namespace kgrpo::evaluator
