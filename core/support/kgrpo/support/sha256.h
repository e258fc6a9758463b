// SHA-256 of bytes, as hexadecimal text: names of sources in run folders, keys of caches, digests of
// checkpoints' files. Used by the host and by plugins.
#ifndef KGRPO_SUPPORT_SHA256_H
#define KGRPO_SUPPORT_SHA256_H

#include <filesystem>
#include <initializer_list>
#include <string>
#include <string_view>

namespace kgrpo {

// The digest of one byte string (OpenSSL's), 64 hexadecimal digits.
std::string Sha256(std::string_view bytes);

// Returns the digest of a file, which is read in pieces. Throws KGRPO_ERROR_UNAVAILABLE if it cannot be read.
std::string Sha256OfFile(const std::filesystem::path& file);

// The digest of a list: each part is preceded by its length, so that moving a byte from one part to the next changes
// it.
std::string Sha256OfParts(std::initializer_list<std::string_view> parts);

}  // namespace kgrpo

#endif
