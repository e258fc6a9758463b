// One kernel's evaluation, as an owning copy of kgrpo_evaluation. Used by the host wherever it keeps
// one, and by plugins that show or quote one.
//
// FromC copies a pushed struct and throws kgrpo::Error if it breaks the contract. A view's C struct points into its
// Evaluation: it is valid until the Evaluation is changed or destroyed.
#ifndef KGRPO_SUPPORT_EVALUATION_H
#define KGRPO_SUPPORT_EVALUATION_H

#include <kgrpo/evaluation.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace kgrpo {

// A named number, as plugins push them.
struct Metric {
  std::string name;
  double value = 0;
  double low = NAN, high = NAN;  // 95% interval; both NaN: not known
  bool operator==(const Metric& other) const;

  bool has_interval() const { return !std::isnan(low) || !std::isnan(high); }
  static Metric FromC(const kgrpo_metric& c);
  kgrpo_metric ToC() const;  // borrows from this
};

// A fact in words; kgrpo_remark.
struct Remark {
  std::string group, label, text;
  uint32_t line = 0;
  double share = 0;
  bool operator==(const Remark&) const = default;
};

// A kgrpo_evaluation that points into an Evaluation.
class EvaluationView {
 public:
  explicit EvaluationView(const struct Evaluation& evaluation);
  const kgrpo_evaluation* c() const { return &c_; }

 private:
  std::vector<kgrpo_metric> metrics_;  // c_ points here; moving a vector keeps its elements in place
  std::vector<kgrpo_remark> remarks_;
  std::vector<const kgrpo_remark*> each_remark_;
  kgrpo_evaluation c_{};
};

// An evaluator's findings on one kernel; kgrpo_evaluation documents each field.
struct Evaluation {
  bool compiled = false;
  bool correct = false;
  std::string verdict;
  double seconds = 0;
  double seconds_low = 0;
  double seconds_high = 0;
  bool modelled = false;
  std::string time_source;
  std::string diagnosis;
  double speedup = 0;
  double speedup_low = 0;
  double speedup_high = 0;
  std::vector<Metric> metrics;
  std::vector<Remark> remarks;

  static Evaluation FromC(const kgrpo_evaluation& c);
  EvaluationView ToC() const { return EvaluationView(*this); }

  // Sets the speedup of a correct kernel that was not timed beside the reference.
  void CompareWith(const Evaluation& baseline);
};

// Throws for a struct shorter than its first release: reading its later members would read past its end.
void RequireSize(uint32_t struct_size, size_t least, const char* type);
// Throws if a plugin gives a count of elements but a null `data`.
void RequireArray(const void* data, size_t count, const char* what);

}  // namespace kgrpo
#endif
