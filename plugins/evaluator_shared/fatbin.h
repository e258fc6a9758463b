// Finds the PTX that nvcc put into a shared object (section .nv_fatbin, built with --no-compress). The object comes
// from a compiler that worked on hostile source, so every offset is checked.
#ifndef KGRPO_EVALUATOR_SHARED_FATBIN_H
#define KGRPO_EVALUATOR_SHARED_FATBIN_H

#include <string>
#include <string_view>
#include <vector>

namespace kgrpo::evaluator {

// The PTX texts in the object, in order. Throws Error(KGRPO_ERROR_INVALID) for bytes that are not a little-endian
// 64-bit ELF file with well-formed fat binaries, or whose PTX is compressed.
std::vector<std::string> ExtractPtx(std::string_view object);

// The functions that the object's dynamic symbol table defines, by their linker names.
std::vector<std::string> DefinedFunctions(std::string_view object);

// The symbols that it leaves to others.
std::vector<std::string> UndefinedSymbols(std::string_view object);

}  // namespace kgrpo::evaluator

#endif
