/* SPDX-License-Identifier: Apache-2.0 */
/* kgrpo/evaluation.h - an evaluator's findings on one kernel: what evaluators push, and rewards and observers read. */
#ifndef KGRPO_EVALUATION_H
#define KGRPO_EVALUATION_H
#include "abi.h" /* kgrpo_str, kgrpo_metric */

/* A verdict is a lower-case word: "correct", or what failed. A run's figures count these separately; any other
 * verdict on a kernel that compiled counts as wrong results. "timeout", "unsupported" and "not_timed" leave open
 * whether the kernel is correct: another evaluator may find that it is. docs/judging.md lists the verdicts of the
 * shipped evaluators. */
#define KGRPO_VERDICT_CORRECT "correct"
#define KGRPO_VERDICT_NOT_COMPILED "not_compiled"
#define KGRPO_VERDICT_CRASH "crash"
#define KGRPO_VERDICT_TIMEOUT "timeout"
#define KGRPO_VERDICT_WRONG "wrong"
#define KGRPO_VERDICT_UNSUPPORTED "unsupported" /* the kernel uses features that this evaluator does not cover */
#define KGRPO_VERDICT_NOT_TIMED "not_timed"     /* no fault was found, but the kernel could not be timed */

/* The family of metrics that relate a correct kernel's errors to the tolerance: the largest error divided by the
 * allowed one, "worst_error/out" for the output "out". The host shows the largest with a correct kernel's times. */
#define KGRPO_METRIC_WORST_ERROR "worst_error/"

/* A fact that no number can state, in words, on a whole kernel or on one line of its source. */
typedef struct kgrpo_remark {
  uint32_t struct_size;
  uint32_t line;   /* line of the kernel's source, from 1; 0: the whole kernel */
  kgrpo_str group; /* the heading it is listed under, as declared for metrics: "Occupancy" */
  kgrpo_str label; /* "limited by"; empty for a remark on a line */
  kgrpo_str text;  /* "registers (room for 5 blocks)" */
  double share;    /* share of the run time that it explains, from 0 to 1; 0: not stated */
} kgrpo_remark;

#define KGRPO_REMARK_SIZE_1 KGRPO_SIZEOF_THROUGH(kgrpo_remark, share)

/* Findings on one kernel. Valid during the callback that receives it; a receiver copies what it keeps. */
typedef struct kgrpo_evaluation {
  uint32_t struct_size;
  int32_t compiled;   /* nonzero: it compiled */
  int32_t correct;    /* nonzero: compiled, and correct in everything that was checked */
  kgrpo_str verdict;  /* "correct", or why not */
  double seconds;     /* run time at the problem's timing size; 0 unless correct */
  double seconds_low; /* 95% confidence interval of it; equal to it where the time is modelled */
  double seconds_high;
  int32_t modelled;      /* nonzero: no device ran; seconds is a model's, and `time_source` says which */
  kgrpo_str time_source; /* "H100 model", "NVIDIA H100 80GB HBM3" */
  kgrpo_str diagnosis; /* for a person and for prompts: the compiler's words (data, trimmed), what went wrong where, or
                          what bounds the time */
  double speedup; /* over the reference. An evaluator that times both kernels side by side sets it; otherwise the host
                     does, as the reference's seconds / seconds, before anyone else sees it. 0 unless correct */
  double speedup_low; /* 95% confidence interval of it; both 0: not known */
  double speedup_high;
  const kgrpo_metric* metrics; /* declared in create */
  size_t metric_count;
  const kgrpo_remark* const* remarks;
  size_t remark_count;
} kgrpo_evaluation;

#define KGRPO_EVALUATION_SIZE_1 KGRPO_SIZEOF_THROUGH(kgrpo_evaluation, remark_count)
#endif
