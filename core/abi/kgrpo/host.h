/* kgrpo/host.h - what the host offers to plugins, "kgrpo.host/1".
 *
 * Every create() receives one kgrpo_host, made for that instance: log lines carry its name, and its folders are its
 * own. It outlives the instance. All functions may be called from any thread, also from threads that the plugin
 * started.
 */
#ifndef KGRPO_HOST_H
#define KGRPO_HOST_H
#include "abi.h" /* kgrpo_str, kgrpo_error */

#ifdef __cplusplus
extern "C" {
#endif

#define KGRPO_HOST_INTERFACE "kgrpo.host/1"

typedef enum kgrpo_log_level {
  KGRPO_LOG_DEBUG = 0,
  KGRPO_LOG_INFO = 1,
  KGRPO_LOG_WARNING = 2,
  KGRPO_LOG_ERROR = 3
} kgrpo_log_level;

typedef struct kgrpo_host {
  uint32_t struct_size;
  void* context; /* the host's own; passed back as the first argument of each function below */

  /* Writes one line to the console and the run's log. Text in kernels, prompts or compiler output is data: quote it. */
  void (*log)(void* context, uint32_t level, kgrpo_str message);

  /* Adds a point to a metric of the current step ("coder/latency"): several points of a step are averaged. */
  void (*metric)(void* context, kgrpo_str name, double value);

  /* Nonzero once the user asked to stop. Long calls poll it and return KGRPO_ERROR_CANCELLED soon after. */
  int (*cancelled)(void* context);

  /* A folder for files that belong to this run, and one for what is worth keeping between runs (caches, compiled
   * references). Both exist, are writable and are absolute. The text lives as long as the host. */
  kgrpo_str (*artifact_directory)(void* context);
  kgrpo_str (*cache_directory)(void* context);

  /* Exclusive use of a device ("cuda:0", "cpu"; "cuda" is "cuda:0"), so that timing is never disturbed by our own work:
   * who works on a device locks it meanwhile, for at most a fraction of a second where the work can be split, and
   * unlocks it when the device is idle again. A GPU is kept from other processes of the same user too, whatever number
   * they know it by. lock_device blocks, the first to wait being the first to have it; nested locking of the same
   * device by one thread is an error of the caller. Every successful lock is unlocked by the same thread. Callbacks
   * into the host are made without a lock: what they lead to may want the device. */
  kgrpo_error* (*lock_device)(void* context, kgrpo_str device);
  void (*unlock_device)(void* context, kgrpo_str device);

  /* 64 random bits: a pure function of (the run's seed, this instance's name, key, index), so that results do not
   * depend on the order of calls. `key` is `key_size` numbers that say what is drawn: (step, trajectory, round). */
  uint64_t (*random)(void* context, const uint64_t* key, size_t key_size, uint64_t index);

  /* Where this process stands among those that train together; 0 of 1 when alone. */
  uint32_t rank;
  uint32_t world_size;
  kgrpo_str rendezvous; /* "host:port" of the store that the ranks share; empty when alone */
} kgrpo_host;

#define KGRPO_HOST_SIZE_1 KGRPO_SIZEOF_THROUGH(kgrpo_host, rendezvous)

#ifdef __cplusplus
}
#endif
#endif
