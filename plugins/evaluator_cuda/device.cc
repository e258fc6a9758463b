#include "evaluator_cuda/device.h"

#include <kgrpo/sdk/error.h>
#include <kgrpo/sdk/gpu_uuid.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "evaluator_cuda/ceiling_kernels.h"
#include "evaluator_cuda/device_errors.h"

namespace kgrpo::evaluator_cuda {
namespace {

constexpr int kRateRounds = 4096;  // of multiply-adds: some 0.2 ms
constexpr int kProbes = 24;
constexpr size_t kMostTasks = 4096;      // of one launch
constexpr double kHeldUpSeconds = 2e-4;  // allowance for the launch and the host
constexpr std::chrono::seconds kMemoryComesBack(5);

template <typename Task>
std::vector<Task> Part(const std::vector<Task>& tasks, size_t at) {
  return {tasks.begin() + static_cast<std::ptrdiff_t>(at),
          tasks.begin() + static_cast<std::ptrdiff_t>(std::min(tasks.size(), at + kMostTasks))};
}

// 13000 is "13.0".
std::string VersionText(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

// Finds the device's node by the minor number in the driver's pages in /proc; "" where they do not give it.
std::string NodeOf(std::string bus_id) {
  for (char& letter : bus_id) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  std::ifstream information("/proc/driver/nvidia/gpus/" + bus_id + "/information");
  const std::string key = "Device Minor:";
  for (std::string line; std::getline(information, line);) {
    if (!line.starts_with(key)) continue;
    const size_t number = line.find_first_of("0123456789", key.size());
    const std::string node = "/dev/nvidia" + (number == std::string::npos ? "" : line.substr(number));
    std::error_code code;
    if (std::filesystem::is_character_file(node, code)) return node;
  }
  return "";
}

// Seconds of the quickest of some runs of `launch`.
template <typename Launch>
double Quickest(cudaStream_t stream, Launch launch) {
  cudaEvent_t begin, end;
  CheckCuda(cudaEventCreate(&begin), "making an event");
  CheckCuda(cudaEventCreate(&end), "making an event");
  float quickest = 0;
  for (int i = 0; i < 6; ++i) {
    CheckCuda(cudaEventRecord(begin, stream), "recording an event");
    CheckCuda(launch(), "measuring the device's ceilings");
    CheckCuda(cudaEventRecord(end, stream), "recording an event");
    CheckCuda(cudaEventSynchronize(end), "measuring the device's ceilings");
    float milliseconds = 0;
    CheckCuda(cudaEventElapsedTime(&milliseconds, begin, end), "reading an event");
    if (i == 0 || (i > 1 && milliseconds < quickest)) quickest = milliseconds;  // the first warms up
  }
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  return static_cast<double>(quickest) * 1e-3;
}

// Throws unless the device exists, the driver is new enough, and several processes may use the device: each candidate
// has its own process.
void RequireDevice(int index) {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaErrorInsufficientDriver) {
    int driver = 0;
    cudaDriverGetVersion(&driver);  // 0: there is no driver at all
    if (driver > 0) {
      throw Error(KGRPO_ERROR_UNAVAILABLE,
                  "evaluator_cuda is built with CUDA " + VersionText(CUDART_VERSION) +
                      ", but the driver here is for CUDA " + VersionText(driver) +
                      ": install a newer NVIDIA driver, or use evaluator_sim, which needs none");
    }
  }
  if (status != cudaSuccess || count == 0) {
    throw Error(KGRPO_ERROR_UNAVAILABLE,
                std::string("evaluator_cuda needs an NVIDIA GPU and its driver, and found none (") +
                    cudaGetErrorString(status) + "); on a machine without one use evaluator_sim");
  }
  if (index >= count) {
    throw Error(KGRPO_ERROR_UNAVAILABLE, "device " + std::to_string(index) + " is asked for, but there are " +
                                             std::to_string(count) + " (counted from 0)");
  }
  int mode = 0;
  CheckCuda(cudaDeviceGetAttribute(&mode, cudaDevAttrComputeMode, index), "asking for the device's compute mode");
  if (mode == cudaComputeModeDefault) return;
  throw Error(
      KGRPO_ERROR_UNAVAILABLE,
      "device " + std::to_string(index) + " is in compute mode " +
          (mode == cudaComputeModeProhibited ? "prohibited" : "exclusive") +
          ", but evaluator and candidates are several processes: set it to the default one (as root: nvidia-smi -i " +
          std::to_string(index) + " -c DEFAULT), or choose another device");
}

}  // namespace

void CheckCuda(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  const std::string message =
      std::string(what) + " failed: " + cudaGetErrorName(status) + ": " + cudaGetErrorString(status);
  if (status == cudaErrorMemoryAllocation)
    throw OutOfMemory(message + "; end other programs on the device (nvidia-smi lists them), or choose another");
  const char* const advice =
      status == cudaErrorDevicesUnavailable
          ? "; another program may have the device to itself (nvidia-smi lists them and the compute mode)"
          : "";
  throw Error(KGRPO_ERROR_UNAVAILABLE, message + advice);
}

int DeviceCount() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

Device::Device(int index) : index_(index), lock_name_("cuda:" + std::to_string(index)) {
  RequireDevice(index);
  cudaDeviceProp properties;
  CheckCuda(cudaGetDeviceProperties(&properties, index), "asking for the device's properties");
  name_ = properties.name;
  uuid_ = GpuUuidText(properties.uuid.bytes);
  compute_capability_ = properties.major * 10 + properties.minor;
  multiprocessors_ = properties.multiProcessorCount;
  l2_bytes_ = static_cast<uint64_t>(properties.l2CacheSize);
  total_bytes_ = properties.totalGlobalMem;
  multiprocessor_ = {static_cast<uint32_t>(properties.maxThreadsPerMultiProcessor),
                     static_cast<uint32_t>(properties.maxBlocksPerMultiProcessor),
                     static_cast<uint32_t>(properties.regsPerMultiprocessor), properties.sharedMemPerMultiprocessor,
                     properties.reservedSharedMemPerBlock};
  char bus_id[32] = "";
  CheckCuda(cudaDeviceGetPCIBusId(bus_id, sizeof bus_id, index), "asking for the device's bus id");
  bus_id_ = bus_id;
  node_ = NodeOf(bus_id_);
  int driver = 0;
  CheckCuda(cudaDriverGetVersion(&driver), "asking for the driver's version");
  driver_ = VersionText(driver);
}

void Device::Start() {
  Use();
  CheckCuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "making a stream");
  flush_bytes_ = std::max<uint64_t>(2 * l2_bytes_, uint64_t{32} << 20) / 256 * 256;
  flush_ = Allocate(flush_bytes_, "allocating memory to flush the cache with");
  counters_ = static_cast<unsigned long long*>(Allocate(kMostTasks * sizeof *counters_, "allocating counters"));
  tasks_ = Allocate(kMostTasks * std::max(sizeof(DrawTask), sizeof(CompareTask)), "allocating a table of tensors");
  places_ = static_cast<Place*>(Allocate(kMostPlaces * (sizeof(Place) + kPeekBytes), "allocating memory to peek with"));
  peeked_ = reinterpret_cast<uint8_t*>(places_ + kMostPlaces);
}

