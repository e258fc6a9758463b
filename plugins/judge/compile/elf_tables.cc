#include "judge/compile/elf_tables.h"

#include <elf.h>
#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace kgrpo::evaluator {
namespace {

// Attributes of the section .nv.info that ptxas writes: a byte for the format, a byte for the attribute, two bytes; in
// the long format those are the size of what follows, here the index of a symbol and a number.
constexpr uint8_t kLongFormat = 4;
constexpr uint8_t kRegisters = 0x2f, kFrameBytes = 0x11, kStackBytes = 0x12;

constexpr unsigned char kIsKernel = 0x10;  // in st_other

// From compute capability 9.0 on, a kernel's section of shared memory begins with what the system reserves.
constexpr uint64_t kReservedShared = 1024;

[[noreturn]] void Fail(const std::string& what) {
  throw Error(KGRPO_ERROR_INVALID, "the compiled object is malformed: " + what);
}

template <typename T>
T ReadAt(std::string_view bytes, uint64_t offset, const char* what) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) Fail(what);
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

std::string_view Slice(std::string_view bytes, uint64_t offset, uint64_t size, const char* what) {
  if (offset > bytes.size() || bytes.size() - offset < size) Fail(what);
  return bytes.substr(offset, size);
}

struct Sections {
  std::vector<Elf64_Shdr> headers;
  std::string_view names;
};

Sections ReadSections(std::string_view object) {
  const auto header = ReadAt<Elf64_Ehdr>(object, 0, "header");
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_ident[EI_DATA] != ELFDATA2LSB || header.e_shentsize != sizeof(Elf64_Shdr)) {
    Fail("not a 64-bit ELF file");
  }
  Sections sections;
  for (uint64_t i = 0; i < header.e_shnum; ++i) {
    sections.headers.push_back(ReadAt<Elf64_Shdr>(object, header.e_shoff + i * sizeof(Elf64_Shdr), "section table"));
  }
  if (header.e_shstrndx >= sections.headers.size()) Fail("section names");
  const Elf64_Shdr& names = sections.headers[header.e_shstrndx];
  sections.names = Slice(object, names.sh_offset, names.sh_size, "section names");
  return sections;
}

std::string_view NameAt(std::string_view names, uint64_t offset) {
  if (offset >= names.size()) return {};
  const std::string_view rest = names.substr(offset);
  return rest.substr(0, rest.find('\0'));
}

std::string_view BytesOf(std::string_view object, const Elf64_Shdr& section) {
  if (section.sh_type == SHT_NOBITS) return {};
  return Slice(object, section.sh_offset, section.sh_size, "section");
}

struct Symbol {
  Elf64_Sym entry;
  std::string_view name;
};

// The symbols of the tables of one type, SHT_SYMTAB or SHT_DYNSYM.
std::vector<Symbol> SymbolsOf(std::string_view object, const Sections& sections, uint32_t type) {
  std::vector<Symbol> symbols;
  for (const Elf64_Shdr& header : sections.headers) {
    if (header.sh_type != type || header.sh_link >= sections.headers.size()) continue;
    const std::string_view table = BytesOf(object, header), names = BytesOf(object, sections.headers[header.sh_link]);
    for (uint64_t at = 0; at + sizeof(Elf64_Sym) <= table.size(); at += sizeof(Elf64_Sym)) {
      const auto entry = ReadAt<Elf64_Sym>(table, at, "symbol table");
      symbols.push_back({entry, NameAt(names, entry.st_name)});
    }
  }
  return symbols;
}

template <typename Wanted>
std::vector<std::string> DynamicSymbolsWhere(std::string_view object, Wanted wanted) {
  std::vector<std::string> names;
  for (const Symbol& symbol : SymbolsOf(object, ReadSections(object), SHT_DYNSYM)) {
    if (wanted(symbol.entry)) names.emplace_back(symbol.name);
  }
  return names;
}

// Calls `found` with each attribute of .nv.info that has a symbol's index and a number.
template <typename Found>
void ForEachAttribute(std::string_view info, Found found) {
  for (uint64_t at = 0; at + 4 <= info.size();) {
    const auto format = ReadAt<uint8_t>(info, at, ".nv.info"), attribute = ReadAt<uint8_t>(info, at + 1, ".nv.info");
    const auto bytes = ReadAt<uint16_t>(info, at + 2, ".nv.info");
    at += 4;
    if (format != kLongFormat) continue;
    if (bytes == 8)
      found(attribute, ReadAt<uint32_t>(info, at, ".nv.info"), ReadAt<uint32_t>(info, at + 4, ".nv.info"));
    at += bytes;
  }
}

