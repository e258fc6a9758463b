#include "evaluator_cuda/worker/placement.h"

#include <elf.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "evaluator_cuda/worker/runtime.h"

namespace kgrpo::evaluator_cuda {
namespace {

constexpr int kCopies = 8;  // all of them are far once in 256 processes, where a variable fits in one piece of memory
constexpr uint64_t kMostBytes = uint64_t{128} << 10;  // more than that lies near and far in equal parts anyway
constexpr uint64_t kLineBytes = 128;
constexpr uint32_t kMostLines = 256;  // of a variable that are read
constexpr int kWalks = 5;

// touch: makes the L2 slice that owns each line hold it, without changing it, from many multiprocessors. walk: reads
// the lines one after the other in one thread and says how many cycles that took.
constexpr char kProbe[] = R"(
.version 7.5
.target sm_75
.address_size 64
.visible .entry touch(.param .u64 base, .param .u32 lines) {
  .reg .pred %p;
  .reg .b32 %r<5>;
  .reg .b64 %d<3>;
  mov.u32 %r0, %ctaid.x;
  mov.u32 %r1, %ntid.x;
  mov.u32 %r2, %tid.x;
  mad.lo.u32 %r3, %r0, %r1, %r2;
  ld.param.u32 %r4, [lines];
  setp.ge.u32 %p, %r3, %r4;
  @%p ret;
  ld.param.u64 %d0, [base];
  mul.wide.u32 %d1, %r3, 128;
  add.u64 %d2, %d0, %d1;
  red.global.add.u32 [%d2], 0;
  ret;
}
.visible .entry walk(.param .u64 base, .param .u32 lines, .param .u32 zero, .param .u64 cycles) {
  .reg .pred %p;
  .reg .b32 %i, %n, %z, %sum, %v;
  .reg .b64 %base, %a, %s, %begin, %end, %out;
  ld.param.u64 %base, [base];
  ld.param.u32 %n, [lines];
  ld.param.u32 %z, [zero];
  ld.param.u64 %out, [cycles];
  mov.u32 %i, 0;
  mov.u32 %sum, 0;
  mov.u64 %begin, %clock64;
next:
  mul.wide.u32 %a, %i, 128;
  add.u64 %a, %a, %base;
  mul.wide.u32 %s, %sum, %z;
  add.u64 %a, %a, %s;
  ld.global.cg.u32 %v, [%a];
  mul.lo.u32 %sum, %v, %z;
  add.u32 %i, %i, 1;
  setp.lt.u32 %p, %i, %n;
  @%p bra next;
  setp.ne.u32 %p, %sum, 0;
  @%p bra done;
  mov.u64 %end, %clock64;
  sub.u64 %end, %end, %begin;
  st.global.u64 [%out], %end;
done:
  ret;
}
)";

struct Variable {
  std::string name;
  uint64_t bytes;
};

// Of a cubin's symbol table. Nothing where it is not what it should be: then the placement is left to chance.
std::vector<Variable> VariablesOf(const char* code, size_t bytes) {
  std::vector<Variable> variables;
  const auto inside = [bytes](uint64_t begin, uint64_t count) { return begin <= bytes && count <= bytes - begin; };
  Elf64_Ehdr header;
  if (!inside(0, sizeof header)) return {};
  std::memcpy(&header, code, sizeof header);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_shentsize != sizeof(Elf64_Shdr) ||
      !inside(header.e_shoff, uint64_t{header.e_shnum} * sizeof(Elf64_Shdr)))
    return {};
  std::vector<Elf64_Shdr> sections(header.e_shnum);
  std::memcpy(sections.data(), code + header.e_shoff, sections.size() * sizeof(Elf64_Shdr));
  const auto text = [&](size_t section, uint64_t offset) -> std::string {
    if (section >= sections.size() || offset >= sections[section].sh_size ||
        !inside(sections[section].sh_offset, sections[section].sh_size))
      return "";
    const char* begin = code + sections[section].sh_offset + offset;
    return {begin, strnlen(begin, sections[section].sh_size - offset)};
  };
  for (const Elf64_Shdr& table : sections) {
    if (table.sh_type != SHT_SYMTAB || !inside(table.sh_offset, table.sh_size)) continue;
    for (uint64_t at = 0; at + sizeof(Elf64_Sym) <= table.sh_size; at += sizeof(Elf64_Sym)) {
      Elf64_Sym symbol;
      std::memcpy(&symbol, code + table.sh_offset + at, sizeof symbol);
      if (ELF64_ST_TYPE(symbol.st_info) != STT_OBJECT || symbol.st_shndx >= sections.size()) continue;
      const std::string section = text(header.e_shstrndx, sections[symbol.st_shndx].sh_name);
      if (section.rfind(".nv.global", 0) != 0) continue;
      variables.push_back({text(table.sh_link, symbol.st_name), symbol.st_size});
    }
  }
  return variables;
}

