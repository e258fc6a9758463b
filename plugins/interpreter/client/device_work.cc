#include "interpreter/client/device_work.h"

#include <cstring>

#include "interpreter/client/connection.h"

namespace kgrpo::interpreter {
namespace {

constexpr size_t kChunk = size_t{1} << 20;

bool IsDevice(const void* pointer) { return (reinterpret_cast<uintptr_t>(pointer) >> 47) != 0; }

uint64_t DeviceAddressOf(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); }

// A request of a copy; `continues`: see Request.
Reply AskCopy(Operation operation, bool continues, uint64_t a, uint64_t b, uint64_t c, const void* payload,
              size_t payload_bytes, void* target, size_t capacity) {
  const Request request = {static_cast<uint32_t>(operation), continues ? 1u : 0u, a, b, c, payload_bytes};
  return kgrpo_ask(request, payload, nullptr, 0, target, capacity);
}

int CopyToDevice(uint64_t target, const void* source, size_t bytes, bool continues) {
  const char* from = static_cast<const char*>(source);
  for (size_t done = 0; done < bytes; done += kChunk) {
    const size_t part = bytes - done < kChunk ? bytes - done : kChunk;
    const Reply reply = AskCopy(Operation::kWrite, continues, target + done, 0, 0, from + done, part, nullptr, 0);
    if (reply.error != kCudaSuccess) return reply.error;
  }
  return kCudaSuccess;
}

int CopyToHost(void* target, uint64_t source, size_t bytes, bool continues) {
  char* to = static_cast<char*>(target);
  for (size_t done = 0; done < bytes; done += kChunk) {
    const size_t part = bytes - done < kChunk ? bytes - done : kChunk;
    const Reply reply = AskCopy(Operation::kRead, continues, source + done, part, 0, nullptr, 0, to + done, part);
    if (reply.error != kCudaSuccess) return reply.error;
  }
  return kCudaSuccess;
}

int CopyRow(void* target, const void* source, size_t bytes, int kind, bool continues) {
  const bool to_device = IsDevice(target), from_device = IsDevice(source);
  // 0 host-host, 1 host-device, 2 device-host, 3 device-device, 4 by address
  if (kind < 0 || kind > 4) return kCudaInvalidMemcpyDirection;
  if (kind != 4 && (((kind & 1) != 0) != to_device || (kind >= 2) != from_device)) return kCudaInvalidValue;
  if (to_device && from_device)
    return AskCopy(Operation::kCopy, continues, DeviceAddressOf(target), DeviceAddressOf(source), bytes, nullptr, 0,
                   nullptr, 0)
        .error;
  if (to_device) return CopyToDevice(DeviceAddressOf(target), source, bytes, continues);
  if (from_device) return CopyToHost(target, DeviceAddressOf(source), bytes, continues);
  std::memmove(target, source, bytes);
  return kCudaSuccess;
}

int CopyAll(Work work) {
  // Rows, and slices, that follow each other on both sides are copied at once.
  if (work.rows > 1 && work.target_pitch == work.bytes && work.source_pitch == work.bytes) {
    work.bytes *= work.rows;
    work.rows = 1;
  }
  if (work.rows == 1 && work.slices > 1 && work.target_slice == work.bytes && work.source_slice == work.bytes) {
    work.bytes *= work.slices;
    work.slices = 1;
  }
  for (size_t slice = 0; slice < work.slices; ++slice) {
    for (size_t row = 0; row < work.rows; ++row) {
      void* target = static_cast<char*>(work.target) + slice * work.target_slice + row * work.target_pitch;
      const void* source = static_cast<const char*>(work.source) + slice * work.source_slice + row * work.source_pitch;
      const int error = CopyRow(target, source, work.bytes, work.detail, slice + row > 0);
      if (error != kCudaSuccess) return error;
    }
  }
  return kCudaSuccess;
}

}  // namespace

int MakeLaunch(const void* function, CudaDim3 grid, CudaDim3 block, void** arguments, size_t shared, bool cooperative,
               Work* work) {
  KnownKernel* kernel = FindKernel(function);
  const int error = Resolve(kernel);
  if (error != kCudaSuccess) return error;
  work->kind = Work::Kind::kLaunch;
  work->kernel = kernel;
  work->parameters.assign(kernel->reply.parameter_bytes, 0);
  for (uint32_t i = 0; i < kernel->reply.parameters; ++i) {
    const KernelParameterReply& parameter = kernel->parameters[i];
    std::memcpy(work->parameters.data() + parameter.offset, arguments[i], parameter.size);
  }
  work->launch = {
      kernel->index, cooperative ? 1u : 0u, {grid.x, grid.y, grid.z}, {block.x, block.y, block.z}, shared, 0};
  return kCudaSuccess;
}

Work MakeCopy(void* target, const void* source, size_t bytes, int kind) {
  Work work;
  work.kind = Work::Kind::kCopy;
  work.target = target;
  work.source = source;
  work.bytes = bytes;
  work.detail = kind;
  return work;
}

Work MakeSet(void* target, int value, size_t bytes) {
  Work work;
  work.kind = Work::Kind::kSet;
  work.target = target;
  work.bytes = bytes;
  work.detail = value & 0xff;
  return work;
}

int SymbolAddress(const void* symbol, uint64_t* address, uint64_t* bytes) {
  const char* name = VariableName(symbol);
  if (name == nullptr) return kCudaInvalidSymbol;
  const Reply reply = Ask(Operation::kGlobal, 0, 0, 0, name, std::strlen(name), bytes, sizeof *bytes);
  *address = reply.value;
  return reply.error;
}

int MakeSymbolCopy(const void* symbol, void* host, size_t bytes, size_t offset, int kind, bool to_symbol, Work* work) {
  uint64_t address = 0, size = 0;
  const int error = SymbolAddress(symbol, &address, &size);
  if (error != kCudaSuccess) return error;
  if (offset > size || bytes > size - offset) return kCudaInvalidValue;
  void* device = reinterpret_cast<void*>(address + offset);
  *work = to_symbol ? MakeCopy(device, host, bytes, kind) : MakeCopy(host, device, bytes, kind);
  return kCudaSuccess;
}

int Run(const Work& work) {
  switch (work.kind) {
    case Work::Kind::kCopy: return CopyAll(work);
    case Work::Kind::kSet:
      return Ask(Operation::kMemset, DeviceAddressOf(work.target), static_cast<uint64_t>(work.detail), work.bytes)
          .error;
    case Work::Kind::kLaunch: break;
  }
  const Request request = {static_cast<uint32_t>(Operation::kLaunch),  0, 0, 0, 0,
                           sizeof work.launch + work.parameters.size()};
  return kgrpo_ask(request, &work.launch, work.parameters.data(), work.parameters.size(), nullptr, 0).error;
}

}  // namespace kgrpo::interpreter
