/* SPDX-License-Identifier: Apache-2.0 */
/* kgrpo/observer.h - the observer interface, "kgrpo.observer/1".
 *
 * An observer is told what happens in a run and does not change it: it writes metrics, sends a message, or asks for a
 * stop (kgrpo_host_interface.request_stop). A pipeline has any number of them.
 *
 * All functions are called from one thread of the observer's own, off the loop's thread, in this order: begin,
 * which the host waits for; for each step its rounds (those of training, then those of a held-out measurement, by
 * trajectory, then by round), then the step, then its checkpoint, if one was written; end. A step is sent after it
 * is recorded. All steps up to a checkpoint are delivered before the checkpoint is written. A resumed run continues
 * after its last checkpoint (kgrpo_run_info.done) and sends later steps again. An observer's error ends the run as
 * other plugins' errors do; the observer gets no further calls but destroy.
 */
#ifndef KGRPO_OBSERVER_H
#define KGRPO_OBSERVER_H
#include "abi.h"          /* kgrpo_str, kgrpo_error, kgrpo_host, kgrpo_metric */
#include "coder_answer.h" /* kgrpo_coder_answer */
#include "evaluation.h"   /* kgrpo_evaluation */

#define KGRPO_OBSERVER_INTERFACE "kgrpo.observer/1"

/* The run. Everything in the structs below is the host's, valid during the call. */
typedef struct kgrpo_run_info {
  uint32_t struct_size;
  kgrpo_str name;      /* of the pipeline */
  kgrpo_str directory; /* of the run, absolute */
  kgrpo_str pipeline;  /* the resolved pipeline file, YAML */
  uint64_t seed;
  uint64_t steps; /* of all stages */
  uint64_t done;  /* a resumed run continues after this step: discard events of later steps. 0 for a new run */
  int32_t resumed;
} kgrpo_run_info;

/* One round of one trajectory, in training or in held-out episodes. A round that ended its trajectory because the
 * coder, the evaluator or the reward failed is not sent. */
typedef struct kgrpo_round_event {
  uint32_t struct_size;
  int32_t heldout; /* nonzero: of a measurement on held-out problems */
  uint64_t step;
  uint64_t trajectory; /* from 0, within the step */
  uint32_t round;      /* from 0 */
  uint32_t rounds;     /* of the trajectory */
  kgrpo_str problem;
  kgrpo_str suggestion;
  const kgrpo_coder_answer* answer;
  const kgrpo_evaluation* evaluation; /* NULL when the coder wrote no kernel */
  double reward;
  double returned; /* the trainer's return (kgrpo_sample_outcome); NaN if the trainer pushed none */
  double advantage;
} kgrpo_round_event;

/* Figures of one optimiser step: loss, learning rate. Frozen. */
typedef struct kgrpo_metric_row {
  const kgrpo_metric* metrics;
  size_t count;
} kgrpo_metric_row;

/* A step that is recorded. */
typedef struct kgrpo_step_event {
  uint32_t struct_size;
  uint32_t stage; /* from 0 */
  uint64_t step;  /* of the whole run, from 1 */
  kgrpo_str trainer;
  double finished_at; /* seconds since 1970 */
  const kgrpo_metric* metrics;
  size_t metric_count;
  const kgrpo_metric_row* optimizer_steps;
  size_t optimizer_step_count;
} kgrpo_step_event;

/* A checkpoint that was written. */
typedef struct kgrpo_checkpoint_event {
  uint32_t struct_size;
  uint64_t step;
  kgrpo_str directory; /* absolute */
  double seconds;      /* spent on writing it */
  double finished_at;  /* seconds since 1970 */
} kgrpo_checkpoint_event;

typedef struct kgrpo_observer kgrpo_observer; /* an instance; the plugin's own type */

typedef struct kgrpo_observer_interface {
  uint32_t struct_size;

  /* JSON Schema (draft 7) of the options, with a title, a default and a description for each. Static. [any thread] */
  kgrpo_str (*options_schema)(void);

  /* Makes an instance. `options` is JSON that satisfies the schema, defaults filled in. [main thread] */
  kgrpo_error* (*create)(const kgrpo_host* host, kgrpo_str options, kgrpo_observer** out);
  void (*destroy)(kgrpo_observer* self); /* NULL is allowed. [main thread] */

  /* Events. Each function may be NULL. [one thread, blocking] */
  kgrpo_error* (*begin)(kgrpo_observer* self, const kgrpo_run_info* run);
  kgrpo_error* (*round)(kgrpo_observer* self, const kgrpo_round_event* event);
  kgrpo_error* (*step)(kgrpo_observer* self, const kgrpo_step_event* event);
  kgrpo_error* (*checkpoint)(kgrpo_observer* self, const kgrpo_checkpoint_event* event);
  kgrpo_error* (*end)(kgrpo_observer* self, kgrpo_str outcome); /* "finished", "stopped", "failed" */

  /* The table of a further interface that this instance offers; NULL for an id that it does not offer. Static. NULL for
   * an observer without any. [any thread] */
  const void* (*get_extension)(const kgrpo_observer* self, kgrpo_str id);
} kgrpo_observer_interface;

#define KGRPO_OBSERVER_INTERFACE_SIZE_1 KGRPO_SIZEOF_THROUGH(kgrpo_observer_interface, get_extension)
#endif