// Measures how soon a copy's variables are read. `works` is false where the device cannot run it.
class Probe {
 public:
  Probe() {
    works_ = RUNTIME(cudaLibraryLoadData)(&library_, kProbe, nullptr, nullptr, 0, nullptr, nullptr, 0) == cudaSuccess &&
             RUNTIME(cudaLibraryGetKernel)(&touch_, library_, "touch") == cudaSuccess &&
             RUNTIME(cudaLibraryGetKernel)(&walk_, library_, "walk") == cudaSuccess &&
             RUNTIME(cudaMalloc)(&cycles_, sizeof(uint64_t)) == cudaSuccess;
  }
  ~Probe() {
    RUNTIME(cudaFree)(cycles_);
    if (library_ != nullptr) RUNTIME(cudaLibraryUnload)(library_);
    RUNTIME(cudaGetLastError)();  // ours, not the candidate's
  }
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;

  bool works() const { return works_; }

  // Median cycles of reading all of the library's variables; the largest number where that fails.
  uint64_t Cycles(cudaLibrary_t library, const std::vector<Variable>& variables) {
    uint64_t sum = 0;
    for (const Variable& variable : variables) {
      void* address = nullptr;
      size_t bytes = 0;
      if (RUNTIME(cudaLibraryGetGlobal)(&address, &bytes, library, variable.name.c_str()) != cudaSuccess) return kNever;
      const uint64_t begin = reinterpret_cast<uint64_t>(address) / 4 * 4;
      const auto lines = static_cast<uint32_t>(std::min<uint64_t>((bytes + kLineBytes - 1) / kLineBytes, kMostLines));
      std::array<uint64_t, kWalks> walks = {};
      for (uint64_t& cycles : walks) {
        if (lines == 0 || !Walk(begin, lines, &cycles)) return kNever;
      }
      std::nth_element(walks.begin(), walks.begin() + kWalks / 2, walks.end());
      sum += walks[kWalks / 2];
    }
    return sum;
  }

 private:
  static constexpr uint64_t kNever = std::numeric_limits<uint64_t>::max();

  bool Walk(uint64_t base, uint32_t lines, uint64_t* cycles) {
    uint32_t zero = 0;
    std::array<void*, 2> touched = {&base, &lines};
    std::array<void*, 4> walked = {&base, &lines, &zero, &cycles_};
    const auto launch = RUNTIME(cudaLaunchKernel);
    return launch(touch_, dim3(lines), dim3(1), touched.data(), 0, nullptr) == cudaSuccess &&
           launch(walk_, dim3(1), dim3(1), walked.data(), 0, nullptr) == cudaSuccess &&
           RUNTIME(cudaMemcpy)(cycles, cycles_, sizeof *cycles, cudaMemcpyDeviceToHost) == cudaSuccess;
  }

  bool works_ = false;
  cudaLibrary_t library_ = nullptr;
  cudaKernel_t touch_ = nullptr, walk_ = nullptr;
  void* cycles_ = nullptr;
};

cudaError_t LoadCopy(const char* code, cudaLibrary_t* loaded) {
  return RUNTIME(cudaLibraryLoadData)(loaded, code, nullptr, nullptr, 0, nullptr, nullptr, 0);
}

}  // namespace

cudaError_t LoadNearest(const char* code, size_t bytes, cudaLibrary_t* loaded) {
  if (const cudaError_t status = LoadCopy(code, loaded); status != cudaSuccess) return status;
  const std::vector<Variable> variables = VariablesOf(code, bytes);
  uint64_t all = 0;
  for (const Variable& variable : variables) all += std::min(variable.bytes, kMostBytes + 1);
  if (all == 0 || all > kMostBytes) return cudaSuccess;
  Probe probe;
  if (!probe.works()) return cudaSuccess;
  uint64_t best = probe.Cycles(*loaded, variables);
  std::vector<cudaLibrary_t> others;
  for (int i = 1; i < kCopies; ++i) {
    cudaLibrary_t copy = nullptr;
    if (LoadCopy(code, &copy) != cudaSuccess) break;
    const uint64_t cycles = probe.Cycles(copy, variables);
    if (cycles < best) {
      best = cycles;
      std::swap(*loaded, copy);
    }
    others.push_back(copy);  // unloaded at the end, so that the next copy lies elsewhere
  }
  for (cudaLibrary_t other : others) RUNTIME(cudaLibraryUnload)(other);
  return cudaSuccess;
}

}  // namespace kgrpo::evaluator_cuda
