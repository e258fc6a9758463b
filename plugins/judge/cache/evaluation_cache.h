// Keeps evaluations by content in SQLite, so that the same source is judged once on a machine, in whatever run or
// process. Used by each evaluator, which defines the key.
#pragma once

#include <mutex>
#include <optional>
#include <string>

#include "judge/cache/cache_file.h"  // CacheFile

namespace kgrpo::evaluator {

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

}  // namespace kgrpo::evaluator
