/* SPDX-License-Identifier: Apache-2.0 */
/* kgrpo/problem.h - a problem in words: what evaluators say of one that is open, and coders read. */
#ifndef KGRPO_PROBLEM_H
#define KGRPO_PROBLEM_H
#include "abi.h" /* kgrpo_str */

/* Description of a problem. Lives as long as the problem is open. */
typedef struct kgrpo_problem_info {
  uint32_t struct_size;
  kgrpo_str name;          /* unique: the folder's name */
  kgrpo_str title;         /* "Vector addition" */
  kgrpo_str family;        /* "elementwise" */
  kgrpo_str split;         /* "train" or "heldout": what its author meant it for; the pipeline decides */
  kgrpo_str task;          /* the task text for prompts: what to compute, signature, visible sizes */
  kgrpo_str signature;     /* the C declaration that a candidate must define */
  kgrpo_str source;        /* the reference kernel: where optimisation starts */
  const kgrpo_str* traits; /* words for the kernel's nature: "memory-bound" */
  size_t trait_count;
  kgrpo_str refused;      /* why it cannot be judged; empty: it can */
  const kgrpo_str* flags; /* caveats of its evaluations: "zeros pass KernelBench's tolerance" */
  size_t flag_count;
} kgrpo_problem_info;

#define KGRPO_PROBLEM_INFO_SIZE_1 KGRPO_SIZEOF_THROUGH(kgrpo_problem_info, flag_count)
#endif
