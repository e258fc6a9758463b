// Screening: a second, cheap evaluator judges the new kernels of a search first, and the run's own evaluator measures
// only those that may be fast enough, or that the screen cannot tell about. Used by loop/optimize.cc.
//
// A kernel's time is predicted from that of the kernel it was made from (its parent): measured time of the parent,
// times the ratio of their screened times. What the screen gets wrong of both alike cancels out, and a screen that
// knows nothing misses by as much as kernels gain, so it keeps little out. The predictions so far have missed by a mean
// and a spread, of the logarithm; a kernel is promising if its time, corrected by the mean and less two spreads, beats
// the slowest kernel of the beam.
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
  static constexpr size_t kPredictions = 8;  // so many have to be compared before the screen keeps a kernel out

  // Opens the problem in `directory` and judges the kernel that the search begins with, whose measurement is given.
  // `name`: the plugin's, for messages. Throws KGRPO_ERROR_INVALID where it cannot: nothing could be predicted.
  Screen(std::unique_ptr<Evaluator> evaluator, std::string name, const std::string& directory, const std::string& start,
         const Evaluation& measured, uint64_t seed);

  const std::string& name() const { return name_; }
  std::string Describe() const { return evaluator_->Describe(); }

  // The screen's evaluation, kept by source. Where the evaluator fails, one that is undecided and says why. Throws
  // KGRPO_ERROR_CANCELLED. [any thread, blocking]
  Evaluation Judge(const std::string& source, uint64_t seed);

  // False where it says neither that the kernel is correct nor that it is not: out of time, or beyond this evaluator.
  static bool Decided(const Evaluation& screening);
  // Over the search's first kernel, by the screen's times; 0 where it has none.
  double Speedup(const Evaluation& screening) const;

  // ---- the search's thread; sources were judged here before

  // Takes what the run's own evaluator measured. `parent`: what the kernel was made from, measured before.
  void Learn(const std::string& source, const std::string& parent, const Evaluation& measured);
  const Evaluation* Measured(const std::string& source) const;  // null: not yet

  struct Kernel {
    std::string source, parent;
  };
  // Which of the kernels are worth measuring, each source once, from the most promising on; those that the screen
  // cannot tell about come first. `rivals`: the measured kernels whose `beam` fastest are the beam. Kernels that the
  // screen found wrong are never among them.
  std::vector<size_t> Promising(const std::vector<Kernel>& kernels, const std::set<std::string>& rivals,
                                size_t beam) const;

 private:
  struct Prediction {
    double seconds = 0;  // the least that is plausible; 0: the screen cannot tell
    bool uncertain = true;
  };

  double ScreenedSeconds(const std::string& source) const;  // 0 where it has none
  Prediction Predict(const Kernel& kernel) const;
  double SlowestOfBeam(const std::set<std::string>& rivals, size_t beam) const;

  std::unique_ptr<Evaluator> evaluator_;
  std::string name_;
  Problem problem_;
  double start_seconds_ = 0;
  std::atomic<bool> warned_ = true;  // of a failure; the constructor throws it instead
  mutable std::mutex mutex_;         // guards screened_
  std::map<std::string, Evaluation> screened_;
  std::map<std::string, Evaluation> measured_;
  std::vector<double> misses_;  // log(measured speedup over the parent) - log(screened speedup over it)
};

}  // namespace kgrpo
#endif
