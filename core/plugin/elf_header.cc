#include "plugin/elf_header.h"

#include <elf.h>
#include <link.h>  // ElfW

#include <cstring>
#include <fstream>
#include <optional>

namespace kgrpo {
namespace {

// The first fields have one layout in all classes: e_ident, e_type, e_machine.
using Header = ElfW(Ehdr);

std::optional<Header> ReadHeader(const std::filesystem::path& path) {
  Header header{};
  std::ifstream file(path, std::ios::binary);
  if (!file.read(reinterpret_cast<char*>(&header), sizeof(header))) return {};
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return {};
  return header;
}

std::string MachineName(unsigned machine) {
  switch (machine) {
    case EM_X86_64: return "x86-64";
    case EM_AARCH64: return "aarch64";
    case EM_386: return "32-bit x86";
    case EM_ARM: return "32-bit ARM";
    case EM_RISCV: return "RISC-V";
    case EM_PPC64: return "POWER";
    case EM_S390: return "s390";
    default: return "machine " + std::to_string(machine) + " (ELF's number)";
  }
}

// The line of a file LIBRARY.hint beside a plugin: where to get the library; "" without the file.
std::string HintOn(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  return line;
}

// True if the file's bytes contain the library's name, as its list of needed libraries does.
bool NamesLibrary(const std::filesystem::path& path, const std::string& library) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  return bytes.find(library) != std::string::npos;
}

std::string ClassName(unsigned char elf_class) {
  return elf_class == ELFCLASS64 ? "64-bit" : elf_class == ELFCLASS32 ? "32-bit" : "unknown";
}

}  // namespace

std::string ForeignElf(const std::filesystem::path& path) {
  // This program's own header shows the format that this machine loads.
  const std::optional<Header> own = ReadHeader("/proc/self/exe"), theirs = ReadHeader(path);
  if (!own || !theirs) return "";
  const bool same_order = theirs->e_ident[EI_DATA] == own->e_ident[EI_DATA];
  if (same_order && theirs->e_machine != own->e_machine)
    return "was built for " + MachineName(theirs->e_machine) + "; this machine is " + MachineName(own->e_machine);
  if (!same_order)
    return "was built for a machine of the other byte order; this machine is " + MachineName(own->e_machine);
  if (theirs->e_ident[EI_CLASS] != own->e_ident[EI_CLASS]) {
    return "was built as " + ClassName(theirs->e_ident[EI_CLASS]) + " code; this program is " +
           ClassName(own->e_ident[EI_CLASS]);
  }
  if (theirs->e_type == ET_REL) return "is an object file, not a shared library: link it with -shared";
  return "";
}

std::string PlainLinkerReason(const std::filesystem::path& path, const std::string& reason) {
  const std::string missing = ": cannot open shared object file: No such file or directory";
  const std::string undefined = ": undefined symbol: ";
  if (reason.ends_with(missing)) {
    const std::string library = reason.substr(0, reason.size() - missing.size());
    const std::string hint = HintOn(path.parent_path() / (library + ".hint"));
    return "needs " + library + ", which is not installed (" +
           (hint.empty() ? "ldd " + path.string() + " lists what it needs" : hint) + ")";
  }
  if (reason.find(undefined) == std::string::npos) return reason;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(path.parent_path(), ignored)) {
    // A needed library of another release has other symbols.
    const std::string library = entry.path().stem().string();
    if (entry.path().extension() != ".hint" || !NamesLibrary(path, library)) continue;
    return reason + ": " + library + " is of another release (" + HintOn(entry.path()) + ")";
  }
  return reason;
}

}  // namespace kgrpo
