// SHA-256 of bytes, as hexadecimal text: the keys of every cache here.
#ifndef KGRPO_EVALUATOR_SHARED_DIGEST_H
#define KGRPO_EVALUATOR_SHARED_DIGEST_H

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace kgrpo::evaluator {

// The digest of one byte string (FIPS 180-4), 64 hexadecimal digits.
std::string Sha256(std::string_view bytes);

// The digest of a list: each part is preceded by its length, so that moving a byte from one part to the next changes
// it.
std::string Sha256OfParts(std::initializer_list<std::string_view> parts);

}  // namespace kgrpo::evaluator

#endif
