/* SPDX-License-Identifier: Apache-2.0 */
/* kgrpo/abi.h - the types that every header of the plugin ABI uses: strings, errors, sinks, struct sizes, and the one
 * exported function of a plugin.
 *
 * Included by each interface header (policy.h, coder.h, ...). Plain C11, also valid C++17.
 *
 * The rules of this ABI, which every header follows:
 *  - A struct that crosses begins with struct_size; the side that fills it sets the size it was compiled with. Members
 *    are only ever appended, behind the padding of released versions, which struct_size counts too. A reader tests
 *    KGRPO_HAS_MEMBER before it reads a member that was added after 1.0. docs/plugins.md lists which change raises
 *    which number.
 *    Small value types are exceptions, frozen for ever: kgrpo_str and those whose comment says "frozen".
 *  - An array of growable structs crosses as an array of pointers: the two sides may have compiled different sizes, so
 *    such structs must not be indexed in place. Arrays of frozen types and of plain numbers are contiguous.
 *  - A call that can fail returns kgrpo_error*: NULL is success; otherwise outputs are untouched and the caller
 *    releases the error. No C++ exception crosses in either direction.
 *  - The side that allocates frees. Lists of results are pushed into a sink, a callback of the receiver, and are valid
 *    during that callback only.
 *  - Each function states who may call it: [main thread], [one thread] (any, but one at a time), [any thread]; and
 *    [blocking] where it may take long.
 *  - An optional function may be NULL, and says so.
 *  - 64-bit machines whose long and pointers have 64 bits (LP64) only.
 */
#ifndef KGRPO_ABI_H
#define KGRPO_ABI_H

#include <stddef.h> /* size_t, offsetof */
#include <stdint.h> /* uint32_t and its kin */

