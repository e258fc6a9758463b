// A problem drafted from a user's kernel: from its signature and uses, and from the user's answers or options.
// Used by draft_problem_main.cc; the files are written by problem_text.h and oracle_text.h.
#ifndef KGRPO_TOOLS_DRAFT_DRAFT_H
#define KGRPO_TOOLS_DRAFT_DRAFT_H

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cuda_source/declarations.h"
#include "judge/problem/dtype.h"
#include "judge/problem/problem.h"  // Role

namespace kgrpo::evaluator {

using cuda_source::CudaFunction, cuda_source::CudaSource, cuda_source::FunctionParameter, cuda_source::Lex;
using cuda_source::LexedSource, cuda_source::NotUnderstood, cuda_source::SourceReader, cuda_source::Token;

struct DraftParameter {
  FunctionParameter source;  // as the file has it, its type without aliases: "float4"
  Role role = Role::kScalar;
  DType dtype = DType::kFloat32;
  int lanes = 1;                   // elements of a vector type: 4 of float4
  std::vector<std::string> shape;  // of tensors: expressions; the last is the lanes, if there are several
  std::string value;               // of scalars: a number, or a size's name
  std::string low, high;           // of integer inputs
  bool offsets = false;            // an input of offsets: x[i] and x[i + 1] are a row's begin and end
  bool added = false;              // a size that the function does not take: launcher and oracle need it
};

struct Draft {
  std::string name;
  const CudaFunction* function = nullptr;       // the launcher, or the kernel that gets one
  std::map<std::string, std::string> bindings;  // of its template parameters
  // In the function's order; a stream is left out, and is 0.
  std::vector<DraftParameter> parameters;
  std::vector<std::pair<std::string, int64_t>> sizes;  // for timing
  std::map<std::string, int64_t> multiples;            // of sizes
  std::string grid, block, shared;                     // of a kernel that gets a launcher: C++ expressions
  bool cooperative = false;                            // that kernel synchronises its grid
  std::vector<std::string> libraries;                  // that kernels may include
  std::vector<std::string> guesses;                    // sentences on guesses that a person should check

  // The number of its elements: "rows*cols".
  static std::string Elements(const DraftParameter& parameter);
};

// The command line's options: --size n=1048576 is options["size"]["n"] = "1048576"; an option without a name
// has the key "".
using DraftOptions = std::map<std::string, std::map<std::string, std::string>>;

// Asks a person: the question, and the option that answers it. Returns "" without an answer.
using Ask = std::function<std::string(const std::string& question, const std::string& option)>;

// Throws Error(KGRPO_ERROR_INVALID) where the file has no function to draft from, one has a type that problems do not
// have, or with every option that is missing.
Draft MakeDraft(const CudaSource& source, const std::string& name, const DraftOptions& options, const Ask& ask);

}  // namespace kgrpo::evaluator

#endif
