#include <kgrpo/support/sha256.h>

#include <openssl/evp.h>

#include <array>
#include <new>

namespace kgrpo {

std::string Sha256(std::string_view bytes) {
  std::array<unsigned char, 32> digest;
  if (EVP_Digest(bytes.data(), bytes.size(), digest.data(), nullptr, EVP_sha256(), nullptr) != 1)
    throw std::bad_alloc();
  std::string text;
  for (const unsigned char byte : digest) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
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
