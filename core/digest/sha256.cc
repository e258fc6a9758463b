#include "digest/sha256.h"

#include <bit>
#include <cmath>
#include <cstring>

namespace kgrpo {
namespace {

// The constants of FIPS 180-4: the first 32 bits of the fractional parts of the cube roots of the first 64 primes, and
// of the square roots of the first eight. Computed, since long double carries the 35 bits that this needs with room to
// spare.
struct Constants {
  uint32_t round[64];
  uint32_t initial[8];
  Constants() {
    int found = 0;
    for (int candidate = 2; found < 64; ++candidate) {
      bool prime = true;
      for (int divisor = 2; divisor * divisor <= candidate; ++divisor) prime = prime && candidate % divisor != 0;
      if (!prime) continue;
      round[found] = FractionBits(std::cbrt(static_cast<long double>(candidate)));
      if (found < 8) initial[found] = FractionBits(std::sqrt(static_cast<long double>(candidate)));
      ++found;
    }
  }
  static uint32_t FractionBits(long double value) {
    return static_cast<uint32_t>((value - std::floor(value)) * 4294967296.0L);
  }
};

void Compress(const Constants& constants, const uint8_t* block, uint32_t* state) {
  uint32_t w[64];
  for (int i = 0; i < 16; ++i) {
    w[i] = static_cast<uint32_t>(block[4 * i]) << 24 | static_cast<uint32_t>(block[4 * i + 1]) << 16 |
           static_cast<uint32_t>(block[4 * i + 2]) << 8 | block[4 * i + 3];
  }
  for (int i = 16; i < 64; ++i) {
    const uint32_t s0 = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ (w[i - 15] >> 3);
    const uint32_t s1 = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ (w[i - 2] >> 10);
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
  uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
  for (int i = 0; i < 64; ++i) {
    const uint32_t s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    const uint32_t t1 = h + s1 + ((e & f) ^ (~e & g)) + constants.round[i] + w[i];
    const uint32_t s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    const uint32_t t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
  }
  state[0] += a, state[1] += b, state[2] += c, state[3] += d;
  state[4] += e, state[5] += f, state[6] += g, state[7] += h;
}

}  // namespace

std::string Sha256(std::string_view bytes) {
  static const Constants constants;
  uint32_t state[8];
  std::memcpy(state, constants.initial, sizeof state);
  const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
  size_t whole = bytes.size() / 64 * 64;
  for (size_t i = 0; i < whole; i += 64) Compress(constants, data + i, state);
  uint8_t tail[128] = {};
  const size_t left = bytes.size() - whole;
  if (left > 0) std::memcpy(tail, data + whole, left);
  tail[left] = 0x80;
  const size_t padded = left + 9 <= 64 ? 64 : 128;
  const uint64_t bits = static_cast<uint64_t>(bytes.size()) * 8;
  for (int i = 0; i < 8; ++i) tail[padded - 1 - static_cast<size_t>(i)] = static_cast<uint8_t>(bits >> (8 * i));
  for (size_t i = 0; i < padded; i += 64) Compress(constants, tail + i, state);
  std::string text;
  for (uint32_t word : state) {
    for (int shift = 28; shift >= 0; shift -= 4) text += "0123456789abcdef"[(word >> shift) & 15];
  }
  return text;
}

std::string Sha256OfParts(std::initializer_list<std::string_view> parts) {
  std::string joined;
  for (std::string_view part : parts) {
    joined += std::to_string(part.size());
    joined += ':';
    joined += part;
  }
  return Sha256(joined);
}

}  // namespace kgrpo
