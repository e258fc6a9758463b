// state_stream.h - the format of a trainer's saved state over the host's byte streams: a magic number, a version, the
// trainer's name, then fields, then a checksum. A file that is cut short, changed, of another version or of another
// trainer is refused with an error that says which. Used by adamw.cc, optimizer.cc and the trainers' save_state and
// load_state.
//
// Layout, little-endian: "KGRPOTRN", u32 version, string trainer, fields, u64 checksum of all that precedes it.
// A string is a u64 size and its bytes; an array is its bytes alone, its size being known to the reader.
#pragma once
#include <kgrpo/trainer.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace kgrpo::trainer {

inline constexpr uint32_t kStateVersion = 1;

// A 64-bit checksum that bytes are fed to in pieces of any size; the result depends on the bytes alone.
class Checksum {
 public:
  void Add(const void* data, size_t size);
  uint64_t value() const;

 private:
  void Mix(uint64_t word);

  uint64_t state_ = 0x9E3779B97F4A7C15u;
  uint64_t pending_ = 0;  // the last size_ % 8 bytes
  uint64_t size_ = 0;
};

class StateWriter {
 public:
  // Writes the header. Every function throws the stream's error.
  StateWriter(kgrpo_writer stream, std::string_view trainer);

  void Bytes(const void* data, size_t size);
  void U64(uint64_t value);
  void Text(std::string_view text);
  void Finish();  // writes the checksum; call it last

 private:
  kgrpo_writer stream_;
  Checksum checksum_;
};

class StateReader {
 public:
  // Reads and checks the header. Every function throws KGRPO_ERROR_INVALID if the state is not one that this trainer
  // wrote.
  StateReader(kgrpo_reader stream, std::string_view trainer);

  void Bytes(void* data, size_t size);
  uint64_t U64();
  std::string Text();  // at most 64 KiB: longer ones are corruption
  void Finish();       // checks the checksum and that nothing follows

 private:
  size_t ReadSome(void* data, size_t size);

  kgrpo_reader stream_;
  Checksum checksum_;
};

}  // namespace kgrpo::trainer
