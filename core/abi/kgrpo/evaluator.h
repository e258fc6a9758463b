/* SPDX-License-Identifier: Apache-2.0 */
/* kgrpo/evaluator.h - the evaluator interface, "kgrpo.evaluator/1".
 *
 * An evaluator defines the format of problems and judges kernels for them: does the source compile, is it correct, how
 * long does it take. Called by the host's rollout from many threads at once, and by `kgrpo-host eval` and `problems`.
 *
 * Candidates are not trusted: whatever a kernel does is a verdict, never a failure of evaluate().
 */
#ifndef KGRPO_EVALUATOR_H
#define KGRPO_EVALUATOR_H
#include "abi.h"        /* kgrpo_str, kgrpo_error, kgrpo_host */
#include "evaluation.h" /* kgrpo_evaluation */
#include "problem.h"    /* kgrpo_problem_info */

#define KGRPO_EVALUATOR_INTERFACE "kgrpo.evaluator/1"

/* Receives an evaluation, exactly once for each successful call. Frozen. */
typedef struct kgrpo_evaluation_sink {
  void* context;
  void (*put)(void* context, const kgrpo_evaluation* evaluation);
} kgrpo_evaluation_sink;

typedef struct kgrpo_evaluate_request {
  uint32_t struct_size;
  kgrpo_str source; /* the kernel: one CUDA C++ translation unit */
  uint64_t seed;    /* of the secret inputs */
  int32_t thorough; /* nonzero: for a record or a final report; the evaluator takes its most careful route, no cache */
  int32_t show_hidden; /* nonzero: a person at a terminal asks, so the diagnosis may name sizes that the problem keeps
                          from policy and coder; nothing of it is cached. 0 wherever a prompt may quote the answer */
  int32_t reference;   /* nonzero: `source` is the problem's reference kernel, whose time is the numerator of every
                          speedup. An evaluator may time it more carefully and keep the result while the problem is
                          open. An incorrect reference is a verdict, or KGRPO_ERROR_INVALID: the host refuses the
                          problem either way */
} kgrpo_evaluate_request;

typedef struct kgrpo_evaluator kgrpo_evaluator; /* an instance; the plugin's own type */
typedef struct kgrpo_problem kgrpo_problem;     /* an open problem; the plugin's own type */

typedef struct kgrpo_evaluator_interface {
  uint32_t struct_size;

  /* JSON Schema (draft 7) of the options, with a title, a default and a description for each. "x-resume": true marks an
   * option that a resumed run may change. Static. [any thread] */
  kgrpo_str (*options_schema)(void);

  /* Makes an instance. `options` is JSON that satisfies the schema, defaults filled in. [main thread] */
  kgrpo_error* (*create)(const kgrpo_host* host, kgrpo_str options, kgrpo_evaluator** out);
  void (*destroy)(kgrpo_evaluator* self); /* NULL is allowed; every problem is closed before. [main thread] */

  /* Opens a problem's folder; every mistake in its files is reported at once. [any thread] */
  kgrpo_error* (*open_problem)(kgrpo_evaluator* self, kgrpo_str directory, kgrpo_problem** out);
  void (*close_problem)(kgrpo_evaluator* self, kgrpo_problem* problem);    /* NULL is allowed. [any thread] */
  const kgrpo_problem_info* (*problem_info)(const kgrpo_problem* problem); /* [any thread] */

  /* Evaluates a kernel. Fails only where evaluating is impossible (no compiler, no device, cancelled): what a kernel
   * causes is its verdict. After a failure a run continues without this round, until all evaluations of three steps in
   * a row failed; the failure of a reference ends it at once. [any thread, blocking] */
  kgrpo_error* (*evaluate)(kgrpo_evaluator* self, kgrpo_problem* problem, const kgrpo_evaluate_request* request,
                           kgrpo_evaluation_sink sink);

  /* A text on what is in force: compiler, sandbox, device. Printed once a run and kept in the run store; lives as long
   * as the instance. [any thread] */
  kgrpo_str (*describe)(const kgrpo_evaluator* self);

  /* The table of a further interface that this instance offers, such as "kgrpo.evaluator_tools/1"
   * (draft/evaluator_tools.h); NULL for an id that it does not offer. Static. NULL for an evaluator without any.
   * [any thread] */
  const void* (*get_extension)(const kgrpo_evaluator* self, kgrpo_str id);
} kgrpo_evaluator_interface;

#define KGRPO_EVALUATOR_INTERFACE_SIZE_1 KGRPO_SIZEOF_THROUGH(kgrpo_evaluator_interface, get_extension)
#endif
