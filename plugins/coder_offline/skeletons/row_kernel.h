// Code shared by the kinds that work row by row: the threads of a row, the loop over it, and joining partial results.
// Used by rows.cc and normalise.cc.
#ifndef KGRPO_PLUGINS_CODER_OFFLINE_SKELETONS_ROW_KERNEL_H_
#define KGRPO_PLUGINS_CODER_OFFLINE_SKELETONS_ROW_KERNEL_H_

#include <functional>
#include <string>
#include <vector>

#include "coder_offline/skeleton.h"

namespace kgrpo::coder_offline {

// A thread walks a row by itself; or a warp does (shuffle), or a block (cooperate), whose partial results are joined by
// a tree in shared memory or, with both options, by shuffles.
enum class RowOwner { kThread, kWarp, kBlock };
RowOwner OwnerOf(const Schedule& schedule);

// The text of an operand's element during a sweep: "x_row[col]", "x_vector.y", "gamma[col]", "scale".
using Element = std::function<std::string(const std::string& name)>;

// A loop of the owner's threads over the columns. `statements` writes what is done with one column; with a vector width
// the arrays named in `loads` are loaded as vectors, and `store`, when not empty, names an array of the row that the
// statements assign element by element through Element and that is then stored as a vector.
std::string SweepText(const Program& program, const std::vector<std::string>& loads, const std::string& store,
                      const std::function<std::string(const Element&)>& statements);

// The arrays among a function's parameters that vary along the row, and so are loaded in a sweep.
std::vector<std::string> RowOperands(const Program& program, const Function& function);

// A call of `function` for one column: parameters in `known` stand for themselves, others are operands or scalars.
std::string CallOnRow(const Program& program, const Function& function, const Element& element,
                      const std::vector<std::string>& known);

// A helper `<prefix>_<name>(float value)` that joins the values of the owner's threads, so that each gets the result.
// `join` writes how two become one; `identity` is what joins with anything to itself. Empty for a thread a row.
std::string JoinHelper(const Program& program, const std::string& name, const std::string& identity,
                       const std::function<std::string(const std::string&, const std::string&)>& join);
// "block_sum(text)", "warp_sum(text)", or the text itself for a thread a row.
std::string JoinCall(const Program& program, const std::string& name, const std::string& text);

// The kernel's first lines: which row, and pointers to it.
std::string RowStart(const Program& program);
// The launch function's body.
std::string RowLaunch(const Program& program, const std::string& kernel, const std::string& shared_bytes);
// "a thread a row", "a warp a row, joined by shuffles", ...
std::string OwnerComment(const Schedule& schedule);

// The rules that all row kinds share.
std::vector<Rule> RowRules(const std::string& what_is_swept);
// Missing parameters and layout of a row kernel; empty if none.
std::string MissingRowParts(const Program& program, const std::vector<std::string>& functions);

}  // namespace kgrpo::coder_offline

#endif  // KGRPO_PLUGINS_CODER_OFFLINE_SKELETONS_ROW_KERNEL_H_
