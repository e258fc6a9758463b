/* kgrpo/evaluator.h - the evaluator interface, "kgrpo.evaluator/1".
 *
 * An evaluator defines the format of problems and judges kernels for them: does the source compile, is it correct, how
 * long does it take. Called by the host's rollout from many threads at once, and by `kgrpo-host eval` and `problems`.
 *
 * Candidates are not trusted: whatever a kernel does is a verdict, never a failure of evaluate().
 */
#ifndef KGRPO_EVALUATOR_H
#define KGRPO_EVALUATOR_H
#include "abi.h"  /* kgrpo_str, kgrpo_error, kgrpo_metric, kgrpo_text_sink */
#include "host.h" /* kgrpo_host */

#ifdef __cplusplus
extern "C" {
#endif

#define KGRPO_EVALUATOR_INTERFACE "kgrpo.evaluator/1"

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

/* Description of a problem. Lives as long as the problem is open. */
typedef struct kgrpo_problem_info {
  uint32_t struct_size;
  kgrpo_str name;          /* unique: the folder's name */
  kgrpo_str title;         /* "Vector addition" */
  kgrpo_str family;        /* "elementwise" */
  kgrpo_str split;         /* "train" or "heldout": what its author meant it for; the pipeline decides */
  kgrpo_str task;          /* the task text for prompts: what to compute, signature, visible sizes */
  kgrpo_str signature;     /* the C declaration that a candidate must define */
  kgrpo_str source;        /* the reference kernel: where optimisation starts */
  const kgrpo_str* traits; /* words for the kernel's nature: "memory-bound" */
  size_t trait_count;
  kgrpo_str refused;      /* why it cannot be judged; empty: it can */
  const kgrpo_str* flags; /* caveats of its evaluations: "zeros pass KernelBench's tolerance" */
  size_t flag_count;
} kgrpo_problem_info;

#define KGRPO_PROBLEM_INFO_SIZE_1 KGRPO_SIZEOF_THROUGH(kgrpo_problem_info, flag_count)

/* A fact in words, on a whole kernel or on one line of its source, that a number alone cannot state. Frozen. */
typedef struct kgrpo_remark {
  kgrpo_str group; /* the heading it is listed under, as declared for metrics: "Occupancy" */
  kgrpo_str label; /* "limited by"; empty for a remark on a line */
  kgrpo_str text;  /* "registers (room for 5 blocks)" */
  uint32_t line;   /* of the kernel's source, from 1; 0: of the whole kernel */
  double share;    /* of the run time that it explains, from 0 to 1; 0: not stated */
} kgrpo_remark;

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
  double speedup;      /* over the reference, both timed side by side; 0 where the evaluator does not time them so */
  double speedup_low;  /* 95% confidence interval of it */
  double speedup_high;
  const kgrpo_metric* metrics; /* declared in create */
  size_t metric_count;
  const kgrpo_remark* remarks;
  size_t remark_count;
} kgrpo_evaluation;

#define KGRPO_EVALUATION_SIZE_1 KGRPO_SIZEOF_THROUGH(kgrpo_evaluation, remark_count)

/* Receives an evaluation, exactly once for each successful call. Frozen. */
typedef struct kgrpo_evaluation_sink {
  void* context;
  void (*put)(void* context, const kgrpo_evaluation* evaluation);
} kgrpo_evaluation_sink;

typedef struct kgrpo_evaluate_request {
  uint32_t struct_size;
  kgrpo_str source; /* the candidate: one CUDA C++ translation unit */
  uint64_t seed;    /* of the secret inputs */
  int32_t thorough; /* nonzero: for a record or a final report; the evaluator takes its most careful route, no cache */
  int32_t show_hidden; /* nonzero: a person at a terminal asks, so the diagnosis may name sizes that the problem keeps
                          from policy and coder; nothing of it is cached. 0 wherever a prompt may quote the answer */
} kgrpo_evaluate_request;

#define KGRPO_EVALUATE_REQUEST_SIZE_1 KGRPO_SIZEOF_THROUGH(kgrpo_evaluate_request, show_hidden)

