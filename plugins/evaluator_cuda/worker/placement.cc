#include "evaluator_cuda/worker/placement.h"

#include <elf.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "evaluator_cuda/worker/fast_kernels.h"
#include "evaluator_cuda/worker/runtime.h"

namespace kgrpo::evaluator_cuda {
namespace {

constexpr int kCopies = 8;  // for a variable within one piece of memory, all copies are far in one of 256 processes
constexpr uint64_t kMostBytes = uint64_t{128} << 10;  // more than that lies near and far in equal parts anyway
constexpr uint64_t kLineBytes = 128;
constexpr uint32_t kMostLines = 256;  // of a variable that are read
constexpr int kWalks = 5;

constexpr uint64_t kNever = std::numeric_limits<uint64_t>::max();

// Median cycles of reading all of the library's variables; kNever where that fails. `cycles` is on the device.
uint64_t CyclesOf(const OwnKernels& own, cudaLibrary_t library, const std::vector<DeviceVariable>& variables,
                  uint64_t* cycles) {
  uint64_t sum = 0;
  for (const DeviceVariable& variable : variables) {
    void* address = nullptr;
    size_t bytes = 0;
    if (RUNTIME(cudaLibraryGetGlobal)(&address, &bytes, library, variable.name.c_str()) != cudaSuccess) return kNever;
    auto* const lines = reinterpret_cast<uint32_t*>(reinterpret_cast<uint64_t>(address) / 4 * 4);
    const auto count = static_cast<uint32_t>(std::min<uint64_t>((bytes + kLineBytes - 1) / kLineBytes, kMostLines));
    if (count == 0) continue;
    std::array<uint64_t, kWalks> walks = {};
    for (uint64_t& walk : walks) {
      if (own.Touch(lines, count) != cudaSuccess || own.Walk(lines, count, cycles) != cudaSuccess ||
          RUNTIME(cudaMemcpy)(&walk, cycles, sizeof walk, cudaMemcpyDeviceToHost) != cudaSuccess)
        return kNever;
    }
    std::nth_element(walks.begin(), walks.begin() + kWalks / 2, walks.end());
    sum += walks[kWalks / 2];
  }
  return sum;
}

cudaError_t LoadCopy(const void* code, cudaLibrary_t* loaded) {
  return RUNTIME(cudaLibraryLoadData)(loaded, code, nullptr, nullptr, 0, nullptr, nullptr, 0);
}

bool CanLieNear(const std::vector<DeviceVariable>& variables) {
  uint64_t all = 0;
  for (const DeviceVariable& variable : variables) all += std::min(variable.bytes, kMostBytes + 1);
  return all > 0 && all <= kMostBytes;
}

}  // namespace

std::vector<DeviceVariable> VariablesOf(const char* cubin, size_t bytes) {
  std::vector<DeviceVariable> variables;
  const auto inside = [bytes](uint64_t begin, uint64_t count) { return begin <= bytes && count <= bytes - begin; };
  Elf64_Ehdr header;
  if (!inside(0, sizeof header)) return {};
  std::memcpy(&header, cubin, sizeof header);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_shentsize != sizeof(Elf64_Shdr) ||
      !inside(header.e_shoff, uint64_t{header.e_shnum} * sizeof(Elf64_Shdr)))
    return {};
  std::vector<Elf64_Shdr> sections(header.e_shnum);
  std::memcpy(sections.data(), cubin + header.e_shoff, sections.size() * sizeof(Elf64_Shdr));
  const auto text = [&](size_t section, uint64_t offset) -> std::string {
    if (section >= sections.size() || offset >= sections[section].sh_size ||
        !inside(sections[section].sh_offset, sections[section].sh_size))
      return "";
    const char* begin = cubin + sections[section].sh_offset + offset;
    return {begin, strnlen(begin, sections[section].sh_size - offset)};
  };
  for (const Elf64_Shdr& table : sections) {
    if (table.sh_type != SHT_SYMTAB || !inside(table.sh_offset, table.sh_size)) continue;
    for (uint64_t at = 0; at + sizeof(Elf64_Sym) <= table.sh_size; at += sizeof(Elf64_Sym)) {
      Elf64_Sym symbol;
      std::memcpy(&symbol, cubin + table.sh_offset + at, sizeof symbol);
      if (ELF64_ST_TYPE(symbol.st_info) != STT_OBJECT || symbol.st_shndx >= sections.size()) continue;
      const std::string section = text(header.e_shstrndx, sections[symbol.st_shndx].sh_name);
      if (section.rfind(".nv.global", 0) != 0) continue;
      variables.push_back({text(table.sh_link, symbol.st_name), symbol.st_size});
    }
  }
  return variables;
}

cudaError_t LoadNearest(const OwnKernels& own, const void* code, const std::vector<DeviceVariable>& variables,
                        cudaLibrary_t* loaded) {
  if (const cudaError_t status = LoadCopy(code, loaded); status != cudaSuccess) return status;
  void* cycles = nullptr;
  if (!CanLieNear(variables) || RUNTIME(cudaMalloc)(&cycles, sizeof(uint64_t)) != cudaSuccess) return cudaSuccess;
  uint64_t best = CyclesOf(own, *loaded, variables, static_cast<uint64_t*>(cycles));
  std::vector<cudaLibrary_t> others;
  for (int i = 1; i < kCopies; ++i) {
    cudaLibrary_t copy = nullptr;
    if (LoadCopy(code, &copy) != cudaSuccess) break;
    const uint64_t measured = CyclesOf(own, copy, variables, static_cast<uint64_t*>(cycles));
    if (measured < best) {
      best = measured;
      std::swap(*loaded, copy);
    }
    others.push_back(copy);  // unloaded at the end, so that the next copy lies elsewhere
  }
  for (cudaLibrary_t other : others) RUNTIME(cudaLibraryUnload)(other);
  RUNTIME(cudaFree)(cycles);
  RUNTIME(cudaGetLastError)();  // ours, not the candidate's
  return cudaSuccess;
}

void PlaceRegistered(const OwnKernels& own) {
  const RegisteredCode& registered = Registered();
  if (registered.used || registered.fatbins.size() != 1 || !CanLieNear(registered.variables)) return;
  cudaLibrary_t code = nullptr;
  bool whole = LoadNearest(own, registered.fatbins.front(), registered.variables, &code) == cudaSuccess;
  // All of it or nothing: a kernel there and a variable here would not be the candidate's program.
  for (const auto& [host, name] : registered.names) {
    cudaKernel_t kernel = nullptr;
    void* address = nullptr;
    size_t bytes = 0;
    whole = whole && (RUNTIME(cudaLibraryGetKernel)(&kernel, code, name.c_str()) == cudaSuccess ||
                      RUNTIME(cudaLibraryGetGlobal)(&address, &bytes, code, name.c_str()) == cudaSuccess);
  }
  if (whole)
    UseDeviceCode(code);
  else if (code != nullptr)
    RUNTIME(cudaLibraryUnload)(code);
  RUNTIME(cudaGetLastError)();  // ours
}

}  // namespace kgrpo::evaluator_cuda
