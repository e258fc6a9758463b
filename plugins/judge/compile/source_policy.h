// Checks a candidate's includes before any compiler sees it. If this check is evaded, the sandbox still holds.
#pragma once

#include <string>
#include <vector>

#include "judge/compile/candidate_form.h"  // CandidateForm

namespace kgrpo::evaluator {

// A source whose #includes were looked at. Allowed are headers of the CUDA toolkit's core, of the C++ standard library,
// of a library that the problem allows ("cub", "thrust", ...), and those that the source's form asks for.
struct CheckedIncludes {
  // Why the source is refused: a sentence with the line of an #include outside of all conditionals; or "".
  std::string why;
  // To be compiled: with an #error in place of each #include that is not allowed. Only the compiler knows whether it
  // reads the branch that has it.
  std::string source;
  std::vector<std::string> conditional;  // why each of those is refused

  // Returns why the source is refused by a compiler's messages: it has read such an #error. Otherwise "".
  std::string WhyRefused(const std::string& diagnosis) const;
};

CheckedIncludes CheckIncludes(const std::string& source, const std::vector<std::string>& allowed_libraries,
                              CandidateForm form = CandidateForm::kLaunch);

// Returns everything that CheckIncludes allows with these libraries, as text: part of a compile cache's key.
std::string IncludePolicy(const std::vector<std::string>& allowed_libraries);

// Returns why a compiled source's undefined symbols are refused, or "": looking functions up by name, raw system calls
// and the CUDA driver's interface are not allowed, except for encoding tensor maps. Checked on the object, since a
// source may hide names in macros.
std::string CheckSymbols(const std::vector<std::string>& undefined);

}  // namespace kgrpo::evaluator
