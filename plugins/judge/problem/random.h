// Counter-based random bits: the value of (key, index) depends on nothing else, so that inputs are the same on every
// machine, in any order and in any thread. Used by input generation and to derive keys.
#pragma once

#include <cstdint>
#include <string_view>

// Marks functions that the GPU evaluator's kernels call too.
#ifdef __CUDACC__
#define KGRPO_HOST_DEVICE __host__ __device__
#else
#define KGRPO_HOST_DEVICE
#endif

namespace kgrpo::evaluator {

// The finaliser of SplitMix64 (Steele, Lea, Flood 2014): a bijection of 64 bits in which every input bit matters.
KGRPO_HOST_DEVICE inline uint64_t Mix(uint64_t bits) {
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9u;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebu;
  return bits ^ (bits >> 31);
}

// Element `index` of the stream `key`.
KGRPO_HOST_DEVICE inline uint64_t RandomBits(uint64_t key, uint64_t index) {
  return Mix(key + (index + 1) * 0x9e3779b97f4a7c15u);
}

// The key of a stream within the stream `key`.
inline uint64_t SubKey(uint64_t key, uint64_t index) { return Mix(RandomBits(key, index) ^ 0xd1b54a32d192ed03u); }

// A key from text (a hexadecimal digest, a name): FNV-1a, mixed.
inline uint64_t KeyFromText(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (unsigned char c : text) hash = (hash ^ c) * 0x100000001b3u;
  return Mix(hash);
}

// Uniform in [0, 1), 53 bits.
KGRPO_HOST_DEVICE inline double UniformReal(uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }

// Uniform in [0, bound), bound > 0; the bias of bound / 2^64 is below notice.
inline uint64_t UniformBelow(uint64_t bits, uint64_t bound) {
  __extension__ typedef unsigned __int128 Wide;
  return static_cast<uint64_t>((static_cast<Wide>(bits) * bound) >> 64);
}

}  // namespace kgrpo::evaluator
