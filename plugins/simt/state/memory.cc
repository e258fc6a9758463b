#include "simt/state/memory.h"

#include <kgrpo/sdk/error.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>

namespace kgrpo::simt {
namespace {

constexpr size_t kMostFreed = 64;  // freed allocations that findings can name
// Value of uninitialised bytes: as float a NaN, as signed integer -1.
constexpr uint8_t kPoison = 0xFF;

// Anonymous mappings cost nothing until touched, which counts when only a few blocks of a large problem run.
void* Map(uint64_t bytes) {
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) throw std::bad_alloc();
  return data;
}

std::string Hex(DeviceAddress address) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(address));
  return text;
}

}  // namespace

Allocation::Allocation(DeviceAddress address, uint64_t bytes, std::string name, bool read_only)
    : address_(address), bytes_(bytes), name_(std::move(name)), read_only_(read_only), uninitialised_(bytes) {
  if (bytes_ == 0) return;
  data_ = static_cast<std::byte*>(Map(bytes_));
  written_ = static_cast<uint64_t*>(Map(bytes_ / 8 + 16));
  // Small allocations are filled with poison at once; large ones hold zeros until Poison is called.
  if (bytes_ <= (uint64_t{1} << 22)) std::memset(data_, kPoison, bytes_);
}

Allocation::Allocation(DeviceAddress address, uint64_t bytes, std::string name, int file)
    : address_(address), bytes_(bytes), name_(std::move(name)), read_only_(false), uninitialised_(0) {
  void* data = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, file, 0);
  if (data == MAP_FAILED) throw std::bad_alloc();
  data_ = static_cast<std::byte*>(data);
}

Allocation::~Allocation() {
  if (bytes_ == 0) return;
  munmap(data_, bytes_);
  if (written_ != nullptr) munmap(written_, bytes_ / 8 + 16);
}

bool Allocation::InitialisedSlow(uint64_t offset, uint64_t count) const {
  while (count > 0) {
    const uint64_t word = written_[offset / 64], shift = offset % 64;
    const uint64_t here = std::min<uint64_t>(count, 64 - shift);
    const uint64_t mask = (here == 64 ? ~uint64_t{0} : (uint64_t{1} << here) - 1) << shift;
    if ((word & mask) != mask) return false;
    offset += here;
    count -= here;
  }
  return true;
}

void Allocation::MarkSlow(uint64_t offset, uint64_t count) {
  while (count > 0) {
    uint64_t& word = written_[offset / 64];
    const uint64_t shift = offset % 64;
    const uint64_t here = std::min<uint64_t>(count, 64 - shift);
    const uint64_t mask = (here == 64 ? ~uint64_t{0} : (uint64_t{1} << here) - 1) << shift;
    uninitialised_ -= static_cast<uint64_t>(std::popcount(mask & ~word));
    word |= mask;
    offset += here;
    count -= here;
  }
}

uint64_t Allocation::Next(uint64_t offset, uint64_t end, bool written) const {
  end = std::min(end, bytes_);
  if (offset >= end) return end;
  if (uninitialised_ == 0) return written ? offset : end;
  const uint64_t flip = written ? 0 : ~uint64_t{0};
  uint64_t word = (written_[offset / 64] ^ flip) >> (offset % 64) << (offset % 64);
  for (uint64_t at = offset / 64;; word = written_[++at] ^ flip) {
    if (word != 0) return std::min(end, 64 * at + static_cast<uint64_t>(std::countr_zero(word)));
    if (64 * (at + 1) >= end) return end;
  }
}

void Allocation::Poison(uint8_t pattern) {
  if (bytes_ == 0) return;
  std::memset(data_, pattern, bytes_);
  if (written_ == nullptr) written_ = static_cast<uint64_t*>(Map(bytes_ / 8 + 16));
  std::memset(written_, 0, bytes_ / 8 + 16);
  uninitialised_ = bytes_;
}

