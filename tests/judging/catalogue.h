// Reads the kernels of cheats/, honest/ and bugs/ with the expectations in their first lines, and compares evaluations
// with them. Shared by sim_test.cc, gpu_test.cc and tests/evaluator/machine_code_test.cc. Honest kernels that are no
// bug's twin are packed (tests/golden/judging.tar.xz). A kernel file begins with lines of these forms:
//
//   // problem: tests/evaluator/problems/affine    the problem's folder, relative to the repository
//   // hack: what it does and what it hopes to gain        (cheats/)
//   // style: what is unusual about it                     (honest/)
//   // cuda: VERDICT [VERDICT...]          any of these from the evaluator with a GPU
//   // sim: VERDICT [VERDICT...]           any of these from the evaluator without one
//   // speedup: at most 1.1                over the reference, if the verdict is `correct`
//   // least: 49 us: why                   the shortest permitted modelled time, if sim says `correct`: counted by hand
//                                          from the kernel's loops, for the busiest multiprocessor
//   // most: 24 us: why                    likewise the longest
//   // needs: namespaces                   a sandbox without namespaces, as auto allows, cannot reach this verdict
//   // never: TEXT                         must not be in the diagnosis
//   // says: TEXT                          must be in the diagnosis of the evaluator without a GPU
//   // open: sim: why                      the evaluator without a GPU misses it; sim_test fails once it finds it
//   // differ: why                         the verdicts need not agree as agreement.h says
//
// A file of bugs/ holds one realistic mistake, for the checks of the interpreter. After problem: it has
//
//   // bug: what is wrong
//   // twin: honest/row_sum_double_buffer  the same done correctly
//   // finding: VERDICT in KERNEL: TEXT, TEXT...   the diagnosis must contain each text
//
// and `// found` at the end of each line that the diagnosis names: for a race, the lines of both threads.
//
// A kernel that differs from another one in a few lines is a .diff: of its `twin`, or of the problem's reference.cu.
// Behind the header its lines begin with a blank (the next line like this, to which `// found` may be added), - (the
// next line like this is removed) or + (added); the lines between them stay.
#ifndef KGRPO_TESTS_JUDGING_CATALOGUE_H
#define KGRPO_TESTS_JUDGING_CATALOGUE_H

#include <map>
#include <optional>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "judge/verdict/kernel_evaluation.h"

namespace kgrpo::judging {

// The content that the diagnosis of a file of bugs/ must have.
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
  std::string open;                                          // the reason given by `open:`
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

// All files of cheats/ and honest/, by name. Throws std::runtime_error with file and line if a header is malformed.
const std::vector<Entry>& Catalogue();

// All files of bugs/, likewise. Only the evaluator without a GPU judges them, since the result of a race on a GPU is
// random.
const std::vector<Entry>& Bugs();

// The entry's name without characters that GoogleTest forbids in test names.
std::string TestName(const Entry& entry);

// The difference from the entry's expectations for `evaluator`, or "". `speedup` is used if the verdict is `correct`;
// 0: unknown.
std::string Amiss(const Entry& entry, const std::string& evaluator, const evaluator::KernelEvaluation& evaluation,
                  double speedup);

// The part that the diagnosis of an entry of bugs/ lacks or has wrong, or "": verdict, kernel, line, array, kind of
// access; for a race both lines and both threads, which must differ.
std::string AmissInFinding(const Entry& entry, const evaluator::KernelEvaluation& evaluation);

}  // namespace kgrpo::judging

#endif