// Bytes of the local arrays that the PTX of a kernel declares: ".local .align 8 .b8 __local_depot0[64];".
uint64_t LocalArrayBytes(std::string_view ptx, const std::string& kernel) {
  const size_t entry = ptx.find(".entry " + kernel + "(");
  if (entry == std::string_view::npos) return 0;
  std::string_view body = ptx.substr(entry);
  body = body.substr(0, body.find("\n}"));
  uint64_t bytes = 0;
  for (size_t at = body.find(".local "); at != std::string_view::npos; at = body.find(".local ", at + 1)) {
    const std::string declaration(body.substr(at, body.find(';', at) - at));
    const size_t type = declaration.find(".b"), count = declaration.find('[');
    if (type == std::string::npos || count == std::string::npos) continue;
    bytes += std::strtoull(declaration.c_str() + type + 2, nullptr, 10) / 8 *
             std::strtoull(declaration.c_str() + count + 1, nullptr, 10);
  }
  return bytes;
}

}  // namespace

std::vector<std::string_view> SectionsOf(std::string_view object, std::string_view name) {
  const Sections sections = ReadSections(object);
  std::vector<std::string_view> found;
  for (const Elf64_Shdr& header : sections.headers) {
    if (NameAt(sections.names, header.sh_name) == name && header.sh_type != SHT_NOBITS)
      found.push_back(BytesOf(object, header));
  }
  return found;
}

std::vector<std::string> DefinedFunctions(std::string_view object) {
  return DynamicSymbolsWhere(object, [](const Elf64_Sym& symbol) {
    return ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && symbol.st_shndx != SHN_UNDEF;
  });
}

std::vector<std::string> UndefinedSymbols(std::string_view object) {
  return DynamicSymbolsWhere(object, [](const Elf64_Sym& symbol) { return symbol.st_shndx == SHN_UNDEF; });
}

uint64_t VariableBytesOf(std::string_view cubin) {
  const Sections sections = ReadSections(cubin);
  uint64_t bytes = 0;
  for (const Symbol& symbol : SymbolsOf(cubin, sections, SHT_SYMTAB)) {  // ptxas cuts a section's size to 32 bits
    const size_t section = symbol.entry.st_shndx;
    if (ELF64_ST_TYPE(symbol.entry.st_info) == STT_OBJECT && section < sections.headers.size() &&
        NameAt(sections.names, sections.headers[section].sh_name).starts_with(".nv.global"))
      bytes += std::min(symbol.entry.st_size, UINT64_MAX - bytes);
  }
  return bytes;
}

std::map<std::string, KernelUsage> UsageOf(std::string_view cubin, std::string_view ptx) {
  const Sections sections = ReadSections(cubin);
  const std::vector<Symbol> symbols = SymbolsOf(cubin, sections, SHT_SYMTAB);
  const auto is_kernel = [](const Symbol& symbol) {
    return ELF64_ST_TYPE(symbol.entry.st_info) == STT_FUNC && (symbol.entry.st_other & kIsKernel) != 0;
  };
  std::map<std::string, KernelUsage> usage;
  for (const Symbol& symbol : symbols) {
    if (is_kernel(symbol)) usage[std::string(symbol.name)];
  }
  const auto in_int = [](uint64_t number) { return static_cast<int>(std::min<uint64_t>(number, INT32_MAX)); };
  std::map<std::string, uint64_t> shared, constants;
  uint64_t constants_of_all = 0, reserved = 0;
  for (const Elf64_Shdr& header : sections.headers) {
    const std::string_view name = NameAt(sections.names, header.sh_name);
    constexpr std::string_view kShared = ".nv.shared.", kConstants = ".nv.constant";
    if (name == ".nv.info") {
      ForEachAttribute(BytesOf(cubin, header), [&](uint8_t attribute, uint32_t of, uint32_t number) {
        if (of >= symbols.size() || !is_kernel(symbols[of])) return;
        KernelUsage& kernel = usage[std::string(symbols[of].name)];
        if (attribute == kRegisters) kernel.registers = in_int(number);
        if (attribute == kStackBytes) kernel.stack_bytes = in_int(number);
        if (attribute == kFrameBytes) kernel.spill_bytes = in_int(number);
      });
    } else if (name.starts_with(kShared)) {
      if (name == ".nv.shared.reserved.0") reserved = kReservedShared;
      shared[std::string(name.substr(kShared.size()))] += header.sh_size;
    } else if (name.starts_with(kConstants)) {
      // Bank 0 is the launch's own, with the parameters; bank 4 the linker's table of addresses.
      const std::string_view bank =
          name.substr(kConstants.size(), name.find('.', 1 + kConstants.size()) - kConstants.size());
      if (bank == "0" || bank == "4") continue;
      const size_t dot = kConstants.size() + bank.size();
      if (dot < name.size())
        constants[std::string(name.substr(dot + 1))] += header.sh_size;
      else
        constants_of_all += header.sh_size;
    }
  }
  for (auto& [name, kernel] : usage) {
    kernel.static_shared_bytes = in_int(shared[name] - std::min(shared[name], reserved));
    kernel.constant_bytes = in_int(constants_of_all + constants[name]);
    if (kernel.spill_bytes > 0) {
      const auto frame = static_cast<uint64_t>(kernel.spill_bytes);
      kernel.spill_bytes = in_int(frame - std::min(frame, LocalArrayBytes(ptx, name)));
    }
  }
  return usage;
}

}  // namespace kgrpo::evaluator
