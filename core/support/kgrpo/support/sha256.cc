#include <kgrpo/support/sha256.h>

#include <kgrpo/sdk/error.h>
#include <openssl/evp.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <new>
#include <vector>

namespace kgrpo {
namespace {

using Digest = std::array<unsigned char, 32>;

std::string Hexadecimal(const Digest& digest) {
  std::string text;
  for (const unsigned char byte : digest) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

}  // namespace

std::string Sha256(std::string_view bytes) {
  Digest digest;
  if (EVP_Digest(bytes.data(), bytes.size(), digest.data(), nullptr, EVP_sha256(), nullptr) != 1)
    throw std::bad_alloc();
  return Hexadecimal(digest);
}

std::string Sha256OfFile(const std::filesystem::path& file) {
  constexpr size_t kPiece = size_t{1} << 20;  // bytes read at a time
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  if (!context || EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) != 1) throw std::bad_alloc();
  std::ifstream stream(file, std::ios::binary);
  std::vector<char> piece(kPiece);
  while (stream.read(piece.data(), kPiece), stream.gcount() > 0)
    EVP_DigestUpdate(context.get(), piece.data(), static_cast<size_t>(stream.gcount()));
  if (!stream.eof()) throw Error(KGRPO_ERROR_UNAVAILABLE, "cannot read " + file.string() + ": " + std::strerror(errno));
  Digest digest;
  EVP_DigestFinal_ex(context.get(), digest.data(), nullptr);
  return Hexadecimal(digest);
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
