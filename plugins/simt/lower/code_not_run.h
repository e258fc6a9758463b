// Finds the source lines that no launch ran, and the comparisons that lead away from them. Used by the evaluators, to
// try further sizes and to name what a verdict does not cover.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "simt/lower/module.h"
#include "simt/state/coverage.h"

namespace kgrpo::simt {

// The code behind a branch that was reached, and never went there; or a comparison of a parameter with a constant, of
// which no launch had the other outcome.
struct CodeNotRun {
  uint32_t kernel = 0;
  // The lines from there on that no instruction of any kernel ran, each with its file as the PTX names it, in order.
  struct Line {
    std::string file;
    int line = 0;
    bool operator==(const Line&) const = default;
    bool operator<(const Line& other) const { return std::tie(file, line) < std::tie(other.file, other.line); }
  };
  std::vector<Line> lines;
  // Where the branch compares an integer with a constant: "> 4096" runs the code.
  struct Boundary {
    int parameter = -1;         // of the kernel, if that is what is compared
    const char* relation = "";  // as in C
    int64_t constant = 0;
    int64_t addend = 0;  // the parameter plus this is compared
    bool operator==(const Boundary&) const = default;
  };
  std::optional<Boundary> boundary;
};

// `by_kernel`: of all launches so far. A kernel that was never launched is one entry, without a boundary.
std::vector<CodeNotRun> FindCodeNotRun(const Module& module, const std::vector<Coverage>& by_kernel);

// The line of an instruction, which has an index of Coverage::edges; line 0 if it is not known.
CodeNotRun::Line LineAt(const Module& module, uint32_t kernel, uint32_t edge);

}  // namespace kgrpo::simt
