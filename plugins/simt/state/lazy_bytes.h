// Memory that a kernel declares and may never touch: the local arrays of a block's threads. Used by Block (machine.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace kgrpo::simt {

// Bytes that are all set at once. A large number of them is mapped, so that only pages that are written take memory.
// Not thread-safe.
class LazyBytes {
 public:
  LazyBytes() = default;
  ~LazyBytes() { Unmap(); }
  LazyBytes(const LazyBytes&) = delete;
  LazyBytes& operator=(const LazyBytes&) = delete;

  // Makes them `bytes` bytes of `value`, 0x00 or 0xFF. Throws std::bad_alloc where no addresses are left.
  void Assign(size_t bytes, uint8_t value);

  std::byte* data() { return mapped_ != nullptr ? mapped_ : small_.data(); }
  const std::byte* data() const { return mapped_ != nullptr ? mapped_ : small_.data(); }
  size_t size() const { return size_; }

 private:
  void Unmap();

  std::vector<std::byte> small_;
  std::byte* mapped_ = nullptr;
  size_t size_ = 0;
};

}  // namespace kgrpo::simt
