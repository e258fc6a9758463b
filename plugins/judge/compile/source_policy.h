// Checks a candidate's includes before any compiler sees it. If this check is evaded, the sandbox still holds.
#pragma once

#include <string>
#include <vector>

#include "judge/compile/candidate_form.h"  // CandidateForm

namespace kgrpo::evaluator {

// "" where every #include names a header of the CUDA toolkit's core, of the C++ standard library, or of a library that
// the problem allows ("cub", "thrust", ...), or one that the source's form asks for. Otherwise a sentence that names
// the header, its line and why.
std::string CheckIncludes(const std::string& source, const std::vector<std::string>& allowed_libraries,
                          CandidateForm form = CandidateForm::kLaunch);

// Returns everything that CheckIncludes allows with these libraries, as text: part of a compile cache's key.
std::string IncludePolicy(const std::vector<std::string>& allowed_libraries);

// Returns why a compiled source's undefined symbols are refused, or "": looking functions up by name, raw system calls
// and the CUDA driver's interface are not allowed, except for encoding tensor maps. Checked on the object, since a
// source may hide names in macros.
std::string CheckSymbols(const std::vector<std::string>& undefined);

}  // namespace kgrpo::evaluator
