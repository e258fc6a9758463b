// One GPU as the evaluator's process uses it: memory that it owns and lends, copies, its own kernels, and the
// device's measured peak rates. Made by the evaluator; used by the evaluator under the device's lock.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <string>
#include <vector>

#include "evaluator_cuda/device_kernels.h"  // DrawTask, CompareTask, Place
#include "evaluator_cuda/occupancy.h"       // Multiprocessor
#include "evaluator_cuda/roofline.h"        // Ceilings

namespace kgrpo::evaluator_cuda {

// Throws Error(KGRPO_ERROR_UNAVAILABLE) that names `what` unless `status` is cudaSuccess.
void CheckCuda(cudaError_t status, const char* what);

// Returns the number of devices that this process sees; 0 also where there is no driver.
int DeviceCount();

// One thread at a time, but for the constants.
class Device {
 public:
  // Only asks for the device's properties. Throws Error(KGRPO_ERROR_UNAVAILABLE) where there is no driver or no such
  // device.
  explicit Device(int index);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const std::string& name() const { return name_; }               // "NVIDIA H100 80GB HBM3"
  const std::string& uuid() const { return uuid_; }               // "GPU-...", for CUDA_VISIBLE_DEVICES
  const std::string& bus_id() const { return bus_id_; }           // for NVML
  const std::string& node() const { return node_; }               // "/dev/nvidia0", "" where that is not known
  const std::string& lock_name() const { return lock_name_; }     // "cuda:0"
  int compute_capability() const { return compute_capability_; }  // 90
  uint64_t l2_bytes() const { return l2_bytes_; }
  const std::string& driver() const { return driver_; }   // "13.0"
  const Ceilings& ceilings() const { return ceilings_; }  // all 0 before MeasureCeilings
  const Multiprocessor& multiprocessor() const { return multiprocessor_; }

  // Makes this process's context and what the functions below need, which takes some 0.3 s; called once, before them.
  // Throws OutOfMemory where the device has no room.
  void Start();
  // Takes some 20 ms in which nothing else should run on the device.
  void MeasureCeilings();

  // True if kernels of other programs run on the device now. They delay ours by milliseconds at a time, so measured
  // times say little. Call it only while no kernel of ours runs; it takes some 5 ms.
  bool IsBusy() const;

  uint64_t total_bytes() const { return total_bytes_; }
  uint64_t FreeBytes() const;

  // Memory of the device, which cudaFree releases. `what` begins the message of a failure.
  void* Allocate(uint64_t bytes, const char* what) const;

  // These wait until they are done.
  void Write(void* target, const void* source, uint64_t bytes) const;
  void Read(void* target, const void* source, uint64_t bytes) const;

  // These are queued; Wait waits for them.
  void Fill(void* target, uint8_t value, uint64_t bytes) const;
  void Draw(const std::vector<DrawTask>& tasks) const;
  // Evicts what the L2 cache holds. Writing flush_bytes() does the same.
  void FlushCache() const;
  uint64_t flush_bytes() const { return flush_bytes_; }
  void Wait() const;

  // PreparePeek sets the places that Peek reads, at most kMostPlaces. Peek returns kPeekBytes for each, in one
  // transfer.
  static constexpr size_t kMostPlaces = 256;
  void PreparePeek(const std::vector<Place>& places);
  std::vector<uint8_t> Peek() const;

  // The mismatches of each task.
  std::vector<unsigned long long> Mismatches(const std::vector<CompareTask>& tasks) const;

  // The first element with the largest error in units of the bound; one of them must be a mismatch.
  int64_t Worst(const CompareTask& task) const;

  // Bytes (of `bytes`, a multiple of 16) that are not `value`.
  uint64_t CountOther(const void* memory, uint64_t bytes, uint8_t value) const;

 private:
  void Use() const;  // makes this the current device of the calling thread

  const int index_;
  std::string name_, uuid_, bus_id_, node_, lock_name_, driver_;
  int compute_capability_ = 0, multiprocessors_ = 0;
  uint64_t total_bytes_ = 0;
  uint64_t l2_bytes_ = 0, flush_bytes_ = 0;
  Ceilings ceilings_;
  Multiprocessor multiprocessor_;
  cudaStream_t stream_ = nullptr;
  void* flush_ = nullptr;
  void* tasks_ = nullptr;                   // room for kMostTasks
  unsigned long long* counters_ = nullptr;  // as many
  Place* places_ = nullptr;
  uint8_t* peeked_ = nullptr;
  uint32_t place_count_ = 0;
};

// Device memory that another process may open.
class LentMemory {
 public:
  // Holds nothing yet.
  explicit LentMemory(const Device& device) : device_(device) {}
  ~LentMemory();
  LentMemory(const LentMemory&) = delete;
  LentMemory& operator=(const LentMemory&) = delete;

  // Grows the memory to at least `bytes`, if it is smaller. Then its contents are lost, and every process that opened
  // it must open it again. Throws Error(KGRPO_ERROR_UNAVAILABLE) where the device has no room.
  void Reserve(uint64_t bytes);

  // Frees the memory. Every process that opened it must have ended.
  void Release();

  uint8_t* data() const { return data_; }
  uint64_t bytes() const { return bytes_; }
  // A cudaIpcMemHandle_t.
  const std::vector<uint8_t>& handle() const { return handle_; }

 private:
  const Device& device_;
  uint8_t* data_ = nullptr;
  uint64_t bytes_ = 0;
  std::vector<uint8_t> handle_;
};

}  // namespace kgrpo::evaluator_cuda