Device::~Device() {
  if (stream_ == nullptr) return;  // never started
  cudaSetDevice(index_);
  cudaFree(flush_);
  cudaFree(counters_);
  cudaFree(tasks_);
  cudaFree(places_);
  cudaStreamDestroy(stream_);
}

void Device::Use() const { CheckCuda(cudaSetDevice(index_), "choosing the device"); }

void Device::MeasureCeilings() {
  const uint64_t bytes = std::min<uint64_t>(uint64_t{1} << 30, FreeBytes() / 8) / 256 * 256;
  void* const memory = Allocate(bytes, "allocating memory to measure the device with");
  CheckCuda(cudaMemsetAsync(memory, 0x11, bytes, stream_), "filling memory");
  const double read = Quickest(stream_, [&] { return LaunchRead(memory, bytes, counters_, stream_); });
  cudaFree(memory);
  ceilings_.read_bytes_per_second = static_cast<double>(bytes) / read;
  const auto rate = [this](auto launch, int rounds) {
    double operations = 0;
    const double seconds = Quickest(stream_, [&] {
      return launch(multiprocessors_, rounds, reinterpret_cast<float*>(counters_), &operations, stream_);
    });
    return operations / seconds;
  };
  ceilings_.fp32_operations_per_second = rate(LaunchMultiplyAdd, kRateRounds);
  // fp64 runs at 1/64 of the fp32 rate on consumer GPUs. Fewer rounds keep the measurement at some milliseconds there.
  ceilings_.fp64_operations_per_second = rate(LaunchMultiplyAdd64, 512);
  ceilings_.tensor_operations_per_second = std::max(rate(LaunchTensorHalf, 2048), rate(LaunchTensorFloat, 2048));
}

bool Device::IsBusy() const {
  Use();
  int held_up = 0;
  for (int i = 0; i < kProbes; ++i) {
    double operations = 0;
    const auto begin = std::chrono::steady_clock::now();
    CheckCuda(
        LaunchMultiplyAdd(multiprocessors_, kRateRounds, reinterpret_cast<float*>(counters_), &operations, stream_),
        "looking whether the device is busy");
    Wait();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    if (took.count() > 2 * operations / ceilings_.fp32_operations_per_second + kHeldUpSeconds) ++held_up;
  }
  return 4 * held_up >= kProbes;
}

uint64_t Device::FreeBytes() const {
  Use();
  size_t free = 0, total = 0;
  CheckCuda(cudaMemGetInfo(&free, &total), "asking for free memory");
  return free;
}

