/* SPDX-License-Identifier: Apache-2.0 */
/* kgrpo/trainer.h - the trainer interface, "kgrpo.trainer/1".
 *
 * A trainer turns samples into a better policy. It owns the loss, the advantages, the optimiser and its schedule; of
 * the model it needs log-probabilities, their backward and the parameter tensors, all through kgrpo.policy/1. Called by
 * the host's loop, once a step.
 */
#ifndef KGRPO_TRAINER_H
#define KGRPO_TRAINER_H
#include "abi.h"    /* kgrpo_str, kgrpo_error, kgrpo_host, kgrpo_metric */
#include "policy.h" /* kgrpo_policy_interface, kgrpo_policy */

#define KGRPO_TRAINER_INTERFACE "kgrpo.trainer/1"

/* Destination and source of the bytes of a plugin's state in a checkpoint. Frozen.
 * write returns NULL or the failure (a full disk); read fills up to `size` bytes and sets *got, 0 at the end. */
typedef struct kgrpo_writer {
  void* context;
  kgrpo_error* (*write)(void* context, const void* data, size_t size);
} kgrpo_writer;

typedef struct kgrpo_reader {
  void* context;
  kgrpo_error* (*read)(void* context, void* data, size_t size, size_t* got);
} kgrpo_reader;

/* One round of one trajectory. The host's, valid during update. */
typedef struct kgrpo_sample {
  uint32_t struct_size;
  const int32_t* prompt_ids;
  size_t prompt_size;
  const int32_t* completion_ids;
  const float* logprobs; /* behaviour log-probabilities of completion_ids; NULL if they were not sampled */
  size_t completion_size;
  double reward;
  double idle_reward;  /* what the round would have paid for leaving the kernel as it was; see
                          kgrpo_reward_interface.idle */
  uint64_t trajectory; /* unique within the step */
  uint32_t round;      /* from 0; the rounds of a trajectory are all present unless some were dropped: a return over
                          them then lacks rewards, for no fault of the earlier rounds */
  uint32_t rounds;     /* of the trajectory, as planned */
  uint32_t problem;    /* the same number for the same problem within the step */
  int32_t truncated;   /* nonzero: the completion ended for its length */
} kgrpo_sample;

/* The data that a trainer learns from. */
typedef enum kgrpo_trainer_source {
  KGRPO_TRAINER_ROLLOUTS = 0,      /* each update gets the samples of a fresh rollout of the current policy */
  KGRPO_TRAINER_OWN_DATA = 1,      /* it reads its own data: update gets no samples */
  KGRPO_TRAINER_DEMONSTRATIONS = 2 /* each update gets a batch of samples whose completions are to be imitated */
} kgrpo_trainer_source;

/* The plan of a stage, given to a trainer before its first update. */
typedef struct kgrpo_trainer_plan {
  uint32_t struct_size;
  uint64_t steps;               /* number of updates in this stage: the length of its schedules */
  double temperature;           /* the rollout's sampling temperature */
  uint32_t max_completion_size; /* the rollout's max_new_tokens */
  /* What an update's samples come from; 0 where it is not known. */
  uint64_t trajectories;             /* of an update */
  uint64_t trajectories_per_problem; /* so many trajectories in a row share a problem that was drawn */
  uint64_t problems;                 /* that are drawn from: none is drawn twice for an update while others are left */
  uint64_t rounds;                   /* of a trajectory, at most */
  uint32_t max_staleness;            /* updates that the policy which sampled may lack when its samples arrive */
  int32_t cuts_support;              /* nonzero: the rollout's top_k, top_p or min_p leave tokens out */
} kgrpo_trainer_plan;

/* A trainer's return and advantage for one sample. Pushed during update, at most once a sample. */
typedef struct kgrpo_sample_outcome {
  uint32_t struct_size;
  size_t sample;    /* index into the samples of the update */
  double returned;  /* the return: its reward and those of the rounds that follow, discounted */
  double advantage; /* the weight of its log-probabilities in the loss */
} kgrpo_sample_outcome;

