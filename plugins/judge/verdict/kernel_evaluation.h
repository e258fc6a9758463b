// The evaluation of one kernel, and its form as JSON for the cache. Used by every evaluator.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "judge/problem/problem.h"  // Problem

namespace kgrpo::evaluator {

// A floating output whose values are wrong, and the largest |got - expected| in units of what is allowed there.
struct WrongOutput {
  std::string name;
  double error = 0;
};

// The reason why a candidate fails: a verdict and a sentence; none when `code` is empty.
struct Trouble {
  std::string code, sentence;
  WrongOutput wrong = {};
  explicit operator bool() const { return !code.empty(); }
};

struct KernelEvaluation {
  bool compiled = false;
  bool correct = false;
  std::string verdict;                       // docs/judging.md lists them
  double seconds = 0;                        // measured or modelled, at the timing size; 0 unless correct
  double seconds_low = 0, seconds_high = 0;  // 95% confidence interval of it; equal to it where it is modelled
  std::string diagnosis;                     // one or two sentences; compiler output quoted below
  std::string not_judged;  // of a correct kernel: "lines 30-31, which no size reaches"; in diagnosis, too
  WrongOutput wrong;       // of a wrong kernel, if known
  std::vector<std::pair<std::string, double>> metrics;
  std::vector<std::string> undecided;  // of the reference kernel: the drawn sizes at which it fails, and why
  bool transient = false;              // may be the fault of a busy machine: not to be kept
  double compile_seconds = 0;          // wall clock, of this evaluation: not kept
  bool compile_cached = false;         // it had been compiled before: not kept
  // Likewise, if the evaluator measures them: the correctness sizes without the oracle, the oracle at those sizes, the
  // timing size.
  double correctness_seconds = 0, oracle_seconds = 0, timing_seconds = 0;

  // Keeps what was not judged, and says so at the end of the diagnosis. Nothing for an empty text.
  void KeepNotJudged(std::string what) {
    not_judged = std::move(what);
    if (!not_judged.empty()) diagnosis += " Not judged: " + not_judged + ".";
  }

  // Sets the verdict: correct where there is no trouble, else the trouble's, without a time.
  void Conclude(const Trouble& trouble);

  std::string ToJson() const;
  // Throws std::exception for text that ToJson did not write.
  static KernelEvaluation FromJson(const std::string& text);
};

// "DIR/reference.cu: the reference kernel is not correct (wrong): ..."; of an evaluation that is not correct.
std::string ReferenceTrouble(const KernelEvaluation& evaluation, const Problem& problem);

// Throws Error(KGRPO_ERROR_INVALID) unless `evaluation`, of the problem's reference kernel, is correct.
void RequireCorrectReference(const KernelEvaluation& evaluation, const Problem& problem);

}  // namespace kgrpo::evaluator