/* A kernel to write a report on, with the evaluations that evaluate and baseline pushed for it. */
typedef struct kgrpo_report_request {
  uint32_t struct_size;
  kgrpo_str source;      /* the kernel */
  kgrpo_str source_name; /* what it is called: a file's name */
  const kgrpo_evaluation* candidate;
  const kgrpo_evaluation* baseline;
} kgrpo_report_request;

#define KGRPO_REPORT_REQUEST_SIZE_1 KGRPO_SIZEOF_THROUGH(kgrpo_report_request, baseline)

/* A reason why evaluations of a problem say little: some kernel that does not do the work is judged correct, or no
 * kernel's time can be told from another's. Valid during the callback that receives it. Frozen. */
typedef struct kgrpo_problem_finding {
  kgrpo_str code;     /* a lower-case word: "zeros_pass"; docs/problems.md lists those of the shipped evaluators */
  kgrpo_str sentence; /* what was found, with the parameter's name */
  kgrpo_str advice;   /* what to change */
} kgrpo_problem_finding;

/* Receives findings, each once. Frozen. */
typedef struct kgrpo_problem_finding_sink {
  void* context;
  void (*put)(void* context, const kgrpo_problem_finding* finding);
} kgrpo_problem_finding_sink;

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

  /* Judges the reference kernel: its time is the numerator of every speedup. A reference that is not correct is an
   * error of the problem. [any thread, blocking] */
  kgrpo_error* (*baseline)(kgrpo_evaluator* self, kgrpo_problem* problem, kgrpo_evaluation_sink sink);

  /* Judges a candidate. Fails only where judging is impossible (no compiler, no device, cancelled). After
   * KGRPO_ERROR_UNAVAILABLE, KGRPO_ERROR_INTERNAL or KGRPO_ERROR_NOT_FINITE a run continues without this round, until
   * all evaluations of three steps in a row failed; any other code ends it at once. [any thread, blocking] */
  kgrpo_error* (*evaluate)(kgrpo_evaluator* self, kgrpo_problem* problem, const kgrpo_evaluate_request* request,
                           kgrpo_evaluation_sink sink);

  /* A text on what is in force: compiler, sandbox, device. Printed once a run and kept in the run store; lives as long
   * as the instance. [any thread] */
  kgrpo_str (*describe)(const kgrpo_evaluator* self);

  /* Pushes a report on one kernel: a web page (HTML) that needs nothing else. NULL for an evaluator without reports.
   * [any thread] */
  kgrpo_error* (*report)(const kgrpo_evaluator* self, const kgrpo_problem* problem, const kgrpo_report_request* request,
                         kgrpo_text_sink html);

  /* Looks for defects that make a problem degenerate, with inputs of its own; checks the reference kernel too: a
   * problem whose baseline() fails gets a finding. Pushes nothing for a sound problem. Called by `kgrpo-host
   * problems check`. NULL for an evaluator without such checks. [any thread, blocking] */
  kgrpo_error* (*check_problem)(kgrpo_evaluator* self, const kgrpo_problem* problem, kgrpo_problem_finding_sink sink);

  /* Compares the work that the problem states every kernel needs (traffic, operations, and so a least time) with the
   * work counted for `candidate`, an evaluation that evaluate() pushed: for an author whose statement may be too
   * high. Pushes the comparison once, for a terminal into `text` (lines, each ended) and as a JSON object into
   * `json`; pushes nothing if the kernel's work was not counted. Called by `kgrpo-host eval --dispute-bound`. NULL
   * for an evaluator that does not count. Added in revision 1.1. [any thread] */
  kgrpo_error* (*explain_bound)(const kgrpo_evaluator* self, const kgrpo_problem* problem,
                                const kgrpo_evaluation* candidate, kgrpo_text_sink text, kgrpo_text_sink json);
} kgrpo_evaluator_interface;

/* The size of the struct as released in revision 1.0. Members are appended below, never moved: this never changes. */
#define KGRPO_EVALUATOR_INTERFACE_SIZE_1 KGRPO_SIZEOF_THROUGH(kgrpo_evaluator_interface, check_problem)

#ifdef __cplusplus
}
#endif
#endif
