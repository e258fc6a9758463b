// Reads the kernels of cheats/ and honest/ and what their first lines say of them, and compares a judgement with that.
// Shared by sim_test.cc and gpu_test.cc. A kernel file begins with lines of these forms:
//
//   // problem: tests/evaluator/problems/affine    the problem's folder, relative to the repository
//   // hack: what it does and what it hopes to gain        (cheats/)
//   // style: what is unusual about it                     (honest/)
//   // cuda: VERDICT [VERDICT...]          any of these from the judge with a GPU
//   // sim: VERDICT [VERDICT...]           any of these from the judge without one
//   // speedup: at most 1.1                where the verdict is `right`: over the reference
//   // needs: namespaces                  where a sandbox without them, as auto allows, cannot do that
//   // never: TEXT                         must not be in the diagnosis
//   // open: cuda|sim: why                 that judge does not see to it yet; a test says so and is skipped
//   // differ: why                         the judges' verdicts on it need not agree as agreement.h says
#ifndef KGRPO_TESTS_JUDGING_CATALOGUE_H
#define KGRPO_TESTS_JUDGING_CATALOGUE_H

#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "evaluator_shared/judgement.h"

namespace kgrpo::judging {

struct Entry {
  std::string name;                                          // "cheats/01_side_stream"
  std::string source;                                        // the whole file
  std::string problem;                                       // its folder, absolute
  std::map<std::string, std::vector<std::string>> verdicts;  // by judge: "cuda", "sim"
  std::map<std::string, std::string> open;                   // by judge: why
  std::optional<double> most_speedup;
  std::vector<std::string> never;
  std::string differ;
  bool is_cheat = false;
  bool needs_namespaces = false;
};
void PrintTo(const Entry& entry, std::ostream* out);  // for GoogleTest

// All files of both folders, by name. Throws std::runtime_error that names file and line where a header is malformed.
const std::vector<Entry>& Catalogue();

// The entry's name as a test's: without characters that GoogleTest forbids.
std::string TestName(const Entry& entry);

// What is not as the entry says of `judge`, or "". `speedup` is asked for where the verdict is `right`; 0: unknown.
std::string Amiss(const Entry& entry, const std::string& judge, const evaluator::Judgement& judgement, double speedup);

}  // namespace kgrpo::judging

#endif
