// Turns a linker's name into the name of the C++ function. A candidate may have chosen the linker's name.
#pragma once

#include <cxxabi.h>

#include <cstdlib>
#include <string>

namespace kgrpo {

// Returns "k(float const*)" for "_Z1kPKf". Returns "" for a name that is not of C++ or whose text may be too long: each
// repeated part, such as "S0_" or "T_", can double it.
inline std::string Demangled(const std::string& linker_name) {
  constexpr size_t kLongest = 1024, kMostRepeats = 12;
  if (!linker_name.starts_with("_Z") || linker_name.size() > kLongest) return "";
  size_t repeats = 0;
  for (const char c : linker_name) repeats += c == 'S' || c == 'T' ? 1 : 0;
  if (repeats > kMostRepeats) return "";
  int status = 0;
  char* const text = abi::__cxa_demangle(linker_name.c_str(), nullptr, nullptr, &status);
  std::string name = status == 0 && text != nullptr ? text : "";
  std::free(text);
  return name;
}

}  // namespace kgrpo