#ifdef __cplusplus
extern "C" {
#endif

/* A plugin built for another major version is refused by the host. A higher minor version than the host's is accepted:
 * interfaces are found by id, so what the host does not know it does not ask for. */
#define KGRPO_ABI_MAJOR 1
#define KGRPO_ABI_MINOR 0

typedef char kgrpo_requires_lp64[sizeof(long) == 8 && sizeof(void*) == 8 ? 1 : -1];

/* The size of a struct up to and including a member: how the size of each released revision is pinned. */
#define KGRPO_SIZEOF_THROUGH(type, member) (offsetof(type, member) + sizeof(((type*)0)->member))

/* True if the writer of *object knew the member. */
#define KGRPO_HAS_MEMBER(object, type, member) ((object)->struct_size >= KGRPO_SIZEOF_THROUGH(type, member))

/* UTF-8 text of a known length, not NUL-terminated. Borrowed: the lifetime is stated where one appears. An absent
 * string has size 0; its data may then be NULL. Frozen. */
typedef struct kgrpo_str {
  const char* data;
  size_t size;
} kgrpo_str;

/* A string literal as kgrpo_str: KGRPO_LITERAL("weight"). */
#ifdef __cplusplus
#define KGRPO_LITERAL(text) (kgrpo_str{text, sizeof(text) - 1})
#else
#define KGRPO_LITERAL(text) ((kgrpo_str){text, sizeof(text) - 1})
#endif

/* Why a call failed, for programs; the message is for people. Codes of the same meaning keep their number for ever. */
typedef enum kgrpo_error_code {
  KGRPO_ERROR_INVALID = 1,     /* the caller's input is wrong: an option, a file, an argument */
  KGRPO_ERROR_NOT_FOUND = 2,   /* a file, model or problem that was named does not exist */
  KGRPO_ERROR_UNSUPPORTED = 3, /* well formed, but this plugin cannot do it */
  KGRPO_ERROR_UNAVAILABLE = 4, /* a device, tool or service is missing or refuses; trying later may help */
  KGRPO_ERROR_CANCELLED = 5,   /* the host asked to stop */
  KGRPO_ERROR_NOT_FINITE = 6,  /* training produced too many non-finite losses or gradients: stop with a checkpoint; a
                                  reward's score is not finite */
  KGRPO_ERROR_BUDGET = 7,      /* a configured limit of money or time is reached: stop with a checkpoint */
  KGRPO_ERROR_INTERNAL = 8,    /* a fault of the plugin itself */
  KGRPO_ERROR_NO_SCORE = 9     /* an answer of a reward: this round gets no score, and its trajectory ends before it */
} kgrpo_error_code;

/* A failure. Made by either side (a plugin without an allocator of its own uses kgrpo_host_interface.make_error),
 * released by whoever received it: error->release(error). */
typedef struct kgrpo_error {
  uint32_t struct_size;
  uint32_t code;     /* a kgrpo_error_code; treat an unknown one as KGRPO_ERROR_INTERNAL */
  kgrpo_str message; /* what was wrong, where, and what to do; lives as long as the error */
  void (*release)(struct kgrpo_error* self);
} kgrpo_error;

#define KGRPO_ERROR_SIZE_1 KGRPO_SIZEOF_THROUGH(kgrpo_error, release)

/* A named number: a metric, a part of a reward. What it is called, its unit and which direction is better are declared
 * once, by name: kgrpo_host_interface.declare_metric. Frozen. */
typedef struct kgrpo_metric {
  kgrpo_str name;
  double value;
  double low; /* 95% confidence interval of the value; both NaN: not known */
  double high;
} kgrpo_metric;

/* Sinks for metrics and text. Valid only during the call that received it. Frozen. */
typedef struct kgrpo_metric_sink {
  void* context;
  void (*add)(void* context, kgrpo_metric metric);
} kgrpo_metric_sink;

typedef struct kgrpo_text_sink {
  void* context;
  void (*put)(void* context, kgrpo_str text);
} kgrpo_text_sink;

/* The host, as an instance sees it: what create() receives. It outlives the instance. Frozen. */
typedef struct kgrpo_host {
  void* context; /* the host's own; the first argument of each function of its interfaces */

  /* The interface table of an id; NULL when this host does not offer it. "kgrpo.host/1" (host.h) is always there, and
   * so is "kgrpo.options/1" (options.h). */
  const void* (*get_interface)(void* context, kgrpo_str id);
} kgrpo_host;

/* Description of a plugin: the bootstrap. Frozen for ever, so that any host can read enough of any plugin to refuse it
 * with a clear message; struct_size is checked and never grows. Everything here is static: it outlives every use. */
typedef struct kgrpo_plugin {
  uint32_t struct_size;
  uint32_t abi_major; /* KGRPO_ABI_MAJOR of the headers it was built with */
  uint32_t abi_minor;
  kgrpo_str name;    /* as pipelines name it: "reward_speedup" */
  kgrpo_str version; /* of the plugin: "0.1.0" */
  kgrpo_str summary; /* one line for `kgrpo-host plugins list` */

  /* The interface table of an id such as "kgrpo.reward/1", a `const kgrpo_reward_interface*` in that case; NULL when
   * the plugin does not offer it. Static. Fast, and free of side effects: listing plugins calls it. [any thread] */
  const void* (*get_interface)(kgrpo_str id);
} kgrpo_plugin;

#define KGRPO_PLUGIN_SIZE_1 KGRPO_SIZEOF_THROUGH(kgrpo_plugin, get_interface)

/* The one symbol that a plugin exports; declared here, so that it is exported under -fvisibility=hidden too. Must not
 * fail and must have no side effects. [any thread] */
#define KGRPO_EXPORT __attribute__((visibility("default")))
#define KGRPO_PLUGIN_ENTRY "kgrpo_plugin_entry"
typedef const kgrpo_plugin* (*kgrpo_plugin_entry_function)(void);
KGRPO_EXPORT const kgrpo_plugin* kgrpo_plugin_entry(void);

#ifdef __cplusplus
}
#endif
#endif
