// Every random number of a run is a pure function of the seed, a stream's name, a key (step, trajectory, round) and an
// index. So results depend neither on the order of calls nor on threads, and a resumed run draws the same numbers as an
// unbroken one. Used by the loop (loop/), and by plugins through base/services.h.
#ifndef KGRPO_BASE_KEYED_H
#define KGRPO_BASE_KEYED_H

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

namespace kgrpo {

// 64 random bits. Distinct (seed, stream, key, index) give independent bits; keys of different lengths never coincide.
//
// A cascade over Philox4x32-10: starting from the seed, each word of the input is the counter of one block whose first
// half is the key of the next; the index is the last counter. [any thread]
uint64_t Keyed(uint64_t seed, std::string_view stream, std::span<const uint64_t> key, uint64_t index);

inline uint64_t Keyed(uint64_t seed, std::string_view stream, std::initializer_list<uint64_t> key, uint64_t index) {
  return Keyed(seed, stream, std::span<const uint64_t>(key.begin(), key.size()), index);
}

// The numbers of one (seed, stream, key), drawn in order. Cheap to make; copies draw the same numbers.
class KeyedStream {
 public:
  KeyedStream(uint64_t seed, std::string_view stream, std::span<const uint64_t> key);
  KeyedStream(uint64_t seed, std::string_view stream, std::initializer_list<uint64_t> key)
      : KeyedStream(seed, stream, std::span<const uint64_t>(key.begin(), key.size())) {}

  uint64_t Next() { return At(index_++); }
  uint64_t At(uint64_t index) const;  // Keyed(seed, stream, key, index)

  double Uniform();                // in [0, 1), 53 bits
  uint64_t Below(uint64_t bound);  // uniform in [0, bound), without bias; bound > 0

  // A uniformly random order of 0 .. count-1.
  std::vector<size_t> Permutation(size_t count);

 private:
  uint64_t state_;  // the Philox key after all of the input except the index
  uint64_t index_ = 0;
};

}  // namespace kgrpo
#endif
