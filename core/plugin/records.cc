#include "plugin/records.h"

#include <kgrpo/sdk/error.h>
#include <kgrpo/sdk/text.h>

#include <cmath>

namespace kgrpo {
void RequireSize(uint32_t struct_size, size_t least, const char* type) {
  if (struct_size >= least) return;
  throw Error(KGRPO_ERROR_INTERNAL, std::string("the plugin delivered a ") + type + " with struct_size " +
                                        std::to_string(struct_size) + ", below " + std::to_string(least) +
                                        ": it must set struct_size to sizeof(" + type + ")");
}

namespace {

// Refuses a count of elements without the elements.
void RequireArray(const void* data, size_t count, const char* what) {
  if (data == nullptr && count > 0)
    throw Error(KGRPO_ERROR_INTERNAL,
                "the plugin delivered " + std::to_string(count) + " " + what + ", and NULL where they should be");
}

}  // namespace

EvaluationView::EvaluationView(const Evaluation& evaluation) {
  metrics_.reserve(evaluation.metrics.size());
  for (const Metric& metric : evaluation.metrics) metrics_.push_back({Str(metric.name), metric.value});
  remarks_.reserve(evaluation.remarks.size());
  for (const Remark& remark : evaluation.remarks)
    remarks_.push_back({Str(remark.group), Str(remark.label), Str(remark.text), remark.line, remark.share});
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
  c_.remarks = remarks_.data();
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
    const kgrpo_remark& remark = c.remarks[i];
    evaluation.remarks.push_back(
        {Copy(remark.group), Copy(remark.label), Copy(remark.text), remark.line, remark.share});
  }
  evaluation.metrics.reserve(c.metric_count);
  for (size_t i = 0; i < c.metric_count; ++i) {
    evaluation.metrics.push_back({Copy(c.metrics[i].name), c.metrics[i].value});
  }
  if (evaluation.correct && !evaluation.compiled) {
    throw Error(KGRPO_ERROR_INTERNAL, "the evaluator called a kernel correct that it says did not compile");
  }
  if (evaluation.correct != (evaluation.verdict == KGRPO_VERDICT_RIGHT)) {
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

CoderAnswer CoderAnswer::FromC(const kgrpo_coder_answer& c) {
  RequireSize(c.struct_size, KGRPO_CODER_ANSWER_SIZE_1, "kgrpo_coder_answer");
  if (c.outcome > KGRPO_CODER_FAILED) {
    throw Error(KGRPO_ERROR_INTERNAL, "the coder delivered the unknown outcome " + std::to_string(c.outcome));
  }
  CoderAnswer answer;
  answer.outcome = static_cast<kgrpo_coder_outcome>(c.outcome);
  answer.source = Copy(c.source);
  answer.summary = Copy(c.summary);
  answer.message = Copy(c.message);
  answer.prompt_tokens = c.prompt_tokens;
  answer.completion_tokens = c.completion_tokens;
  answer.cost = c.cost;
  answer.seconds = c.seconds;
  answer.attempts = c.attempts;
  answer.lost_cost = c.lost_cost;
  answer.text = Copy(c.text);
  answer.reused = c.reused != 0;
  answer.estimated = c.estimated != 0;
  if ((answer.outcome == KGRPO_CODER_OK) == answer.source.empty()) {
    throw Error(KGRPO_ERROR_INTERNAL, std::string("the coder delivered outcome \"") + CoderOutcomeName(answer.outcome) +
                                          (answer.source.empty() ? "\" without a kernel" : "\" with a kernel"));
  }
  return answer;
}

kgrpo_coder_answer CoderAnswer::ToC() const {
  kgrpo_coder_answer c{};
  c.struct_size = sizeof(c);
  c.outcome = outcome;
  c.source = Str(source);
  c.summary = Str(summary);
  c.message = Str(message);
  c.prompt_tokens = prompt_tokens;
  c.completion_tokens = completion_tokens;
  c.cost = cost;
  c.lost_cost = lost_cost;
  c.seconds = seconds;
  c.attempts = attempts;
  c.text = Str(text);
  c.reused = reused ? 1 : 0;
  c.estimated = estimated ? 1 : 0;
  return c;
}

const char* CoderOutcomeName(kgrpo_coder_outcome outcome) {
  switch (outcome) {
    case KGRPO_CODER_OK:
      return "ok";
    case KGRPO_CODER_NOT_APPLICABLE:
      return "not_applicable";
    case KGRPO_CODER_UNCLEAR:
      return "unclear";
    case KGRPO_CODER_REFUSED:
      return "refused";
    case KGRPO_CODER_TRUNCATED:
      return "truncated";
    case KGRPO_CODER_NO_CODE:
      return "no_code";
    case KGRPO_CODER_FAILED:
      return "failed";
  }
  return "unknown";
}

Completion Completion::FromC(const kgrpo_completion& c) {
  RequireSize(c.struct_size, KGRPO_COMPLETION_SIZE_1, "kgrpo_completion");
  if (c.finish_reason > KGRPO_FINISH_LENGTH) {
    throw Error(KGRPO_ERROR_INTERNAL,
                "the policy delivered a completion with the unknown finish_reason " + std::to_string(c.finish_reason));
  }
  RequireArray(c.ids, c.size, "token ids");
  RequireArray(c.logprobs, c.size, "log-probabilities");
  for (size_t i = 0; i < c.size; ++i) {
    if (!std::isfinite(c.logprobs[i]))
      throw Error(KGRPO_ERROR_INTERNAL,
                  "the policy gave a token that it sampled the log-probability " + std::to_string(c.logprobs[i]));
  }
  Completion completion;
  completion.ids.assign(c.ids, c.ids + c.size);
  completion.logprobs.assign(c.logprobs, c.logprobs + c.size);
  completion.text = Copy(c.text);
  completion.finish_reason = static_cast<kgrpo_finish_reason>(c.finish_reason);
  return completion;
}

const char* FinishReasonName(kgrpo_finish_reason reason) {
  return reason == KGRPO_FINISH_STOP ? "stop" : "length";
}

}  // namespace kgrpo
