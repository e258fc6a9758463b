/* kgrpo/coder.h - the coder interface, "kgrpo.coder/1".
 *
 * A coder writes the kernel that a suggestion describes. It is a black box: a paid service, a local model, or rules.
 * Called by the host's rollout, with many requests in flight.
 *
 * A coder never returns the kernel it was given as a new one: every answer without a new kernel has its own outcome.
 */
#ifndef KGRPO_CODER_H
#define KGRPO_CODER_H
#include "abi.h"       /* kgrpo_str, kgrpo_error, kgrpo_text_sink */
#include "evaluator.h" /* kgrpo_problem_info, kgrpo_evaluation */
#include "host.h"      /* kgrpo_host */

#ifdef __cplusplus
extern "C" {
#endif

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
  int32_t truncated; /* nonzero: the suggestion was cut off at its maximum length. Added in revision 1.1. */
} kgrpo_coder_request;

#define KGRPO_CODER_REQUEST_SIZE_1 KGRPO_SIZEOF_THROUGH(kgrpo_coder_request, seed)

/* Outcome of a request. */
typedef enum kgrpo_coder_outcome {
  KGRPO_CODER_OK = 0,             /* `source` is a new kernel */
  KGRPO_CODER_NOT_APPLICABLE = 1, /* understood, but does not apply to this kernel: `message` says why */
  KGRPO_CODER_UNCLEAR = 2,        /* the suggestion names nothing that can be done */
  KGRPO_CODER_REFUSED = 3,        /* the service declined to answer, or its filter did */
  KGRPO_CODER_TRUNCATED = 4,      /* the answer was cut off */
  KGRPO_CODER_NO_CODE = 5,        /* an answer without a kernel in it */
  KGRPO_CODER_FAILED = 6,         /* no answer: network, service, retries used up */
  KGRPO_CODER_NO_KERNEL = 7       /* the suggestion must contain the kernel and does not: a failure of the policy,
                                     which the reward scores, not of the coder. Added in revision 1.1. */
} kgrpo_coder_outcome;

/* An answer. Owned by the plugin and valid during the callback only. */
typedef struct kgrpo_coder_answer {
  uint32_t struct_size;
  uint32_t outcome;  /* a kgrpo_coder_outcome */
  kgrpo_str source;  /* the new kernel, a whole translation unit; empty unless the outcome is KGRPO_CODER_OK */
  kgrpo_str summary; /* what was done, in few words: "shared-memory tiling, tile 32"; may be empty */
  kgrpo_str message; /* why not, for people and prompts; empty when the outcome is KGRPO_CODER_OK */
  kgrpo_str text;    /* what a model answered, word for word, for a person who looks into it; may be empty */
  uint64_t prompt_tokens;
  uint64_t completion_tokens;
  double cost;      /* US dollars paid for this request, lost_cost included */
  double lost_cost; /* the part of cost for attempts that gave no answer */
  double seconds;   /* from request to answer, retries included */
  uint32_t attempts;
  int32_t reused; /* nonzero: it came from a recording or a cache, or was shared with an identical request: no call was
                     made for this one, and nothing paid */
  int32_t estimated; /* nonzero: tokens or cost are estimates, because the service reported none or may bill an attempt
                        that gave no answer. Recordings do not keep it */
} kgrpo_coder_answer;

#define KGRPO_CODER_ANSWER_SIZE_1 KGRPO_SIZEOF_THROUGH(kgrpo_coder_answer, estimated)

/* A coder's spending since the run began, including calls without an answer (cut short by a stop). */
typedef struct kgrpo_coder_spending {
  uint32_t struct_size;
  double cost;      /* US dollars, lost_cost included */
  double lost_cost; /* the part of cost for attempts that gave no answer */
} kgrpo_coder_spending;

#define KGRPO_CODER_SPENDING_SIZE_1 KGRPO_SIZEOF_THROUGH(kgrpo_coder_spending, lost_cost)

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
   * host then adds up its answers. [any thread] */
  kgrpo_error* (*spending)(const kgrpo_coder* self, kgrpo_coder_spending* out);
} kgrpo_coder_interface;

/* The size of the struct as released in revision 1.0. Members are appended below, never moved: this never changes. */
#define KGRPO_CODER_INTERFACE_SIZE_1 KGRPO_SIZEOF_THROUGH(kgrpo_coder_interface, spending)

#ifdef __cplusplus
}
#endif
#endif
