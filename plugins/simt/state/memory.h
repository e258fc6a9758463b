// The memory of the modelled GPU: allocations that only the evaluator's process holds. Filled and read by the evaluator
// and by the memory copies of a candidate's host code (forwarded), read and written by interpreted kernels.
#pragma once

#include <cstddef>  // size_t
#include <cstdint>  // uint64_t
#include <map>      // allocations by address
#include <memory>   // unique_ptr
#include <string>   // names, for findings
#include <utility>  // swap

#include "simt/state/image.h"

namespace kgrpo::simt {

// An address as a kernel sees it. Device addresses have bits set that no user-space pointer of x86-64 or arm64 has, so
// that host code that follows one crashes, as it would beside a real GPU. 0 is the null pointer.
using DeviceAddress = uint64_t;

// Start addresses of the windows of generic addresses, by kind of memory.
inline constexpr DeviceAddress kSharedWindow = 0x0D90'0000'0000'0000;
inline constexpr DeviceAddress kLocalWindow = 0x0DA0'0000'0000'0000;
inline constexpr DeviceAddress kParamWindow = 0x0DB0'0000'0000'0000;
inline constexpr DeviceAddress kGlobalWindow = 0x0D80'0000'0000'0000;

// True if a host pointer may have this value.
constexpr bool MayBeOfHost(DeviceAddress address) { return address >= 4096 && address < (uint64_t{1} << 52); }

// Allocations begin at multiples of this; cudaMalloc promises no more. Modelled times depend on it.
inline constexpr uint64_t kAllocationAlignment = 256;

// Bytes between two allocations that belong to neither: an access there is out of bounds.
inline constexpr uint64_t kRedZoneBytes = 4096;

// One allocation. Its bytes and their shadow live until Free.
class Allocation {
  friend class DeviceMemory;

 public:
  Allocation(DeviceAddress address, uint64_t bytes, std::string name, bool read_only);
  // The first `bytes` of an open file (a memfd), copied page by page as they are written to.
  Allocation(DeviceAddress address, uint64_t bytes, std::string name, int file);
  ~Allocation();
  Allocation(const Allocation&) = delete;
  Allocation& operator=(const Allocation&) = delete;

  DeviceAddress address() const { return address_; }
  DeviceAddress end() const { return address_ + bytes_; }
  uint64_t bytes() const { return bytes_; }
  const std::string& name() const { return name_; }
  bool read_only() const { return read_only_; }
  // The number of allocations when it was made: the same in calls that allocate the same.
  uint64_t place() const { return place_; }
  std::byte* data() { return data_; }
  const std::byte* data() const { return data_; }

  // True if every byte of [offset, offset + count) was written since allocation or the last Poison.
  bool Initialised(uint64_t offset, uint64_t count) const {
    return uninitialised_ == 0 || InitialisedSlow(offset, count);
  }
  // Records that [offset, offset + count) was written.
  void MarkInitialised(uint64_t offset, uint64_t count) {
    if (uninitialised_ != 0) MarkSlow(offset, count);
  }
  // Bytes that were written, since allocation or the last Poison; all of them where they came from a file.
  uint64_t WrittenBytes() const { return bytes_ - uninitialised_; }
  // The first byte of [offset, end) that was written, or that was not; `end`, at most bytes(), where there is none.
  uint64_t NextWritten(uint64_t offset, uint64_t end = ~uint64_t{0}) const { return Next(offset, end, true); }
  uint64_t NextUnwritten(uint64_t offset, uint64_t end = ~uint64_t{0}) const { return Next(offset, end, false); }

  // Fills everything with `pattern` and forgets that it was ever written.
  void Poison(uint8_t pattern);
  // Sets every byte to zero, all of them written. Gives the pages back, so that untouched ones cost nothing.
  void Zero();

 private:
  uint64_t Next(uint64_t offset, uint64_t end, bool written) const;
  bool InitialisedSlow(uint64_t offset, uint64_t count) const;
  void MarkSlow(uint64_t offset, uint64_t count);

