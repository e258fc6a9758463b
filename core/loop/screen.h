// Screening: a second, cheap evaluator judges the new kernels of a search first, and the run's own evaluator measures
// only those that may be fast enough, or that the screen cannot judge. Used by loop/optimize.cc.
//
// A kernel's time is predicted from its parent, the kernel that it was made from: measured time of the parent, times
// the ratio of their screened times. Errors of the screen that are common to both cancel out. A screen without
// information has prediction errors as large as the gains of kernels, so it keeps little out. Earlier predictions give
// the mean and standard deviation of the logarithm of the error. A kernel is promising if its predicted time, corrected
// by the mean and less two standard deviations, beats the slowest kernel of the beam.
#ifndef KGRPO_LOOP_SCREEN_H
#define KGRPO_LOOP_SCREEN_H

#include "plugin/instances.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace kgrpo {

class Screen {
 public:
  static constexpr size_t kPredictions = 8;  // compared predictions before the screen keeps a kernel out as too slow

  // Opens the problem in `directory` and judges `start`, the kernel that the search begins with. `measured`: its
  // measurement. `name`: the plugin's, for messages. Throws KGRPO_ERROR_INVALID where the screen cannot open the
  // problem or judge the kernel: it could predict nothing.
  Screen(std::unique_ptr<Evaluator> evaluator, std::string name, const std::string& directory, const std::string& start,
         const Evaluation& measured, uint64_t seed);

  const std::string& name() const { return name_; }
  std::string Describe() const { return evaluator_->Describe(); }

  // Returns the screen's evaluation, cached by source. If the evaluator fails, the evaluation is undecided, with the
  // error as its diagnosis. Throws KGRPO_ERROR_CANCELLED. [any thread, blocking]
  Evaluation Judge(const std::string& source, uint64_t seed);

  // False if the screen could not tell whether the kernel is correct: it timed out, or this evaluator does not support
  // it.
  static bool Decided(const Evaluation& screening);
  // Speedup over the search's first kernel, by the screen's times; 0 unless correct.
  double Speedup(const Evaluation& screening) const;

  // ---- on the search's thread; Judge must have had these sources before

  // Takes a measurement of the run's own evaluator. `parent`: the source that the kernel was made from, already
  // measured.
  void Learn(const std::string& source, const std::string& parent, const Evaluation& measured);
  const Evaluation* Measured(const std::string& source) const;  // null: not yet

  struct Kernel {
    std::string source, parent;
  };
  // Returns the indices of kernels worth measuring, each source once, the most promising first; kernels that the screen
  // cannot judge come before all others. Kernels that the screen found incorrect are left out. `rivals`: measured
  // kernels, the `beam` fastest of which form the beam.
  std::vector<size_t> Promising(const std::vector<Kernel>& kernels, const std::set<std::string>& rivals,
                                size_t beam) const;

 private:
  struct Prediction {
    double seconds = 0;  // lower bound; 0: the screen cannot tell
    bool uncertain = true;
  };

  double ScreenedSeconds(const std::string& source) const;  // 0 where it has none
  Prediction Predict(const Kernel& kernel) const;
  double SlowestOfBeam(const std::set<std::string>& rivals, size_t beam) const;

  std::unique_ptr<Evaluator> evaluator_;
  std::string name_;
  Problem problem_;
  double start_seconds_ = 0;
  std::atomic<bool> warned_ = true;  // of a failure; true at first, since the constructor throws failures
  mutable std::mutex mutex_;         // guards screened_
  std::map<std::string, Evaluation> screened_;
  std::map<std::string, Evaluation> measured_;
  std::vector<double> misses_;  // log(measured speedup over the parent) - log(screened speedup over it)
};

}  // namespace kgrpo
#endif
