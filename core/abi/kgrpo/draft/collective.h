/* SPDX-License-Identifier: Apache-2.0 */
/* kgrpo/draft/collective.h - several processes that train one policy: "kgrpo.draft.collective/1", which the host offers
 * to plugins (kgrpo_host.get_interface), and "kgrpo.draft.transport/1", which a plugin implements to carry it. A draft:
 * it may change with any minor version.
 *
 * The processes are ranks 0 to size - 1 of one run, each with a copy of the policy. A plugin that finds no
 * collective runs in a single process. With one, every rank must make the same calls, in the same order, with
 * tensors of the same type and size. So every value that decides about a call must be the same on all ranks.
 *
 * A rank that dies or stops answering ends the run on all of them; a call that waited for it returns
 * KGRPO_ERROR_UNAVAILABLE.
 */
#ifndef KGRPO_COLLECTIVE_H
#define KGRPO_COLLECTIVE_H
#include "../abi.h"    /* kgrpo_str, kgrpo_error, kgrpo_host, kgrpo_text_sink */
#include "../tensor.h" /* kgrpo_tensor */

#define KGRPO_COLLECTIVE_INTERFACE "kgrpo.draft.collective/1"
#define KGRPO_TRANSPORT_INTERFACE "kgrpo.draft.transport/1"

/* The rank of this process. */
typedef struct kgrpo_rank_info {
  uint32_t struct_size;
  uint32_t rank;       /* below size */
  uint32_t size;       /* number of ranks in the run, at least 2 */
  uint32_t local_rank; /* from 0 among the ranks on this machine: selects this rank's GPU */
  uint32_t local_size; /* number of ranks on this machine */
} kgrpo_rank_info;

typedef enum kgrpo_reduction {
  KGRPO_REDUCTION_SUM = 0,
  KGRPO_REDUCTION_MIN = 1,
  KGRPO_REDUCTION_MAX = 2
} kgrpo_reduction;

/* Tensors are compact: of float32 or float64 where values are added or compared, of any type where they are moved.
 * Calls come from one thread, and block unless they say otherwise. A tensor on a GPU has its values when a blocking
 * call begins (the caller has waited for its stream), and when it returns.
 *
 * Some functions work on slices: rank r's slice of n elements is those from n * r / size to n * (r + 1) / size, rounded
 * down. `context` is the first argument of all functions of the kgrpo_host. */
typedef struct kgrpo_collective_interface {
  uint32_t struct_size;

  /* The rank of this process. The host owns it; static. [any thread] */
  const kgrpo_rank_info* (*info)(void* context);

  /* Every element becomes the sum, least or greatest of all ranks' elements: the same bits on each rank. */
  kgrpo_error* (*all_reduce)(void* context, const kgrpo_tensor* values, uint32_t reduction);

  /* The caller's slice becomes the sum of all ranks'; the content of the rest is unspecified. float32. */
  kgrpo_error* (*reduce_scatter)(void* context, const kgrpo_tensor* values);

  /* Every rank receives each slice from the rank that owns it. */
  kgrpo_error* (*all_gather)(void* context, const kgrpo_tensor* values);

  /* Every element becomes that of rank `root`. */
  kgrpo_error* (*broadcast)(void* context, const kgrpo_tensor* values, uint32_t root);

  /* Begins reduce_scatter for the elements from `begin` to `end` alone, and returns: a part of the gradients is
   * reduced while the backward pass computes the rest. Slices are those of the whole of `values`. On a GPU the
   * values are read after all work that is queued on `stream` by now (a cudaStream_t; NULL: the default stream). The
   * caller must not read or write these elements until finish_reductions returns; the kgrpo_tensor itself may be
   * freed earlier. Reductions run in the order of the calls. NULL, like finish_reductions, for a transport that only
   * blocks. */
  kgrpo_error* (*begin_reduce_scatter)(void* context, const kgrpo_tensor* values, size_t begin, size_t end,
                                       void* stream);

  /* Waits for every reduction that was begun, even if one fails: none is in progress afterwards. */
  kgrpo_error* (*finish_reductions)(void* context);
} kgrpo_collective_interface;

#define KGRPO_COLLECTIVE_INTERFACE_SIZE_1 KGRPO_SIZEOF_THROUGH(kgrpo_collective_interface, finish_reductions)

typedef struct kgrpo_transport kgrpo_transport; /* a connection to the other ranks; the plugin's own type */

/* Implements the collective for the host. Not chosen in a pipeline file: the host loads it if several ranks were
 * started. */
typedef struct kgrpo_transport_interface {
  uint32_t struct_size;

  /* JSON Schema (draft 7) of the options: rank, size, local_rank, local_size; address and port of the rendezvous;
   * hosted, true if the rendezvous exists already (torchrun's), else rank 0 opens it; run, a name that is unique at
   * that address; seconds to wait for the others. Static. [any thread] */
  kgrpo_str (*options_schema)(void);

  /* Connects to the other ranks and returns once all are there. [main thread] */
  kgrpo_error* (*create)(const kgrpo_host* host, kgrpo_str options, kgrpo_transport** out);
  void (*destroy)(kgrpo_transport* self); /* NULL is allowed. [main thread] */

  /* The functions of kgrpo_collective_interface, with the transport as context. */
  const kgrpo_collective_interface* collective;

  /* A key-value store that every rank can read at any time; ranks use it as a heartbeat. Both functions return
   * within a few seconds, with KGRPO_ERROR_UNAVAILABLE if the rendezvous is gone. get returns KGRPO_ERROR_NOT_FOUND
   * until the key was put. [any thread] */
  kgrpo_error* (*put)(kgrpo_transport* self, kgrpo_str key, kgrpo_str value);
  kgrpo_error* (*get)(kgrpo_transport* self, kgrpo_str key, kgrpo_text_sink out);
} kgrpo_transport_interface;

#define KGRPO_TRANSPORT_INTERFACE_SIZE_1 KGRPO_SIZEOF_THROUGH(kgrpo_transport_interface, get)
#endif
