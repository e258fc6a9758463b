#include "evaluator_shared/judgement_cache.h"

namespace kgrpo::evaluator {
namespace {

constexpr int kApplicationId = 0x6b676a63;  // "kgjc"

}  // namespace

JudgementCache::JudgementCache(const std::string& path)
    : file_(path, kApplicationId,
            "CREATE TABLE IF NOT EXISTS judgement(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;",
            "the judgement cache") {}

std::optional<std::string> JudgementCache::Find(const std::string& key) {
  const std::lock_guard<std::mutex> lock(mutex_);
  file_.MendIfDamaged();
  CacheFile::Statement select(file_, "SELECT value FROM judgement WHERE key = ?");
  if (!select.Bind(1, key).Row()) return std::nullopt;
  return select.Text(0);
}

void JudgementCache::Keep(const std::string& key, const std::string& value) {
  const std::lock_guard<std::mutex> lock(mutex_);
  file_.MendIfDamaged();
  CacheFile::Statement insert(file_, "INSERT OR IGNORE INTO judgement(key, value) VALUES(?, ?)");
  insert.Bind(1, key).Bind(2, value).Done();
}

}  // namespace kgrpo::evaluator
