// The judge with a memory: judgements kept by content, one judgement at a time for the same content, baselines. What
// plugin.cc offers through the ABI.
#ifndef KGRPO_EVALUATOR_SIM_EVALUATOR_H
#define KGRPO_EVALUATOR_SIM_EVALUATOR_H

#include <cstdint>
#include <memory>
#include <string>

#include "evaluator_shared/judgement_memory.h"  // JudgementMemory
#include "evaluator_sim/judge.h"                // Judge, OpenProblem

namespace kgrpo::evaluator_sim {

// [any thread]
class Evaluator {
 public:
  struct Options {
    Judge::Options judge;
    std::string cache_directory;  // for oracles and judgements; must exist
    bool cache = true;            // keep judgements on disk
    uint64_t seed = 0;            // changes every secret input
  };

  // Told of each judgement but the thorough ones.
  using Report = evaluator::JudgementMemory::Report;

  explicit Evaluator(const Options& options, Report report = {});

  std::unique_ptr<OpenProblem> Open(const std::string& directory) const;

  // The reference kernel's judgement. Throws Error(KGRPO_ERROR_INVALID) where it is not correct.
  Judgement Baseline(const OpenProblem& open);

  // What is asked of a judgement beside the source.
  struct Request {
    uint64_t seed = 0;         // of a thorough judgement's inputs
    bool thorough = false;     // the most careful route; not cached, but for the reference
    bool show_hidden = false;  // the diagnosis names hidden sizes; not cached
  };

  // A candidate's. Its inputs are drawn from a key that is a function of (seed option, problem, source), so that the
  // same source gets the same judgement in every run, and no author of a source can know its inputs. A thorough
  // judgement draws from the request's seed as well.
  Judgement Evaluate(const OpenProblem& open, const std::string& source, const Request& request);

  const Judge& judge() const { return judge_; }

 private:
  Judgement EvaluateCached(const OpenProblem& open, const std::string& source);
  uint64_t KeyOf(const OpenProblem& open, const std::string& source) const;

  const Options options_;
  Judge judge_;
  evaluator::JudgementMemory memory_;
};

}  // namespace kgrpo::evaluator_sim

#endif