void* Device::Allocate(uint64_t bytes, const char* what) const {
  Use();
  void* memory = nullptr;
  CheckCuda(cudaMalloc(&memory, bytes), what);
  return memory;
}

void Device::Write(void* target, const void* source, uint64_t bytes) const {
  Use();
  CheckCuda(cudaMemcpyAsync(target, source, bytes, cudaMemcpyHostToDevice, stream_), "copying to the device");
  Wait();
}

void Device::Read(void* target, const void* source, uint64_t bytes) const {
  Use();
  CheckCuda(cudaMemcpyAsync(target, source, bytes, cudaMemcpyDeviceToHost, stream_), "copying from the device");
  Wait();
}

void Device::Fill(void* target, uint8_t value, uint64_t bytes) const {
  Use();
  CheckCuda(cudaMemsetAsync(target, value, bytes, stream_), "filling memory");
}

void Device::Draw(const std::vector<DrawTask>& tasks) const {
  Use();
  for (size_t at = 0; at < tasks.size(); at += kMostTasks)
    CheckCuda(LaunchDraw(Part(tasks, at), tasks_, stream_), "drawing inputs");
}

void Device::FlushCache() const {
  Use();
  CheckCuda(cudaMemsetAsync(flush_, 0, flush_bytes_, stream_), "flushing the cache");
}

void Device::Wait() const { CheckCuda(cudaStreamSynchronize(stream_), "waiting for the device"); }

void Device::PreparePeek(const std::vector<Place>& places) {
  place_count_ = static_cast<uint32_t>(std::min(places.size(), kMostPlaces));
  Write(places_, places.data(), place_count_ * sizeof(Place));
}

std::vector<uint8_t> Device::Peek() const {
  Use();
  CheckCuda(LaunchGather(places_, place_count_, peeked_, stream_), "looking at outputs");
  std::vector<uint8_t> bytes(size_t{place_count_} * kPeekBytes);
  Read(bytes.data(), peeked_, bytes.size());
  return bytes;
}

std::vector<unsigned long long> Device::Mismatches(const std::vector<CompareTask>& tasks) const {
  Use();
  std::vector<unsigned long long> mismatches(tasks.size());
  for (size_t at = 0; at < tasks.size(); at += kMostTasks) {
    const std::vector<CompareTask> part = Part(tasks, at);
    CheckCuda(LaunchCompare(part, tasks_, counters_, stream_), "comparing outputs");
    Read(mismatches.data() + at, counters_, part.size() * sizeof *counters_);
  }
  return mismatches;
}

int64_t Device::Worst(const CompareTask& task) const {
  Use();
  CheckCuda(LaunchWorst(task, counters_, stream_), "comparing outputs");
  unsigned long long index = 0;
  Read(&index, counters_ + 1, sizeof index);
  return static_cast<int64_t>(~index);
}

uint64_t Device::CountOther(const void* memory, uint64_t bytes, uint8_t value) const {
  Use();
  CheckCuda(cudaMemsetAsync(counters_, 0, sizeof *counters_, stream_), "clearing a counter");
  CheckCuda(LaunchCountOther(memory, bytes, value, counters_, stream_), "looking at unused memory");
  unsigned long long count = 0;
  Read(&count, counters_, sizeof count);
  return count;
}

LentMemory::~LentMemory() { cudaFree(data_); }

void LentMemory::Release() {
  cudaFree(data_);
  data_ = nullptr;
  bytes_ = 0;
  handle_.clear();
}

void LentMemory::Reserve(uint64_t bytes) {
  if (bytes <= bytes_) return;
  Release();
  constexpr uint64_t kGrain = uint64_t{2} << 20;
  const uint64_t wanted = (bytes + kGrain - 1) / kGrain * kGrain;
  // The memory of a process that was just killed becomes free a little later.
  const auto begin = std::chrono::steady_clock::now();
  while (wanted > device_.FreeBytes() && std::chrono::steady_clock::now() - begin < kMemoryComesBack)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  if (wanted > device_.FreeBytes()) {
    throw OutOfMemory(
        "the inputs of timed calls need " + std::to_string(wanted >> 20) + " MiB of device memory, of which " +
        std::to_string(device_.FreeBytes() >> 20) +
        " MiB are free: end other programs on the device (nvidia-smi lists them), choose another, or lower "
        "evaluator_cuda's memory_mib or the problem's timing size");
  }
  void* const data = device_.Allocate(wanted, "allocating memory to lend");
  cudaIpcMemHandle_t handle;
  const cudaError_t status = cudaIpcGetMemHandle(&handle, data);
  if (status != cudaSuccess) cudaFree(data);
  CheckCuda(status, "making device memory available to other processes");
  data_ = static_cast<uint8_t*>(data);
  bytes_ = wanted;
  handle_.assign(reinterpret_cast<const uint8_t*>(&handle), reinterpret_cast<const uint8_t*>(&handle) + sizeof handle);
}

}  // namespace kgrpo::evaluator_cuda
