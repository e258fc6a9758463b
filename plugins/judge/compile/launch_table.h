// The launch table of a candidate in PTX: comment lines of the PTX file that say which kernels are launched, how, and
// with which arguments. The format is described in docs/judging.md. Read by Compiler and by the interpreter.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "judge/problem/expression.h"  // Expression
#include "judge/problem/problem.h"     // Problem

namespace kgrpo::evaluator {

// What a candidate's own file is called in messages: "kernel.ptx" for PTX, else "kernel.cu".
const char* OwnFileName(const std::string& source);

// Returns whether a source is PTX: its first text outside comments is a .version directive.
bool IsPtx(const std::string& source);

// An expression over the problem's sizes and integer scalars; in an argument also over the tensors' addresses.
struct TableValue {
  Expression expression;
  std::string place;             // "kernel.ptx:2:31"
  std::optional<size_t> scalar;  // of an argument: the floating scalar of the problem that is passed as it is
  bool has_address = false;      // of an argument: the expression names a tensor
};

struct TableLaunch {
  std::string entry, place;
  std::vector<TableValue> grid, block;  // 1 to 3 dimensions
  TableValue shared;                    // bytes of dynamic shared memory
  bool cooperative = false;
  bool overlaps = false;  // programmatic dependent launch
  std::vector<TableValue> arguments;
  std::vector<std::pair<std::string, TableValue>> only_at;  // launched only where these names have these values
};

// Reads the table, in the order of its lines. Throws Error(KGRPO_ERROR_INVALID) for the first mistake, as
// "kernel.ptx:LINE:COLUMN: what is wrong", and for a PTX file without a table.
std::vector<TableLaunch> ReadLaunchTable(const std::string& ptx, const Problem& problem);

}  // namespace kgrpo::evaluator
