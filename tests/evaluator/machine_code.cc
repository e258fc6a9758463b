#include "machine_code.h"

#include <elf.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <stdexcept>
#include <vector>

namespace kgrpo::evaluator {
namespace {

constexpr size_t kInstructionBytes = 16;
constexpr uint32_t kAddressBank = 4;

struct Code {
  std::map<std::string, std::string> functions;  // by name: their instructions
  std::map<uint64_t, std::string> slots;         // of the table of addresses: "symbol+0"
};

template <typename T>
T At(std::string_view bytes, uint64_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) throw std::runtime_error("a cubin that is cut off");
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

std::string NameAt(std::string_view names, uint64_t offset) {
  if (offset >= names.size()) throw std::runtime_error("a cubin with a name out of range");
  return std::string(names.substr(offset, names.find('\0', offset) - offset));
}

Code ReadCode(std::string_view cubin) {
  const auto header = At<Elf64_Ehdr>(cubin, 0);
  std::vector<Elf64_Shdr> sections;
  for (uint64_t i = 0; i < header.e_shnum; ++i)
    sections.push_back(At<Elf64_Shdr>(cubin, header.e_shoff + i * sizeof(Elf64_Shdr)));
  const auto contents = [&](uint64_t section) {
    const Elf64_Shdr& of = sections.at(section);
    return of.sh_type == SHT_NOBITS ? std::string_view() : cubin.substr(of.sh_offset, of.sh_size);
  };
  const std::string_view names = contents(header.e_shstrndx);
  Code code;
  for (uint64_t i = 0; i < sections.size(); ++i) {
    const std::string name = NameAt(names, sections[i].sh_name);
    if (name.rfind(".text.", 0) == 0) code.functions[name.substr(6)] = contents(i);
    if (name != ".rela.nv.constant4") continue;
    const std::string_view entries = contents(i), symbols = contents(sections[i].sh_link);
    const std::string_view symbol_names = contents(sections.at(sections[i].sh_link).sh_link);
    for (uint64_t at = 0; at + sizeof(Elf64_Rela) <= entries.size(); at += sizeof(Elf64_Rela)) {
      const auto entry = At<Elf64_Rela>(entries, at);
      const auto symbol = At<Elf64_Sym>(symbols, ELF64_R_SYM(entry.r_info) * sizeof(Elf64_Sym));
      code.slots[entry.r_offset] = NameAt(symbol_names, symbol.st_name) + "+" + std::to_string(entry.r_addend);
    }
  }
  return code;
}

bool SameSymbol(const Code& a, uint64_t slot_a, const Code& b, uint64_t slot_b) {
  const auto in_a = a.slots.find(slot_a), in_b = b.slots.find(slot_b);
  return in_a != a.slots.end() && in_b != b.slots.end() && in_a->second == in_b->second;
}

// Whether two instructions differ only in the slot that they name: as an operand c[4][slot], or as the number that a
// MOV puts into a register for an indexed load from that bank.
bool SameButForSlots(const Code& a, std::string_view of_a, const Code& b, std::string_view of_b) {
  if (of_a.substr(0, 4) != of_b.substr(0, 4) || of_a.substr(8) != of_b.substr(8)) return false;
  const auto x = At<uint32_t>(of_a, 4), y = At<uint32_t>(of_b, 4);
  const auto bank = [](uint32_t word) { return word >> 22 & 0x1f; };
  const auto offset = [](uint32_t word) { return uint64_t{word >> 8 & 0x3fff} * 4; };
  if (bank(x) == kAddressBank && bank(y) == kAddressBank) return SameSymbol(a, offset(x), b, offset(y));
  constexpr uint16_t kMoveImmediate = 0x7802;
  return At<uint16_t>(of_a, 0) == kMoveImmediate && SameSymbol(a, x, b, y);
}

std::string Hexadecimal(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned char>(byte));
    text += digits;
  }
  return text;
}

}  // namespace

std::string MachineCodeDifference(std::string_view a, std::string_view b) {
  const Code of_a = ReadCode(a), of_b = ReadCode(b);
  for (const auto& [name, text] : of_b.functions) {
    if (of_a.functions.count(name) == 0) return name + " is in the second alone";
  }
  for (const auto& [name, text] : of_a.functions) {
    const auto other = of_b.functions.find(name);
    if (other == of_b.functions.end()) return name + " is in the first alone";
    if (text.size() != other->second.size())
      return name + " has " + std::to_string(text.size() / kInstructionBytes) + " instructions, not " +
             std::to_string(other->second.size() / kInstructionBytes);
    for (size_t at = 0; at < text.size(); at += kInstructionBytes) {
      const std::string_view x = std::string_view(text).substr(at, kInstructionBytes);
      const std::string_view y = std::string_view(other->second).substr(at, kInstructionBytes);
      if (x != y && !SameButForSlots(of_a, x, of_b, y))
        return name + ": instruction " + std::to_string(at / kInstructionBytes) + " is " + Hexadecimal(x) + ", not " +
               Hexadecimal(y);
    }
  }
  return "";
}

}  // namespace kgrpo::evaluator
