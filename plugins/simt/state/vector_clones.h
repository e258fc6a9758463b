// Functions that run over a warp's lanes outside of the arithmetic handlers: compiled for the machine's vector units
// and for any machine, chosen when the program starts.
#pragma once

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define KGRPO_VECTOR_CLONES __attribute__((target_clones("avx2", "default")))
#else
#define KGRPO_VECTOR_CLONES
#endif
