#include "judge/compile/fatbin.h"

#include <elf.h>
#include <kgrpo/sdk/error.h>

#include <cstdint>
#include <cstring>

namespace kgrpo::evaluator {
namespace {

constexpr uint32_t kFatbinMagic = 0xba55ed50;
constexpr uint16_t kKindPtx = 1;
constexpr uint16_t kKindCubin = 2;
constexpr uint64_t kFlagCompressed = 0x2000;

// The layout that nvcc 10 to 13 write: a header for a group, then entries.
struct GroupHeader {
  uint32_t magic;
  uint16_t version;
  uint16_t header_bytes;
  uint64_t bytes;  // of all entries
};

struct EntryHeader {
  uint16_t kind;  // 1: PTX, 2: cubin
  uint16_t version;
  uint32_t header_bytes;
  uint64_t payload_bytes;
  uint32_t compressed_bytes;
  uint32_t options_offset;
  uint16_t minor, major;
  uint32_t architecture;
  uint32_t name_offset;
  uint32_t name_bytes;
  uint64_t flags;
};

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

// The payloads of one kind.
void ReadGroups(std::string_view fatbin, uint16_t kind, std::vector<std::string>& payloads) {
  uint64_t at = 0;
  while (fatbin.size() - at >= sizeof(GroupHeader)) {
    const auto group = ReadAt<GroupHeader>(fatbin, at, "fat binary");
    if (group.magic == 0) {  // padding between groups
      at += 8;
      continue;
    }
    if (group.magic != kFatbinMagic) Fail("fat binary magic");
    const std::string_view entries = Slice(fatbin, at + group.header_bytes, group.bytes, "fat binary group");
    uint64_t entry_at = 0;
    while (entries.size() - entry_at >= sizeof(EntryHeader)) {
      const auto entry = ReadAt<EntryHeader>(entries, entry_at, "fat binary entry");
      if (entry.header_bytes < sizeof(EntryHeader) || entry.payload_bytes > entries.size())
        Fail("fat binary entry size");
      const std::string_view payload =
          Slice(entries, entry_at + entry.header_bytes, entry.payload_bytes, "fat binary payload");
      if (entry.kind == kind) {
        if ((entry.flags & kFlagCompressed) != 0) Fail("compressed code");
        payloads.emplace_back(kind == kKindPtx ? payload.substr(0, payload.find('\0')) : payload);
      }
      entry_at += entry.header_bytes + entry.payload_bytes;
    }
    at += group.header_bytes + group.bytes;
    at = (at + 7) / 8 * 8;
    if (at > fatbin.size()) break;
  }
}

// The names in the dynamic symbol table of the symbols for which `wanted` holds.
template <typename Wanted>
std::vector<std::string> SymbolsWhere(std::string_view object, Wanted wanted) {
  const Sections sections = ReadSections(object);
  std::vector<std::string> symbols;
  for (const Elf64_Shdr& header : sections.headers) {
    if (header.sh_type != SHT_DYNSYM || header.sh_link >= sections.headers.size()) continue;
    const Elf64_Shdr& strings = sections.headers[header.sh_link];
    const std::string_view names = Slice(object, strings.sh_offset, strings.sh_size, "symbol names");
    for (uint64_t i = 0; i + sizeof(Elf64_Sym) <= header.sh_size; i += sizeof(Elf64_Sym)) {
      const auto symbol = ReadAt<Elf64_Sym>(object, header.sh_offset + i, "symbol table");
      if (wanted(symbol)) symbols.emplace_back(NameAt(names, symbol.st_name));
    }
  }
  return symbols;
}

std::vector<std::string> Extract(std::string_view object, uint16_t kind) {
  const Sections sections = ReadSections(object);
  std::vector<std::string> payloads;
  for (const Elf64_Shdr& header : sections.headers) {
    if (NameAt(sections.names, header.sh_name) != ".nv_fatbin" || header.sh_type == SHT_NOBITS) continue;
    ReadGroups(Slice(object, header.sh_offset, header.sh_size, ".nv_fatbin"), kind, payloads);
  }
  return payloads;
}

}  // namespace

std::vector<std::string> ExtractPtx(std::string_view object) {
  return Extract(object, kKindPtx);
}

std::vector<std::string> ExtractCubins(std::string_view object) {
  return Extract(object, kKindCubin);
}

std::map<std::string, uint64_t> SectionSizes(std::string_view object) {
  const Sections sections = ReadSections(object);
  std::map<std::string, uint64_t> sizes;
  for (const Elf64_Shdr& header : sections.headers)
    sizes[std::string(NameAt(sections.names, header.sh_name))] += header.sh_size;
  return sizes;
}

std::vector<std::string> DefinedFunctions(std::string_view object) {
  return SymbolsWhere(object, [](const Elf64_Sym& symbol) {
    return ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && symbol.st_shndx != SHN_UNDEF;
  });
}

std::vector<std::string> UndefinedSymbols(std::string_view object) {
  return SymbolsWhere(object, [](const Elf64_Sym& symbol) { return symbol.st_shndx == SHN_UNDEF; });
}

}  // namespace kgrpo::evaluator
