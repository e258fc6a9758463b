// Reads the tables of ELF files that compilers make of hostile source: a candidate's shared object and the machine code
// (cubin) of its kernels. Every offset is checked. Used by the compile routes and by tests of them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "judge/compile/compiled_kernel.h"  // KernelUsage

namespace kgrpo::evaluator {

// All functions throw Error(KGRPO_ERROR_INVALID) for bytes that are not a well-formed little-endian 64-bit ELF file.

// The contents of the sections of this name, in order; those that take no space in the file are left out.
std::vector<std::string_view> SectionsOf(std::string_view object, std::string_view name);

// Bytes of the __device__ variables in `cubin`.
uint64_t VariableBytesOf(std::string_view cubin);

// The functions that the object's dynamic symbol table defines, by their linker names.
std::vector<std::string> DefinedFunctions(std::string_view object);

// The symbols that it leaves to others.
std::vector<std::string> UndefinedSymbols(std::string_view object);

// The resources of each kernel in `cubin`, from what ptxas writes into its headers. Printed reports are not read: a
// candidate can make a compiler print anything. `ptx`: the text that ptxas got, which names the local arrays.
std::map<std::string, KernelUsage> UsageOf(std::string_view cubin, std::string_view ptx);

}  // namespace kgrpo::evaluator
