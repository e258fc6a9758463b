/* kgrpo/collective.h - several processes that train one policy: "kgrpo.collective/1", which the host offers to plugins
 * (kgrpo_host.get_interface), and "kgrpo.transport/1", which the plugin offers that carries it.
 *
 * The processes are ranks 0 to size - 1 of one run, each with a copy of the policy. A plugin that finds no collective
 * is alone. With one, it has the others' help and a duty: every rank makes the same calls, in the same order, with
 * tensors of the same type and size. So whatever decides about a call must be the same on all ranks.
 *
 * A rank that dies or stops answering ends the run on all of them; a call that waited for it returns
 * KGRPO_ERROR_UNAVAILABLE.
 */
#ifndef KGRPO_COLLECTIVE_H
#define KGRPO_COLLECTIVE_H
#include "abi.h"    /* kgrpo_str, kgrpo_error, kgrpo_text_sink */
#include "host.h"   /* kgrpo_host */
#include "tensor.h" /* kgrpo_tensor */

#ifdef __cplusplus
extern "C" {
#endif

#define KGRPO_COLLECTIVE_INTERFACE "kgrpo.collective/1"
#define KGRPO_TRANSPORT_INTERFACE "kgrpo.transport/1"

/* The rank of this process. */
typedef struct kgrpo_rank_info {
  uint32_t struct_size;
  uint32_t rank;       /* below size */
  uint32_t size;       /* of the run, at least 2 */
  uint32_t local_rank; /* among the ranks on this machine: which of its GPUs is this one's */
  uint32_t local_size; /* how many of them share this machine */
} kgrpo_rank_info;

#define KGRPO_RANK_INFO_SIZE_1 KGRPO_SIZEOF_THROUGH(kgrpo_rank_info, local_size)

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

  /* Of the host's; static. [any thread] */
  const kgrpo_rank_info* (*info)(void* context);

  /* Every element becomes the sum, least or greatest of all ranks' elements: the same bits on each rank. */
  kgrpo_error* (*all_reduce)(void* context, const kgrpo_tensor* values, uint32_t reduction);

  /* The caller's slice becomes the sum of all ranks'; what becomes of the rest is unspecified. float32. */
  kgrpo_error* (*reduce_scatter)(void* context, const kgrpo_tensor* values);

  /* Every slice becomes what the rank that it belongs to holds there. */
  kgrpo_error* (*all_gather)(void* context, const kgrpo_tensor* values);

  /* Every element becomes that of rank `root`. */
  kgrpo_error* (*broadcast)(void* context, const kgrpo_tensor* values, uint32_t root);

  /* Begins reduce_scatter for the elements from `begin` to `end` alone, and returns: a part of the gradients is reduced
   * while the backward pass computes the rest. Slices are those of the whole of `values`. On a GPU the values are
   * read after all work that is queued on `stream` by now (a cudaStream_t; NULL: the default stream). Nobody reads or
   * writes the elements until finish_reductions returns; the kgrpo_tensor itself may go. Reductions run in the order
   * of the calls. NULL, as is the next, for a transport that only blocks. Added in revision 1.1. */
  kgrpo_error* (*begin_reduce_scatter)(void* context, const kgrpo_tensor* values, size_t begin, size_t end,
                                       void* stream);

  /* Waits for every reduction that was begun. None is under way afterwards, also where one failed. Added in revision
   * 1.1. */
  kgrpo_error* (*finish_reductions)(void* context);
} kgrpo_collective_interface;

/* The size of the struct as released in revision 1.0. Members are appended below, never moved: this never changes. */
#define KGRPO_COLLECTIVE_INTERFACE_SIZE_1 KGRPO_SIZEOF_THROUGH(kgrpo_collective_interface, broadcast)

typedef struct kgrpo_transport kgrpo_transport; /* a connection to the other ranks; the plugin's own type */

/* Implements the collective for the host. Not chosen in a pipeline file: the host loads it where several ranks
 * were started. */
typedef struct kgrpo_transport_interface {
  uint32_t struct_size;

  /* JSON Schema (draft 7) of the options: rank, size, local_rank, local_size; address and port of the rendezvous;
   * hosted, whether it is there already (torchrun's) or rank 0 opens it; run, a name that no other run at that address
   * has; seconds to wait for the others. Static. [any thread] */
  kgrpo_str (*options_schema)(void);

  /* Meets the other ranks: returns once all are there. [main thread] */
  kgrpo_error* (*create)(const kgrpo_host* host, kgrpo_str options, kgrpo_transport** out);
  void (*destroy)(kgrpo_transport* self); /* NULL is allowed. [main thread] */

  /* As kgrpo_collective_interface, with the transport as context. */
  const kgrpo_collective_interface* collective;

  /* A word that any rank can read at any time: how ranks say that they live. Both return within a few seconds, with
   * KGRPO_ERROR_UNAVAILABLE where the rendezvous is gone; get is KGRPO_ERROR_NOT_FOUND until the key was put.
   * [any thread] */
  kgrpo_error* (*put)(kgrpo_transport* self, kgrpo_str key, kgrpo_str value);
  kgrpo_error* (*get)(kgrpo_transport* self, kgrpo_str key, kgrpo_text_sink out);
} kgrpo_transport_interface;

#define KGRPO_TRANSPORT_INTERFACE_SIZE_1 KGRPO_SIZEOF_THROUGH(kgrpo_transport_interface, get)

#ifdef __cplusplus
}
#endif
#endif
