#include "trainer_shared/state_stream.h"

#include <kgrpo/sdk/error.h>

#include <bit>
#include <cstring>

namespace kgrpo::trainer {
namespace {

static_assert(std::endian::native == std::endian::little, "the state's arrays are written as they lie in memory");

constexpr std::string_view kMagic = "KGRPOTRN";
constexpr uint64_t kLongestText = 1 << 16;

[[noreturn]] void RefuseStream(const std::string& problem) {
  throw Error(KGRPO_ERROR_INVALID, "the saved trainer state cannot be used: " + problem);
}

}  // namespace

void Checksum::Mix(uint64_t word) {
  // Multiplication by an odd number and xor-shift are bijections: two states that differ in one word never meet again.
  state_ = (state_ ^ word) * 0xD6E8FEB86659FD93u;
  state_ ^= state_ >> 32;
}

void Checksum::Add(const void* data, size_t size) {
  const auto* bytes = static_cast<const unsigned char*>(data);
  for (; size > 0 && size_ % 8 != 0; --size, ++bytes) {
    pending_ |= static_cast<uint64_t>(*bytes) << (8 * (size_ % 8));
    if (++size_ % 8 == 0) {
      Mix(pending_);
      pending_ = 0;
    }
  }
  for (; size >= 8; size -= 8, bytes += 8, size_ += 8) {
    uint64_t word;
    std::memcpy(&word, bytes, 8);
    Mix(word);
  }
  for (; size > 0; --size, ++bytes, ++size_) pending_ |= static_cast<uint64_t>(*bytes) << (8 * (size_ % 8));
}

uint64_t Checksum::value() const {
  Checksum last = *this;
  last.Mix(pending_);
  last.Mix(size_);
  return last.state_;
}

StateWriter::StateWriter(kgrpo_writer stream, std::string_view trainer) : stream_(stream) {
  Bytes(kMagic.data(), kMagic.size());
  Bytes(&kStateVersion, sizeof(kStateVersion));
  Text(trainer);
}

void StateWriter::Bytes(const void* data, size_t size) {
  if (size == 0) return;
  Check(stream_.write(stream_.context, data, size));
  checksum_.Add(data, size);
}

void StateWriter::U64(uint64_t value) { Bytes(&value, sizeof(value)); }

void StateWriter::Text(std::string_view text) {
  U64(text.size());
  Bytes(text.data(), text.size());
}

void StateWriter::Finish() { U64(checksum_.value()); }

StateReader::StateReader(kgrpo_reader stream, std::string_view trainer) : stream_(stream) {
  char magic[8];
  Bytes(magic, sizeof(magic));
  if (std::string_view(magic, sizeof(magic)) != kMagic) RefuseStream("it does not begin as one");
  uint32_t version;
  Bytes(&version, sizeof(version));
  if (version != kStateVersion) {
    RefuseStream("it has version " + std::to_string(version) + " of the format, this program reads version " +
                 std::to_string(kStateVersion));
  }
  const std::string owner = Text();
  if (owner != trainer) RefuseStream("it was written by " + owner + ", not by " + std::string(trainer));
}

size_t StateReader::ReadSome(void* data, size_t size) {
  size_t got = 0;
  Check(stream_.read(stream_.context, data, size, &got));
  return got;
}

void StateReader::Bytes(void* data, size_t size) {
  auto* bytes = static_cast<char*>(data);
  for (size_t done = 0; done < size;) {
    const size_t got = ReadSome(bytes + done, size - done);
    if (got == 0) RefuseStream("it is cut short");
    done += got;
  }
  checksum_.Add(data, size);
}

uint64_t StateReader::U64() {
  uint64_t value;
  Bytes(&value, sizeof(value));
  return value;
}

std::string StateReader::Text() {
  const uint64_t size = U64();
  if (size > kLongestText) RefuseStream("it is damaged (a name of " + std::to_string(size) + " bytes)");
  std::string text(size, '\0');
  Bytes(text.data(), size);
  return text;
}

void StateReader::Finish() {
  const uint64_t expected = checksum_.value();
  if (U64() != expected) RefuseStream("it is damaged (its checksum does not match)");
  char extra;
  if (ReadSome(&extra, 1) != 0) RefuseStream("it is damaged (more follows its end)");
}

}  // namespace kgrpo::trainer
