// Text shared by the kinds that work row by row: the threads of a row, the loop over it, and the reduction of partial
// results.
// Used by rows.cc and normalise.cc.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "coder_offline/skeleton.h"

namespace kgrpo::coder_offline {

// The threads that process a row: one thread, a warp (shuffle) or a block (cooperate). A block reduces its partial
// results by a tree in shared memory or, with both options, by shuffles.
enum class RowOwner { kThread, kWarp, kBlock };
RowOwner OwnerOf(const Schedule& schedule);

// The text of an operand's element during a sweep: "x_row[col]", "x_vector.y", "gamma[col]", "scale".
using Element = std::function<std::string(const std::string& name)>;

// A loop of the owner's threads over the columns. `statements` writes the work on one column. With a vector width the
// arrays named in `loads` are loaded as vectors. `store`, if not empty, names an array of the row: the statements
// assign its elements through Element, and the loop then stores them as a vector.
std::string SweepText(const Program& program, const std::vector<std::string>& loads, const std::string& store,
                      const std::function<std::string(const Element&)>& statements);

// The arrays among a function's parameters that vary along the row, and so are loaded in a sweep.
std::vector<std::string> RowOperands(const Program& program, const Function& function);

// A call of `function` for one column: parameters in `known` are passed by their own names, others are operands or
// scalars.
std::string CallOnRow(const Program& program, const Function& function, const Element& element,
                      const std::vector<std::string>& known);

// A helper `<prefix>_<name>(float value)` that reduces the values of the owner's threads and gives each the result.
// `join` writes the combination of two values; `identity` is its neutral element. Empty for RowOwner::kThread.
std::string JoinHelper(const Program& program, const std::string& name, const std::string& identity,
                       const std::function<std::string(const std::string&, const std::string&)>& join);
// "block_sum(text)", "warp_sum(text)", or `text` itself for RowOwner::kThread.
std::string JoinCall(const Program& program, const std::string& name, const std::string& text);

// The kernel's first lines: the row's index, and pointers to the row.
std::string RowStart(const Program& program);
// The launch function's body.
std::string RowLaunch(const Program& program, const std::string& kernel, const std::string& shared_bytes);
// "a thread a row", "a warp a row, joined by shuffles", ...
std::string OwnerComment(const Schedule& schedule);

// The rules that all row kinds share, then `more`.
std::vector<Rule> RowRules(const std::string& what_is_swept, const std::vector<Rule>& more);
constexpr const char* kWholeRow =
    "a thread needs its whole row; access becomes coalesced when a block or a warp shares the row";
// The missing functions, parameters and layout of a row kernel; empty if none.
std::string MissingRowParts(const Program& program, const std::vector<std::string>& functions);

}  // namespace kgrpo::coder_offline
