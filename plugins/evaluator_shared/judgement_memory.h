// A judge's memory: the same question is judged once, also when several threads ask it at the same time, and the answer
// is kept on disk for later runs. Used by each evaluator; what makes two questions the same is the evaluator's own.
#ifndef KGRPO_EVALUATOR_SHARED_JUDGEMENT_MEMORY_H
#define KGRPO_EVALUATOR_SHARED_JUDGEMENT_MEMORY_H

#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "evaluator_shared/judgement.h"        // Judgement
#include "evaluator_shared/judgement_cache.h"  // JudgementCache

namespace kgrpo::evaluator {

// [any thread]
class JudgementMemory {
 public:
  // Told of each question: "cached" (1 or 0) and, where it was judged, "compile_seconds" and "judge_seconds", wall
  // clock.
  using Report = std::function<void(const char* name, double value)>;

  // `file`: where answers are kept; "" for not at all.
  JudgementMemory(const std::string& file, Report report);

  // The answer to the question `key`; `judge` finds it where it is not known. What `judge` throws is thrown to
  // everybody who asked meanwhile, and forgotten.
  Judgement Get(const std::string& key, const std::function<Judgement()>& judge);

 private:
  Judgement FindOrJudge(const std::string& key, const std::function<Judgement()>& judge);

  const Report report_;
  std::unique_ptr<JudgementCache> cache_;
  std::mutex mutex_;
  std::map<std::string, std::shared_future<Judgement>> in_progress_;
};

}  // namespace kgrpo::evaluator

#endif
