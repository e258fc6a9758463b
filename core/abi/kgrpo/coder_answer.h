/* SPDX-License-Identifier: Apache-2.0 */
/* kgrpo/coder_answer.h - what a coder made of a suggestion: what coders deliver, and rewards and observers read. */
#ifndef KGRPO_CODER_ANSWER_H
#define KGRPO_CODER_ANSWER_H
#include "abi.h" /* kgrpo_str */

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
                                     which the reward scores, not of the coder */
} kgrpo_coder_outcome;

/* An answer. Owned by the plugin and valid during the callback only. */
typedef struct kgrpo_coder_answer {
  uint32_t struct_size;
  uint32_t outcome;  /* a kgrpo_coder_outcome */
  kgrpo_str source;  /* the new kernel, a whole translation unit; empty unless the outcome is KGRPO_CODER_OK */
  kgrpo_str summary; /* what was done, in few words: "shared-memory tiling, tile 32"; may be empty */
  kgrpo_str message; /* why not, for people and prompts. With KGRPO_CODER_OK: empty, or a sign that parts of the kernel
                        are left out; if it turns out not to be correct, the host counts KGRPO_CODER_NO_CODE */
  kgrpo_str text;    /* what a model answered, word for word, for a person who looks into it; may be empty */
  uint64_t prompt_tokens;
  uint64_t completion_tokens;
  double cost;    /* US dollars paid for this answer; what else was paid: kgrpo_coder_interface.spending */
  double seconds; /* from request to answer, retries included */
  uint32_t attempts;
  int32_t reused; /* nonzero: it came from a recording or a cache, or was shared with an identical request: no call was
                     made for this one, and nothing paid */
  int32_t estimated; /* nonzero: tokens or cost are estimates */
} kgrpo_coder_answer;

#define KGRPO_CODER_ANSWER_SIZE_1 KGRPO_SIZEOF_THROUGH(kgrpo_coder_answer, estimated)
#endif