#define KGRPO_SAMPLE_OUTCOME_SIZE_1 KGRPO_SIZEOF_THROUGH(kgrpo_sample_outcome, advantage)

/* Receives the figures of an update. `step` receives those of the whole update; `optimizer_step`, which may be NULL,
 * one row ({loss, kl, grad_norm, learning_rate}) for each optimiser step, in order; `sample`, which may be NULL, the
 * outcome of each sample, for the run's records. Valid during the call. Frozen. */
typedef struct kgrpo_update_sink {
  void* context;
  void (*step)(void* context, kgrpo_metric metric);
  void (*optimizer_step)(void* context, const kgrpo_metric* row, size_t count);
  void (*sample)(void* context, const kgrpo_sample_outcome* outcome);
} kgrpo_update_sink;

typedef struct kgrpo_trainer kgrpo_trainer; /* an instance; the plugin's own type */

typedef struct kgrpo_trainer_interface {
  uint32_t struct_size;

  /* JSON Schema (draft 7) of the options, with a title, a default and a description for each. "x-resume": true marks an
   * option that a resumed run may change. Static. [any thread] */
  kgrpo_str (*options_schema)(void);

  /* Makes an instance. `options` is JSON that satisfies the schema, defaults filled in. [main thread] */
  kgrpo_error* (*create)(const kgrpo_host* host, kgrpo_str options, kgrpo_trainer** out);
  void (*destroy)(kgrpo_trainer* self); /* NULL is allowed. [main thread] */

  /* A kgrpo_trainer_source. [any thread] */
  uint32_t (*source)(const kgrpo_trainer* self);

  /* Nonzero: the trainer compares with the reference copy; the host freezes it when the stage starts. [any thread] */
  int32_t (*needs_reference)(const kgrpo_trainer* self);

  /* Begins a stage with the policy to train, which outlives the trainer. Called once, before update and load_state.
   * [one thread] */
  kgrpo_error* (*begin)(kgrpo_trainer* self, const kgrpo_policy_interface* api, kgrpo_policy* policy,
                        const kgrpo_trainer_plan* plan);

  /* One update. The order of the samples is reproducible. On KGRPO_ERROR_NOT_FINITE the policy is as good as it was;
   * the host stops with a checkpoint. Messages on a sample begin "sample INDEX: ". [one thread] */
  kgrpo_error* (*update)(kgrpo_trainer* self, const kgrpo_sample* const* samples, size_t count, kgrpo_update_sink sink);

  /* Optimiser state and counters, so that a resumed run goes on bit for bit. load_state accepts a state that was saved
   * under other values of options marked "x-resume", or with fewer steps in the plan. [one thread] */
  kgrpo_error* (*save_state)(kgrpo_trainer* self, kgrpo_writer writer);
  kgrpo_error* (*load_state)(kgrpo_trainer* self, kgrpo_reader reader);

  /* Checks the options together with a stage's plan, before the first stage of a run begins and for `kgrpo-host
   * check`: returns KGRPO_ERROR_INVALID if nothing could be learned from its samples, and logs a warning for an option
   * without effect. In the message, a line that begins "options.NAME: " is about that option. NULL for a trainer
   * without such checks. [main thread] */
  kgrpo_error* (*check_plan)(const kgrpo_trainer* self, const kgrpo_trainer_plan* plan);

  /* The table of a further interface that this instance offers; NULL for an id that it does not offer. Static. NULL for
   * a trainer without any. [any thread] */
  const void* (*get_extension)(const kgrpo_trainer* self, kgrpo_str id);
} kgrpo_trainer_interface;

#define KGRPO_TRAINER_INTERFACE_SIZE_1 KGRPO_SIZEOF_THROUGH(kgrpo_trainer_interface, get_extension)
#endif
