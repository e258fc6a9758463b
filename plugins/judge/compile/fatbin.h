// Finds the PTX and the machine code that nvcc put into a shared object (section .nv_fatbin, built with --no-compress),
// and reads ELF tables. The bytes come from a compiler that worked on hostile source, so every offset is checked. Used
// by the compile routes and by tests of them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace kgrpo::evaluator {

// The PTX texts in the object, in order. Throws Error(KGRPO_ERROR_INVALID) for bytes that are not a little-endian
// 64-bit ELF file with well-formed fat binaries, or whose PTX is compressed.
std::vector<std::string> ExtractPtx(std::string_view object);

// The machine code in the object, an ELF file a device; throws likewise.
std::vector<std::string> ExtractCubins(std::string_view object);

// The sections of an ELF file by name, in bytes; throws likewise.
std::map<std::string, uint64_t> SectionSizes(std::string_view object);

// The functions that the object's dynamic symbol table defines, by their linker names.
std::vector<std::string> DefinedFunctions(std::string_view object);

// The symbols that it leaves to others.
std::vector<std::string> UndefinedSymbols(std::string_view object);

}  // namespace kgrpo::evaluator
