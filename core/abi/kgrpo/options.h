/* SPDX-License-Identifier: Apache-2.0 */
/* kgrpo/options.h - reads options without a JSON library: "kgrpo.options/1", which the host offers to every plugin.
 *
 *   const kgrpo_options_interface* options =
 *       host->get_interface(host->context, KGRPO_LITERAL(KGRPO_OPTIONS_INTERFACE));
 */
#ifndef KGRPO_OPTIONS_H
#define KGRPO_OPTIONS_H
#include "abi.h" /* kgrpo_str, kgrpo_error, kgrpo_text_sink */

#define KGRPO_OPTIONS_INTERFACE "kgrpo.options/1"

/* `context` is the kgrpo_host's; `options` the JSON text that create() received; `path` a key, or keys and array
 * indices joined by dots: "weight", "weights.0". A value of another type is KGRPO_ERROR_INVALID; a path that is absent
 * is KGRPO_ERROR_NOT_FOUND. Each call parses the text: read options in create(). [any thread] */
typedef struct kgrpo_options_interface {
  uint32_t struct_size;
  kgrpo_error* (*number)(void* context, kgrpo_str options, kgrpo_str path, double* out);
  kgrpo_error* (*integer)(void* context, kgrpo_str options, kgrpo_str path, int64_t* out);
  kgrpo_error* (*flag)(void* context, kgrpo_str options, kgrpo_str path, int32_t* out);
  kgrpo_error* (*text)(void* context, kgrpo_str options, kgrpo_str path, kgrpo_text_sink out);
  kgrpo_error* (*count)(void* context, kgrpo_str options, kgrpo_str path, size_t* out); /* of elements or members */
} kgrpo_options_interface;
#endif
