// Reads the kernels of cheats/, honest/ and bugs/ and what their first lines say of them, and compares an evaluation
// with that. Shared by sim_test.cc and gpu_test.cc. A kernel file begins with lines of these forms:
//
//   // problem: tests/evaluator/problems/affine    the problem's folder, relative to the repository
//   // hack: what it does and what it hopes to gain        (cheats/)
//   // style: what is unusual about it                     (honest/)
//   // cuda: VERDICT [VERDICT...]          any of these from the evaluator with a GPU
//   // sim: VERDICT [VERDICT...]           any of these from the evaluator without one
//   // speedup: at most 1.1                where the verdict is `correct`: over the reference
//   // least: 49 us: why                  where sim says `correct`: no modelled time is less. By a count of its own,
//   from
//                                         the kernel's loops, of what the busiest multiprocessor must do
//   // most: 24 us: why                   likewise: no more
//   // needs: namespaces                  where a sandbox without them, as auto allows, cannot do that
//   // never: TEXT                         must not be in the diagnosis
//   // says: TEXT                          must be in that of the evaluator without a GPU
//   // open: sim: why                      the evaluator without a GPU misses it so far; sim_test fails once it does
//   not
//   // differ: why                         the evaluators' verdicts on it need not agree as agreement.h says
//
// A file of bugs/ holds one mistake, as it is made in earnest, for the checks of the interpreter. Behind problem: it
// has
//
//   // bug: what is wrong
//   // twin: honest/row_sum_double_buffer  the same done correctly
//   // finding: VERDICT in KERNEL: TEXT, TEXT...   what the diagnosis names: each text is in it
//
// and `// found` at the end of each line that the diagnosis names: of a race, those of both threads.
#ifndef KGRPO_TESTS_JUDGING_CATALOGUE_H
#define KGRPO_TESTS_JUDGING_CATALOGUE_H

#include <map>
#include <optional>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "evaluator_shared/kernel_evaluation.h"

namespace kgrpo::judging {

// What a diagnosis of a file of bugs/ must name.
struct Wanted {
  std::string kernel;
  std::vector<std::string> texts;
  std::set<int> lines;
};

struct Entry {
  std::string name;                                          // "cheats/01_side_stream"
  std::string source;                                        // the whole file
  std::string problem;                                       // its folder, absolute
  std::map<std::string, std::vector<std::string>> verdicts;  // by evaluator: "cuda", "sim"
  std::string open;                                          // why
  std::optional<double> most_speedup;
  std::optional<double> least_seconds, most_seconds;  // modelled
  std::vector<std::string> never, says;
  std::string differ;
  std::string twin;  // bugs/: the name of the entry that does it correctly, or ""
  Wanted wanted;     // bugs/
  bool is_cheat = false;
  bool needs_namespaces = false;
};
void PrintTo(const Entry& entry, std::ostream* out);  // for GoogleTest

// All files of cheats/ and honest/, by name. Throws std::runtime_error that names file and line where a header is
// malformed.
const std::vector<Entry>& Catalogue();

// All files of bugs/, likewise. Only the evaluator without a GPU has a verdict on them: what a GPU makes of a race is
// chance.
const std::vector<Entry>& Bugs();

// The entry's name as a test's: without characters that GoogleTest forbids.
std::string TestName(const Entry& entry);

// What is not as the entry says of `evaluator`, or "". `speedup` is asked for where the verdict is `correct`; 0:
// unknown.
std::string Amiss(const Entry& entry, const std::string& evaluator, const evaluator::KernelEvaluation& evaluation,
                  double speedup);

// What the diagnosis of an entry of bugs/ leaves out or has wrong, or "": verdict, kernel, line, array, kind of access;
// of a race both threads, who are not the same, and both lines.
std::string AmissInFinding(const Entry& entry, const evaluator::KernelEvaluation& evaluation);

}  // namespace kgrpo::judging

#endif
