// The functions of somebody's CUDA file: launchers, kernels and device functions, with their parameters. Used by what
// drafts a problem from the file.
#ifndef KGRPO_EVALUATOR_SHARED_DRAFT_CUDA_SOURCE_H
#define KGRPO_EVALUATOR_SHARED_DRAFT_CUDA_SOURCE_H

#include <cstddef>
#include <string>
#include <vector>

#include "evaluator_shared/source_reader.h"

namespace kgrpo::evaluator {

struct FunctionParameter {
  std::string type;  // without const, * and __restrict__: "float", "unsigned int"
  std::string name;
  bool pointer = false;
  bool constant = false;  // what it points to
};

struct CudaFunction {
  std::string name;
  bool kernel = false, device = false;  // neither: host code
  bool extern_c = false, returns_void = false, is_template = false;
  std::vector<FunctionParameter> parameters;
  size_t begin = 0, body = 0, end = 0;  // tokens: the first, the "{", the one after the "}"

  // -1 where it has no parameter of that name.
  int IndexOf(const std::string& parameter) const;
};

class CudaSource {
 public:
  // `file` names it in errors. Throws Error(KGRPO_ERROR_INVALID), as `file:line: message`, where it is not understood.
  CudaSource(std::string file, std::string text);
  CudaSource(const CudaSource&) = delete;
  CudaSource& operator=(const CudaSource&) = delete;

  const std::string& text() const { return text_; }
  const SourceReader& tokens() const { return reader_; }
  const std::vector<CudaFunction>& functions() const { return functions_; }
  const CudaFunction* Find(const std::string& name) const;  // null when there is none

  // The text from token `begin` to before token `end`.
  std::string TextOf(size_t begin, size_t end) const;
  int LineOf(size_t token) const;
  [[noreturn]] void Fail(size_t token, const std::string& message) const;

 private:
  void ReadFunctions();
  std::vector<FunctionParameter> ReadParameters(size_t open) const;

  const std::string file_, text_;
  const SourceReader reader_;
  std::vector<CudaFunction> functions_;
};

}  // namespace kgrpo::evaluator

#endif