void Allocation::Zero() {
  uninitialised_ = 0;
  // Of a private anonymous mapping, discarded pages read as zeros.
  if (bytes_ != 0 && madvise(data_, bytes_, MADV_DONTNEED) != 0) std::memset(data_, 0, bytes_);
}

DeviceMemory::DeviceMemory(uint64_t capacity_bytes)
    : capacity_(capacity_bytes),
      next_(kGlobalWindow + (uint64_t{1} << 24)),
      next_elsewhere_(next_ + (uint64_t{1} << 42)) {}
DeviceMemory::~DeviceMemory() = default;

// Makes an allocation of `arguments` at the next address; 0 where there is no memory.
template <typename... Arguments>
DeviceAddress DeviceMemory::Add(uint64_t bytes, Arguments&&... arguments) {
  if (bytes > capacity_ || allocated_ + bytes > capacity_) return 0;
  const DeviceAddress address = next_;
  std::unique_ptr<Allocation> allocation;
  try {
    allocation = std::make_unique<Allocation>(address, bytes, std::forward<Arguments>(arguments)...);
  } catch (const std::bad_alloc&) {
    return 0;
  }
  allocation->place_ = allocations_.size();
  allocations_[address] = std::move(allocation);
  next_ = (address + bytes + kRedZoneBytes + kAllocationAlignment - 1) / kAllocationAlignment * kAllocationAlignment;
  allocated_ += bytes;
  ++generation_;
  return address;
}

DeviceAddress DeviceMemory::Allocate(uint64_t bytes, std::string name, bool read_only) {
  return Add(bytes, std::move(name), read_only);
}

DeviceAddress DeviceMemory::AllocateCopy(int file, uint64_t bytes, std::string name) {
  return Add(bytes, std::move(name), file);
}

bool DeviceMemory::Free(DeviceAddress address) {
  const auto it = allocations_.find(address);
  if (it == allocations_.end()) return false;
  allocated_ -= it->second->bytes();
  freed_[address] = {it->second->bytes(), it->second->name()};
  if (freed_.size() > kMostFreed) freed_.erase(freed_.begin());  // the oldest: addresses grow
  allocations_.erase(it);
  ++generation_;
  return true;
}

uint64_t DeviceMemory::AddObject(const ImageObject& object) {
  objects_[next_object_] = object;
  return next_object_++;
}

const ImageObject* DeviceMemory::FindObject(uint64_t handle) const {
  const auto it = objects_.find(handle);
  return it != objects_.end() ? &it->second : nullptr;
}

Allocation* DeviceMemory::Find(DeviceAddress address) {
  auto it = allocations_.upper_bound(address);
  if (it == allocations_.begin()) return nullptr;
  --it;
  return address < it->second->end() ? it->second.get() : nullptr;
}

bool DeviceMemory::Contains(DeviceAddress address, uint64_t bytes) const {
  const Allocation* allocation = Find(address);
  return allocation != nullptr && bytes <= allocation->end() - address;
}

Allocation& DeviceMemory::Range(DeviceAddress address, uint64_t bytes, const char* what) const {
  auto* self = const_cast<DeviceMemory*>(this);
  if (Allocation* allocation = self->Find(address); allocation != nullptr && bytes <= allocation->end() - address)
    return *allocation;
  if (bytes == 0) {  // an empty range may stand at an allocation's end, or in an empty one
    auto it = self->allocations_.upper_bound(address);
    if (it != self->allocations_.begin() && address <= std::prev(it)->second->end()) return *std::prev(it)->second;
  }
  throw Error(KGRPO_ERROR_INVALID, std::string(what) + " of " + std::to_string(bytes) + " bytes at " + Hex(address) +
                                       " does not lie within one allocation: it starts " + Describe(address));
}

void DeviceMemory::Write(DeviceAddress address, const void* source, uint64_t bytes) {
  Allocation& allocation = Range(address, bytes, "write");
  if (bytes == 0) return;
  std::memcpy(allocation.data() + (address - allocation.address()), source, bytes);
  allocation.MarkInitialised(address - allocation.address(), bytes);
}

