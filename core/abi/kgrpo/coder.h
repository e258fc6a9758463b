/* SPDX-License-Identifier: Apache-2.0 */
/* kgrpo/coder.h - the coder interface, "kgrpo.coder/1".
 *
 * A coder writes the kernel that a suggestion describes. It is a black box: a paid service, a local model, or rules.
 * Called by the host's rollout, with many requests in flight.
 *
 * A coder never returns the kernel it was given as a new one: every answer without a new kernel has its own outcome.
 */
#ifndef KGRPO_CODER_H
#define KGRPO_CODER_H
#include "abi.h"          /* kgrpo_str, kgrpo_error, kgrpo_host, kgrpo_text_sink */
#include "coder_answer.h" /* kgrpo_coder_answer */
#include "evaluation.h"   /* kgrpo_evaluation */
#include "problem.h"      /* kgrpo_problem_info */

#define KGRPO_CODER_INTERFACE "kgrpo.coder/1"

/* A request to a coder. Owned by the host and valid until the answer was delivered. */
typedef struct kgrpo_coder_request {
  uint32_t struct_size;
  const kgrpo_problem_info* problem;
  kgrpo_str code_a;                /* the kernel before the last round */
  kgrpo_str code_b;                /* the current kernel: the one to improve */
  kgrpo_str last_suggestion;       /* the suggestion that led from A to B; empty in the first round */
  kgrpo_str suggestion;            /* what to do now: the policy's words */
  const kgrpo_evaluation* current; /* the evaluation of code_b */
  uint64_t seed;                   /* for coders that sample */
  int32_t truncated;               /* nonzero: the suggestion was cut off at its maximum length */
} kgrpo_coder_request;

/* A coder's spending since the run began: the one account of its money. It includes what no answer reports: attempts
 * that failed, and calls that a stop cut short. */
typedef struct kgrpo_coder_spending {
  uint32_t struct_size;
  double cost;      /* US dollars, lost_cost included */
  double lost_cost; /* the part of it for attempts that gave no answer */
} kgrpo_coder_spending;

/* Receives the answer, exactly once for each accepted request, from any thread, possibly before implement returned. An
 * error means that the run cannot go on (a bad key, a budget): the callee releases it, and `answer` is then NULL.
 * Frozen. */
typedef struct kgrpo_coder_done {
  void* context;
  void (*done)(void* context, const kgrpo_coder_answer* answer, kgrpo_error* error);
} kgrpo_coder_done;

typedef struct kgrpo_coder kgrpo_coder; /* an instance; the plugin's own type */

typedef struct kgrpo_coder_interface {
  uint32_t struct_size;

  /* JSON Schema (draft 7) of the options, with a title, a default and a description for each. Static. [any thread] */
  kgrpo_str (*options_schema)(void);

  /* Makes an instance. `options` is JSON that satisfies the schema, defaults filled in. [main thread] */
  kgrpo_error* (*create)(const kgrpo_host* host, kgrpo_str options, kgrpo_coder** out);

  /* Frees an instance; NULL is allowed. Every accepted request has been answered before. [main thread] */
  void (*destroy)(kgrpo_coder* self);

  /* Starts one request; does not block. On an error nothing was accepted, and `done` is not called. [any thread] */
  kgrpo_error* (*implement)(kgrpo_coder* self, const kgrpo_coder_request* request, kgrpo_coder_done done);

  /* Asks that every request in flight be answered soon, with KGRPO_CODER_FAILED where need be. [any thread] */
  void (*cancel)(kgrpo_coder* self);

  /* Pushes suggestions that this coder understands, in a fixed order: one for each technique and parameter. They
   * serve the uniform and fixed baselines and warm starts. NULL, or none is pushed, for a coder that takes any text.
   * [any thread] */
  kgrpo_error* (*suggestions)(const kgrpo_coder* self, kgrpo_text_sink sink);

  /* Pushes the text that would be sent for a request, once, without secrets, for a person to read. Sends nothing.
   * NULL for a coder that sends nothing. [any thread] */
  kgrpo_error* (*describe_request)(const kgrpo_coder* self, const kgrpo_coder_request* request, kgrpo_text_sink sink);

  /* Pushes one line on the settings in force, once, without secrets, for a run's header: the model, where it is,
   * what it may cost. Makes no request. NULL for a coder that has nothing to report. [any thread] */
  kgrpo_error* (*describe)(const kgrpo_coder* self, kgrpo_text_sink sink);

  /* Writes the spending into *out, whose struct_size the caller has set. NULL for a coder that keeps no account: the
   * host then adds up the cost of its answers. [any thread] */
  kgrpo_error* (*spending)(const kgrpo_coder* self, kgrpo_coder_spending* out);

  /* The table of a further interface that this instance offers; NULL for an id that it does not offer. Static. NULL for
   * a coder without any. [any thread] */
  const void* (*get_extension)(const kgrpo_coder* self, kgrpo_str id);
} kgrpo_coder_interface;

#define KGRPO_CODER_INTERFACE_SIZE_1 KGRPO_SIZEOF_THROUGH(kgrpo_coder_interface, get_extension)
#endif
