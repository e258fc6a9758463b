/* SPDX-License-Identifier: Apache-2.0 */
/* kgrpo/reward.h - the reward interface, "kgrpo.reward/1".
 *
 * A reward turns one judged round of a trajectory into a number. It is pure: the same arguments give the same score,
 * and it keeps no state between calls, so the host calls it from several threads at once, in any order, and again when
 * a run is replayed. It may take its time: the host scores on its worker threads, never on the loop's. Written by
 * plugins, called by the host's rollout (core/loop).
 */
#ifndef KGRPO_REWARD_H
#define KGRPO_REWARD_H
#include "abi.h"          /* kgrpo_str, kgrpo_error, kgrpo_host, kgrpo_metric_sink */
#include "coder_answer.h" /* kgrpo_coder_answer: what became of the suggestion */
#include "evaluation.h"   /* kgrpo_evaluation: what the evaluator found */

#define KGRPO_REWARD_INTERFACE "kgrpo.reward/1"

/* A round to score. Everything is owned by the host and valid during the call only. */
typedef struct kgrpo_reward_request {
  uint32_t struct_size;
  const kgrpo_evaluation* baseline;       /* the reference kernel, always correct */
  const kgrpo_coder_answer* answer;       /* what the coder made of this round's suggestion */
  const kgrpo_evaluation* candidate;      /* this round's kernel; NULL when the coder wrote none */
  const kgrpo_evaluation* current;        /* the kernel that the round started from */
  int32_t unchanged;                      /* nonzero: the coder's source equals the one the round started from */
  uint32_t round;                         /* from 0 */
  uint32_t rounds;                        /* how many this trajectory has */
  const kgrpo_evaluation* const* history; /* of the trajectory's earlier rounds, `round` of them, oldest first; NULL in
                                             place of a round without a kernel */
  kgrpo_str suggestion;                   /* the policy's words, as the coder received them */
  uint64_t suggestion_tokens; /* the length of the policy's completion; 0 where no policy wrote the suggestion */
} kgrpo_reward_request;

typedef struct kgrpo_reward kgrpo_reward; /* an instance; the plugin's own type */

typedef struct kgrpo_reward_interface {
  uint32_t struct_size;

  /* JSON Schema (draft 7) of the options, with a title, a default and a description for each. Static. [any thread] */
  kgrpo_str (*options_schema)(void);

  /* Makes an instance. `options` is JSON that satisfies the schema, defaults filled in. [main thread] */
  kgrpo_error* (*create)(const kgrpo_host* host, kgrpo_str options, kgrpo_reward** out);
  void (*destroy)(kgrpo_reward* self); /* NULL is allowed. [main thread] */

  /* Scores one round. *score must be finite: anything else is an error of the plugin. A round that cannot be scored
   * fairly (a time too uncertain, a metric that was not measured) is answered by KGRPO_ERROR_NO_SCORE with the reason.
   * After it, KGRPO_ERROR_NOT_FINITE, KGRPO_ERROR_UNAVAILABLE or KGRPO_ERROR_INTERNAL a run continues without this
   * round, until all scores of three steps in a row failed; any other code ends it at once. The pushed parts ("base",
   * "speedup",
   * ...) should sum to *score. [any thread, blocking] */
  kgrpo_error* (*score)(const kgrpo_reward* self, const kgrpo_reward_request* request, kgrpo_metric_sink parts,
                        double* score);

  /* Scores a round that leaves the current kernel as it is, as if it were new work: the value of doing nothing, for
   * trainers that subtract it. Same request; answer and candidate are ignored and may be NULL. NULL when the reward
   * has no such notion: the host then passes 0. [any thread, blocking] */
  kgrpo_error* (*idle)(const kgrpo_reward* self, const kgrpo_reward_request* request, double* score);

  /* The table of a further interface that this instance offers; NULL for an id that it does not offer. Static. NULL for
   * a reward without any. [any thread] */
  const void* (*get_extension)(const kgrpo_reward* self, kgrpo_str id);
} kgrpo_reward_interface;

#define KGRPO_REWARD_INTERFACE_SIZE_1 KGRPO_SIZEOF_THROUGH(kgrpo_reward_interface, get_extension)
#endif