void DeviceMemory::Read(DeviceAddress address, void* target, uint64_t bytes) const {
  const Allocation& allocation = Range(address, bytes, "read");
  if (bytes != 0) std::memcpy(target, allocation.data() + (address - allocation.address()), bytes);
}

void DeviceMemory::Memset(DeviceAddress address, uint8_t value, uint64_t bytes) {
  Allocation& allocation = Range(address, bytes, "memset");
  if (bytes == 0) return;
  std::memset(allocation.data() + (address - allocation.address()), value, bytes);
  allocation.MarkInitialised(address - allocation.address(), bytes);
}

void DeviceMemory::Copy(DeviceAddress target, DeviceAddress source, uint64_t bytes) {
  Allocation& from = Range(source, bytes, "copy from device memory");
  Allocation& to = Range(target, bytes, "copy to device memory");
  if (bytes == 0) return;
  const uint64_t from_offset = source - from.address(), to_offset = target - to.address();
  std::memmove(to.data() + to_offset, from.data() + from_offset, bytes);
  const uint64_t end = from_offset + bytes;
  for (uint64_t at = from.NextWritten(from_offset, end), next; at < end; at = from.NextWritten(next, end)) {
    next = from.NextUnwritten(at, end);
    to.MarkInitialised(to_offset + at - from_offset, next - at);
  }
}

void DeviceMemory::Poison(DeviceAddress address, uint8_t pattern) {
  const auto it = allocations_.find(address);
  if (it == allocations_.end())
    throw Error(KGRPO_ERROR_INVALID, "poison: " + Hex(address) + " is not the start of an allocation");
  it->second->Poison(pattern);
}

void DeviceMemory::Zero(DeviceAddress address) {
  const auto it = allocations_.find(address);
  if (it == allocations_.end())
    throw Error(KGRPO_ERROR_INVALID, "zero: " + Hex(address) + " is not the start of an allocation");
  it->second->Zero();
}

bool DeviceMemory::Initialised(DeviceAddress address, uint64_t bytes) const {
  const Allocation& allocation = Range(address, bytes, "check");
  return allocation.Initialised(address - allocation.address(), bytes);
}

std::string DeviceMemory::Describe(DeviceAddress address) const {
  if (address < 4096) return "at the null pointer";
  if (address < kGlobalWindow || address >= kSharedWindow)
    return "at " + Hex(address) + ", which is no device address (a host pointer?)";
  auto named = [](const Allocation& allocation) {
    return "'" + allocation.name() + "' (" + std::to_string(allocation.bytes()) + " bytes)";
  };
  auto it = allocations_.upper_bound(address);
  const Allocation* after = it == allocations_.end() ? nullptr : it->second.get();
  const Allocation* before = it == allocations_.begin() ? nullptr : std::prev(it)->second.get();
  if (before != nullptr && address < before->end()) {
    return "at byte " + std::to_string(address - before->address()) + " of " + named(*before);
  }
  if (auto freed = freed_.upper_bound(address); freed != freed_.begin() && !freed_.empty()) {
    --freed;
    if (address - freed->first < freed->second.bytes)
      return "at byte " + std::to_string(address - freed->first) + " of '" + freed->second.name + "' (" +
             std::to_string(freed->second.bytes) + " bytes), which was freed";
  }
  const uint64_t behind = before != nullptr ? address - before->end() : UINT64_MAX;
  const uint64_t ahead = after != nullptr ? after->address() - address : UINT64_MAX;
  if (behind == UINT64_MAX && ahead == UINT64_MAX) return "at " + Hex(address) + ", where nothing is allocated";
  if (behind <= ahead)
    return behind == 0 ? "just past the end of " + named(*before)
                       : std::to_string(behind) + " bytes past the end of " + named(*before);
  return std::to_string(ahead) + " bytes before " + named(*after);
}

}  // namespace kgrpo::simt