  const DeviceAddress address_;
  const uint64_t bytes_;
  std::string name_;
  const bool read_only_;
  uint64_t place_ = 0;
  std::byte* data_ = nullptr;    // mapped, so that untouched pages cost nothing
  uint64_t* written_ = nullptr;  // a bit a byte of data_; null while all is initialised from the start
  uint64_t uninitialised_;       // zero bits in written_
};

// A device's memory. Not thread-safe: one DeviceMemory an evaluation; different ones in different threads are
// independent. The same sequence of calls yields the same addresses in every process.
class DeviceMemory {
 public:
  explicit DeviceMemory(uint64_t capacity_bytes = uint64_t{80} << 30);
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  // Allocates `bytes` (aligned to kAllocationAlignment, poisoned, uninitialised). `name` is what findings call it ("x",
  // "output"). Returns 0 where the capacity does not suffice. A size of 0 yields a valid address of which no byte may
  // be touched.
  DeviceAddress Allocate(uint64_t bytes, std::string name, bool read_only = false);

  // Allocates a tensor that holds the first `bytes` (at least 1) of an open file, all initialised: what is not touched
  // costs nothing, and the file stays as it is. The file may be closed afterwards.
  DeviceAddress AllocateCopy(int file, uint64_t bytes, std::string name);

  // Takes later allocations from another range of addresses than usual, or from the usual one again. So the addresses
  // of usual allocations, on which modelled times depend, are the same with and without those aside.
  void AllocateAside(bool aside) {
    if (aside != aside_) std::swap(next_, next_elsewhere_);
    aside_ = aside;
  }

  // Frees what Allocate returned; false when `address` is no allocation's start (freed twice, never allocated).
  bool Free(DeviceAddress address);

  // The allocation that holds `address`, or null. Valid until it is freed.
  Allocation* Find(DeviceAddress address);
  const Allocation* Find(DeviceAddress address) const { return const_cast<DeviceMemory*>(this)->Find(address); }

  // True if [address, address + bytes) lies within one allocation.
  bool Contains(DeviceAddress address, uint64_t bytes) const;

  // Host <-> device and device <-> device copies, by the evaluator or for a forwarded cudaMemcpy. Read and Copy work on
  // uninitialised bytes too (Copy copies their state). All throw kgrpo::Error(KGRPO_ERROR_INVALID) that names the range
  // where it is not within one allocation; nothing is then changed.
  void Write(DeviceAddress address, const void* source, uint64_t bytes);
  void Read(DeviceAddress address, void* target, uint64_t bytes) const;
  void Memset(DeviceAddress address, uint8_t value, uint64_t bytes);
  void Copy(DeviceAddress target, DeviceAddress source, uint64_t bytes);  // the ranges may overlap

  // Fills an allocation with `pattern` and marks it uninitialised: an output before a call. `address` is its start.
  void Poison(DeviceAddress address, uint8_t pattern);

  // Allocation::Zero, of the allocation that starts at `address`, which AllocateCopy did not make.
  void Zero(DeviceAddress address);

  // True if every byte of the range has been written.
  bool Initialised(DeviceAddress address, uint64_t bytes) const;

  // "16 bytes before 'x' (4096 bytes)", for findings.
  std::string Describe(DeviceAddress address) const;

  // Texture and surface objects. A handle is never 0 and never given out twice. An object does not keep the memory
  // that it names: a kernel that reads freed memory through it is found as any other.
  uint64_t AddObject(const ImageObject& object);
  bool RemoveObject(uint64_t handle) { return objects_.erase(handle) > 0; }
  size_t objects() const { return objects_.size(); }
  void ClearObjects() { objects_.clear(); }
  const ImageObject* FindObject(uint64_t handle) const;

  uint64_t bytes_allocated() const { return allocated_; }
  uint64_t capacity() const { return capacity_; }
  // Changes whenever an allocation begins or ends; lets an interpreter keep pointers to allocations.
  uint64_t generation() const { return generation_; }
  // In order of addresses.
  const std::map<DeviceAddress, std::unique_ptr<Allocation>>& allocations() const { return allocations_; }

 private:
  Allocation& Range(DeviceAddress address, uint64_t bytes, const char* what) const;
  template <typename... Arguments>
  DeviceAddress Add(uint64_t bytes, Arguments&&... arguments);

  uint64_t capacity_;
  uint64_t allocated_ = 0;
  uint64_t generation_ = 0;
  DeviceAddress next_, next_elsewhere_;  // the latter: of the range that is not in use
  bool aside_ = false;
  std::map<DeviceAddress, std::unique_ptr<Allocation>> allocations_;
  // Freed allocations, for findings: no address is given out twice.
  struct Freed {
    uint64_t bytes;
    std::string name;
  };
  std::map<DeviceAddress, Freed> freed_;
  std::map<uint64_t, ImageObject> objects_;
  uint64_t next_object_ = 1;
};

}  // namespace kgrpo::simt
