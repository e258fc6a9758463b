/* SPDX-License-Identifier: Apache-2.0 */
/* kgrpo/draft/evaluator_tools.h - what else an evaluator can do for a person:
 * "kgrpo.draft.evaluator_tools/1", found by kgrpo_evaluator_interface.get_extension. Each function may be NULL. Called
 * by `kgrpo-host eval` and `problems check`. A draft: it may change with any minor version.
 */
#ifndef KGRPO_EVALUATOR_TOOLS_H
#define KGRPO_EVALUATOR_TOOLS_H
#include "../abi.h"        /* kgrpo_str, kgrpo_error, kgrpo_text_sink */
#include "../evaluation.h" /* kgrpo_evaluation */
#include "../evaluator.h"  /* kgrpo_evaluator, kgrpo_problem */

#define KGRPO_EVALUATOR_TOOLS_INTERFACE "kgrpo.draft.evaluator_tools/1"

/* A kernel to write a report on, with its evaluation and that of the reference kernel. */
typedef struct kgrpo_report_request {
  uint32_t struct_size;
  kgrpo_str source;      /* the kernel */
  kgrpo_str source_name; /* the file's name, for the report */
  const kgrpo_evaluation* candidate;
  const kgrpo_evaluation* baseline;
} kgrpo_report_request;

/* A reason why evaluations of a problem say little: some kernel that does not do the work is called correct, or no
 * kernel's time can be told from another's. Valid during the callback that receives it. */
typedef struct kgrpo_problem_finding {
  uint32_t struct_size;
  kgrpo_str code;     /* a lower-case word: "zeros_pass"; docs/problems.md lists those of the shipped evaluators */
  kgrpo_str sentence; /* the fault, with the parameter's name */
  kgrpo_str advice;   /* a change that mends it */
} kgrpo_problem_finding;

#define KGRPO_PROBLEM_FINDING_SIZE_1 KGRPO_SIZEOF_THROUGH(kgrpo_problem_finding, advice)

/* Receives findings, each once. Frozen. */
typedef struct kgrpo_problem_finding_sink {
  void* context;
  void (*put)(void* context, const kgrpo_problem_finding* finding);
} kgrpo_problem_finding_sink;

typedef struct kgrpo_evaluator_tools {
  uint32_t struct_size;

  /* Pushes a report on one kernel: a web page (HTML) that needs nothing else. NULL for an evaluator without reports.
   * [any thread] */
  kgrpo_error* (*report)(const kgrpo_evaluator* self, const kgrpo_problem* problem, const kgrpo_report_request* request,
                         kgrpo_text_sink html);

  /* Looks for defects that make a problem degenerate, with inputs of its own; checks the reference kernel too: an
   * incorrect one is a finding. Pushes nothing for a sound problem. Called by `kgrpo-host
   * problems check`. NULL for an evaluator without such checks. [any thread, blocking] */
  kgrpo_error* (*check_problem)(kgrpo_evaluator* self, const kgrpo_problem* problem, kgrpo_problem_finding_sink sink);

  /* Compares the work that the problem states every kernel needs (traffic, operations, and so a least time) with the
   * work counted for `candidate`, an evaluation that evaluate() pushed: for an author whose statement may be too
   * high. Pushes the comparison once, for a terminal into `text` (lines, each ended) and as a JSON object into
   * `json`; pushes nothing if the kernel's work was not counted. Called by `kgrpo-host eval --dispute-bound`. NULL
   * for an evaluator that does not count. [any thread] */
  kgrpo_error* (*explain_bound)(const kgrpo_evaluator* self, const kgrpo_problem* problem,
                                const kgrpo_evaluation* candidate, kgrpo_text_sink text, kgrpo_text_sink json);
} kgrpo_evaluator_tools;

#define KGRPO_EVALUATOR_TOOLS_SIZE_1 KGRPO_SIZEOF_THROUGH(kgrpo_evaluator_tools, explain_bound)
#endif
