#include <kgrpo/sdk/error.h>
#include <kgrpo/sdk/text.h>
#include <kgrpo/support/evaluation.h>

#include <cmath>

namespace kgrpo {

void RequireSize(uint32_t struct_size, size_t least, const char* type) {
  if (struct_size >= least) return;
  throw Error(KGRPO_ERROR_INTERNAL, std::string("the plugin delivered a ") + type + " with struct_size " +
                                        std::to_string(struct_size) + ", below " + std::to_string(least) +
                                        ": it must set struct_size to sizeof(" + type + ")");
}

void RequireArray(const void* data, size_t count, const char* what) {
  if (data == nullptr && count > 0)
    throw Error(KGRPO_ERROR_INTERNAL,
                "the plugin delivered a count of " + std::to_string(count) + " " + what + " with a NULL array");
}

bool Metric::operator==(const Metric& other) const {
  return name == other.name && value == other.value && has_interval() == other.has_interval() &&
         (!has_interval() || (low == other.low && high == other.high));
}

Metric Metric::FromC(const kgrpo_metric& c) { return {Copy(c.name), c.value, c.low, c.high}; }

kgrpo_metric Metric::ToC() const { return {Str(name), value, low, high}; }

EvaluationView::EvaluationView(const Evaluation& evaluation) {
  metrics_.reserve(evaluation.metrics.size());
  for (const Metric& metric : evaluation.metrics) metrics_.push_back(metric.ToC());
  remarks_.reserve(evaluation.remarks.size());
  for (const Remark& remark : evaluation.remarks) {
    remarks_.push_back(
        {sizeof(kgrpo_remark), remark.line, Str(remark.group), Str(remark.label), Str(remark.text), remark.share});
    each_remark_.push_back(&remarks_.back());
  }
  c_.struct_size = sizeof(c_);
  c_.compiled = evaluation.compiled;
  c_.correct = evaluation.correct;
  c_.verdict = Str(evaluation.verdict);
  c_.seconds = evaluation.seconds;
  c_.seconds_low = evaluation.seconds_low;
  c_.seconds_high = evaluation.seconds_high;
  c_.modelled = evaluation.modelled;
  c_.time_source = Str(evaluation.time_source);
  c_.diagnosis = Str(evaluation.diagnosis);
  c_.speedup = evaluation.speedup;
  c_.speedup_low = evaluation.speedup_low;
  c_.speedup_high = evaluation.speedup_high;
  c_.metrics = metrics_.data();
  c_.metric_count = metrics_.size();
  c_.remarks = each_remark_.data();
  c_.remark_count = remarks_.size();
}

Evaluation Evaluation::FromC(const kgrpo_evaluation& c) {
  RequireSize(c.struct_size, KGRPO_EVALUATION_SIZE_1, "kgrpo_evaluation");
  Evaluation evaluation;
  evaluation.compiled = c.compiled != 0;
  evaluation.correct = c.correct != 0;
  evaluation.verdict = Copy(c.verdict);
  evaluation.seconds = c.seconds;
  evaluation.seconds_low = c.seconds_low;
  evaluation.seconds_high = c.seconds_high;
  evaluation.modelled = c.modelled != 0;
  evaluation.time_source = Copy(c.time_source);
  evaluation.diagnosis = Copy(c.diagnosis);
  evaluation.speedup = c.speedup;
  evaluation.speedup_low = c.speedup_low;
  evaluation.speedup_high = c.speedup_high;
  RequireArray(c.remarks, c.remark_count, "remarks");
  RequireArray(c.metrics, c.metric_count, "metrics");
  for (size_t i = 0; i < c.remark_count; ++i) {
    RequireArray(c.remarks[i], 1, "remarks");
    const kgrpo_remark& remark = *c.remarks[i];
    RequireSize(remark.struct_size, KGRPO_REMARK_SIZE_1, "kgrpo_remark");
    evaluation.remarks.push_back(
        {Copy(remark.group), Copy(remark.label), Copy(remark.text), remark.line, remark.share});
  }
  evaluation.metrics.reserve(c.metric_count);
  for (size_t i = 0; i < c.metric_count; ++i) {
    evaluation.metrics.push_back(Metric::FromC(c.metrics[i]));
  }
  if (evaluation.correct && !evaluation.compiled) {
    throw Error(KGRPO_ERROR_INTERNAL, "the evaluator reported a kernel as correct and as not compiled");
  }
  if (evaluation.correct != (evaluation.verdict == KGRPO_VERDICT_CORRECT)) {
    throw Error(KGRPO_ERROR_INTERNAL, "the evaluator contradicts itself: verdict \"" + evaluation.verdict +
                                          "\" of a kernel it calls " +
                                          (evaluation.correct ? "correct" : "not correct"));
  }
  if (evaluation.correct && !(std::isfinite(evaluation.seconds) && evaluation.seconds > 0)) {
    throw Error(KGRPO_ERROR_INTERNAL, "the evaluator gave a correct kernel a run time of " +
                                          std::to_string(evaluation.seconds) + " s: it must be finite and above 0");
  }
  return evaluation;
}

void Evaluation::CompareWith(const Evaluation& baseline) {
  if (correct && speedup == 0) speedup = baseline.seconds / seconds;
}

}  // namespace kgrpo
