// What a person calls a function of C++: its name and types from the linker's name, which a candidate may have chosen.
#pragma once

#include <cxxabi.h>

#include <cstdlib>
#include <string>

namespace kgrpo {

// "k(float const*)" of "_Z1kPKf"; "" of a name that is none of C++'s, or may stand for too long a text: a part that is
// named again, as "S0_" or "T_", can double it each time.
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
