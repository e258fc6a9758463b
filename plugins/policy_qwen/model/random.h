// Random numbers that are pure functions of a key: sampling draws from (sequence seed, position), random
// initialisation from (seed, tensor name, index). Nothing depends on the order of calls.
#ifndef KGRPO_PLUGINS_POLICY_QWEN_MODEL_RANDOM_H_
#define KGRPO_PLUGINS_POLICY_QWEN_MODEL_RANDOM_H_

#include <cmath>
#include <cstdint>
#include <numbers>
#include <string_view>

namespace kgrpo::policy {

// SplitMix64's finaliser (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014): a bijection of
// 64-bit words whose output bits all depend on all input bits.
constexpr uint64_t Mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// The index-th word of the stream of `seed`. The seed is mixed first, so that neighbouring seeds' streams do not
// overlap.
constexpr uint64_t RandomBits(uint64_t seed, uint64_t index) {
  constexpr uint64_t kGolden = 0x9e3779b97f4a7c15u;
  return Mix(Mix(seed + kGolden) + (index + 1) * kGolden);
}

// Uniform in [0, 1), 53 bits.
constexpr double RandomUniform(uint64_t seed, uint64_t index) {
  return static_cast<double>(RandomBits(seed, index) >> 11) * 0x1p-53;
}

// Standard normal: Box and Muller's transform of two uniforms of the same index.
inline double RandomNormal(uint64_t seed, uint64_t index) {
  const double radius = std::sqrt(-2.0 * std::log1p(-RandomUniform(seed, 2 * index)));
  return radius * std::cos(2.0 * std::numbers::pi * RandomUniform(seed, 2 * index + 1));
}

// Derives a seed for `name`, such as a tensor: FNV-1a of the name, mixed with the seed.
constexpr uint64_t SeedFor(uint64_t seed, std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return Mix(seed ^ Mix(hash));
}

}  // namespace kgrpo::policy

#endif  // KGRPO_PLUGINS_POLICY_QWEN_MODEL_RANDOM_H_
