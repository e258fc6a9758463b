// Notes on the lines of a kernel's source: findings that name a line, and the compiler's errors. Used by
// kernel_report.cc and, for its lines, by what `kgrpo-host eval` prints.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace kgrpo::evaluator {

// By line, from 1, the lines of a diagnosis that name it: "kernel 'scan', line 15: ... at line 17" is of 15 and 17,
// "kernel.cu(2): error: ..." is of 2.
std::map<unsigned, std::vector<std::string>> NotesByLine(const std::string& diagnosis);

// The lines of a text, without their ends.
std::vector<std::string> SplitLines(const std::string& source);

}  // namespace kgrpo::evaluator
