#include "simt/state/lazy_bytes.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <new>

namespace kgrpo::simt {
namespace {

constexpr size_t kLargestSmall = size_t{1} << 20;

// A file of 0xFF, mapped again and again: pages of it are shared until they are written. -1 where there is none.
constexpr size_t kOnesBytes = size_t{2} << 20;
int OnesFile() {
  static const int file = [] {
    const int made = memfd_create("kgrpo ones", MFD_CLOEXEC);
    const std::vector<uint8_t> ones(kOnesBytes, 0xFF);
    if (made >= 0 && write(made, ones.data(), ones.size()) == static_cast<ssize_t>(ones.size())) return made;
    if (made >= 0) close(made);
    return -1;
  }();
  return file;
}

std::byte* Map(void* at, size_t bytes, int file) {
  const int flags = MAP_PRIVATE | MAP_NORESERVE | (file < 0 ? MAP_ANONYMOUS : 0) | (at != nullptr ? MAP_FIXED : 0);
  void* mapped = mmap(at, bytes, PROT_READ | PROT_WRITE, flags, file, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  return static_cast<std::byte*>(mapped);
}

}  // namespace

void LazyBytes::Assign(size_t bytes, uint8_t value) {
  if (bytes != size_) Unmap();
  size_ = bytes;
  if (bytes <= kLargestSmall) {
    small_.assign(bytes, std::byte{value});
    return;
  }
  small_ = {};
  const int ones = value == 0xFF ? OnesFile() : -1;
  mapped_ = Map(mapped_, bytes, -1);  // what was there before is gone
  if (value == 0) return;
  if (ones < 0) std::fill_n(mapped_, bytes, std::byte{0xFF});
  for (size_t at = 0; ones >= 0 && at < bytes; at += kOnesBytes)
    Map(mapped_ + at, std::min(kOnesBytes, bytes - at), ones);
}

void LazyBytes::Unmap() {
  if (mapped_ != nullptr) munmap(mapped_, size_);
  mapped_ = nullptr;
}

}  // namespace kgrpo::simt
