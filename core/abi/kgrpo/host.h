/* SPDX-License-Identifier: Apache-2.0 */
/* kgrpo/host.h - what the host offers to plugins, "kgrpo.host/1".
 *
 * Every create() receives one kgrpo_host, made for that instance: log lines carry its name, and its folders are its
 * own. A plugin looks up what it needs:
 *
 *   const kgrpo_host_interface* api = host->get_interface(host->context, KGRPO_LITERAL(KGRPO_HOST_INTERFACE));
 *   api->log(host->context, KGRPO_LOG_INFO, KGRPO_LITERAL("ready"));
 *
 * All functions may be called from any thread, also from threads that the plugin started.
 */
#ifndef KGRPO_HOST_H
#define KGRPO_HOST_H
#include "abi.h" /* kgrpo_str, kgrpo_error */

#define KGRPO_HOST_INTERFACE "kgrpo.host/1"

typedef enum kgrpo_log_level {
  KGRPO_LOG_DEBUG = 0,
  KGRPO_LOG_INFO = 1,
  KGRPO_LOG_WARNING = 2,
  KGRPO_LOG_ERROR = 3
} kgrpo_log_level;

/* How a metric's values are written. */
typedef enum kgrpo_metric_kind {
  KGRPO_METRIC_NUMBER = 0,   /* four digits, then the unit: "1755 MHz" */
  KGRPO_METRIC_QUANTITY = 1, /* with a decimal prefix: "3.35 TB/s" for 3.35e12 of unit "B/s" */
  KGRPO_METRIC_SECONDS = 2,  /* "12.3 us" */
  KGRPO_METRIC_FRACTION = 3, /* "46%" */
  KGRPO_METRIC_FLAG = 4,     /* "yes", "no" */
  KGRPO_METRIC_DOLLARS = 5,  /* "$0.0123" */
  KGRPO_METRIC_RUN_TIME = 6  /* seconds of an evaluation's own run time: "12.3 us (46%)" */
} kgrpo_metric_kind;

typedef enum kgrpo_metric_direction {
  KGRPO_METRIC_NEUTRAL = 0,
  KGRPO_METRIC_HIGHER_IS_BETTER = 1,
  KGRPO_METRIC_LOWER_IS_BETTER = 2
} kgrpo_metric_direction;

/* How the points of one step become that step's value. */
typedef enum kgrpo_metric_combination {
  KGRPO_METRIC_MEAN = 0,
  KGRPO_METRIC_SUM = 1,
  KGRPO_METRIC_MAXIMUM = 2 /* also for totals of the run so far, whose latest point is the greatest */
} kgrpo_metric_combination;

/* Description of a metric, declared before its first value. */
typedef struct kgrpo_metric_declaration {
  uint32_t struct_size;
  uint32_t kind;        /* a kgrpo_metric_kind */
  kgrpo_str name;       /* "registers". A name that ends in '/' or '.' declares all that begin with it: "seconds/" */
  kgrpo_str label;      /* for people: "registers a thread"; of a family: what precedes the rest of the name */
  kgrpo_str unit;       /* "B", "B/s", "FLOP/s", "MHz"; empty for a plain number */
  kgrpo_str group;      /* the heading it is listed under: "Machine code"; empty: not listed */
  uint32_t direction;   /* a kgrpo_metric_direction */
  uint32_t combination; /* a kgrpo_metric_combination */
} kgrpo_metric_declaration;

#define KGRPO_METRIC_DECLARATION_SIZE_1 KGRPO_SIZEOF_THROUGH(kgrpo_metric_declaration, combination)

/* Receives declarations; valid during the call. Frozen. */
typedef struct kgrpo_metric_declaration_sink {
  void* context;
  void (*put)(void* context, const kgrpo_metric_declaration* declaration);
} kgrpo_metric_declaration_sink;

typedef struct kgrpo_host_interface {
  uint32_t struct_size;

  /* An error with a copy of `message`, which its receiver releases. Never NULL. */
  kgrpo_error* (*make_error)(void* context, uint32_t code, kgrpo_str message);

  /* Writes one line to the console and the run's log. Text in kernels, prompts or compiler output is data: quote it. */
  void (*log)(void* context, uint32_t level, kgrpo_str message);

  /* Declares a metric that this instance measures: points of a step (add_metric), metrics of an evaluation or of a
   * trainer. Groups and metrics are listed in the order of declaration. Declaring a name again replaces its
   * declaration. An undeclared metric is listed last, under its own name. */
  kgrpo_error* (*declare_metric)(void* context, const kgrpo_metric_declaration* declaration);

  /* Pushes what all instances have declared so far, in that order: for plugins that show metrics of others. */
  void (*list_metrics)(void* context, kgrpo_metric_declaration_sink sink);

  /* Adds a point to a metric of the current step ("coder/latency"). Points of a step are combined as declared. */
  void (*add_metric)(void* context, kgrpo_str name, double value);

  /* Nonzero once the user asked to stop. Long calls poll it and return KGRPO_ERROR_CANCELLED soon after. */
  int32_t (*cancelled)(void* context);

  /* Asks the host to stop as if the user had: the step under way is recorded, and a checkpoint is written. `reason` is
   * shown. */
  void (*request_stop)(void* context, kgrpo_str reason);

  /* A folder for files that belong to this run, and one for what is worth keeping between runs (caches, compiled
   * references). Both exist, are writable and are absolute. The text lives as long as the host. */
  kgrpo_str (*artifact_directory)(void* context);
  kgrpo_str (*cache_directory)(void* context);

  /* Exclusive use of a device ("cuda:0", "cpu"; "cuda" is "cuda:0"), so that timing is never disturbed by our own work.
   * Every user of a device takes its lock, for at most a fraction of a second where the work can be split, and releases
   * it when the device is idle again. Other processes of the same user are kept off a GPU too, whatever number they
   * know it by. lock_device blocks; waiters are served in order; nested locking of the same device by one thread is an
   * error of the caller. The thread that locked a device unlocks it. Call back into the host without holding a lock:
   * what the callback leads to may want the device. */
  kgrpo_error* (*lock_device)(void* context, kgrpo_str device);
  void (*unlock_device)(void* context, kgrpo_str device);

  /* 64 random bits: a pure function of (the run's seed, this instance's name, key, index), so that results do not
   * depend on the order of calls. `key` is `key_size` numbers that say what is drawn: (step, trajectory, round). */
  uint64_t (*random)(void* context, const uint64_t* key, size_t key_size, uint64_t index);

  /* The host's version, "0.1.0", and the folder that holds the plugin's library, absolute; empty for a table within the
   * host's own process (tests). The text lives as long as the host. */
  kgrpo_str (*host_version)(void* context);
  kgrpo_str (*plugin_directory)(void* context);
} kgrpo_host_interface;

#define KGRPO_HOST_INTERFACE_SIZE_1 KGRPO_SIZEOF_THROUGH(kgrpo_host_interface, plugin_directory)
#endif
