#include "judge/cache/evaluation_cache.h"

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

}  // namespace kgrpo::evaluator
