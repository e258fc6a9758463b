// The declarations of a CUDA file: launchers, kernels and device functions with their parameters, and which parts of
// the file a function needs. Used to draft a problem, and to judge a file whose host code asks for more than kernels
// may.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cuda_source/own_headers.h"  // SourcePlace
#include "cuda_source/reader.h"

namespace kgrpo::cuda_source {

struct FunctionParameter {
  std::string type;  // without const, * and __restrict__: "float", "unsigned int"
  std::string name;
  bool pointer = false;
  bool constant = false;  // what it points to
};

struct CudaFunction {
  std::string name;
  std::string scope;                    // its namespaces: "ns::"
  bool kernel = false, device = false;  // neither: host code
  bool extern_c = false, returns_void = false, is_template = false;
  std::vector<std::pair<std::string, std::string>> template_parameters;  // name and default; "" without one
  std::vector<FunctionParameter> parameters;
  size_t begin = 0, body = 0, end = 0;  // tokens: the first, the "{", the one after the "}"

  // -1 where it has no parameter of that name.
  int IndexOf(const std::string& parameter) const;
};

class CudaSource {
 public:
  // `file` names it in errors. Branches that no compiler reads are not read here. Throws Error(KGRPO_ERROR_INVALID), as
  // `file:line: message`, where it is not understood.
  CudaSource(std::string file, const std::string& text);
  CudaSource(const CudaSource&) = delete;
  CudaSource& operator=(const CudaSource&) = delete;

  const std::string& text() const { return text_; }
  const SourceReader& tokens() const { return reader_; }
  const std::vector<CudaFunction>& functions() const { return functions_; }
  const CudaFunction* Find(const std::string& name) const;  // null when there is none

  // The number or word that `constexpr int kBins = 1024;`, a #define, `using T = float;` or a typedef gives a name; ""
  // where there is none.
  std::string ValueOf(const std::string& name) const;
  bool IsMacro(const std::string& name) const { return macros_.contains(name); }

  // The part of the text that `function` needs: without other functions, variables and macros, and without the
  // #includes for which `allowed` (of the directive's text) is false. <cstdint>, which most headers include, stands in
  // place of the first of those. `keep_lines`: on the same lines, with the #line directives; else without them.
  std::string NeededBy(const CudaFunction& function, const std::function<bool(const std::string&)>& allowed,
                       bool keep_lines) const;

  // The text from token `begin` to before token `end`.
  std::string TextOf(size_t begin, size_t end) const;
  // "file.cu:12", of the file or of a header in it.
  std::string PlaceOf(size_t token) const;
  int LineOf(size_t token) const;
  [[noreturn]] void Fail(size_t token, const std::string& message) const;
  [[noreturn]] void Fail(const NotUnderstood& not_understood) const;

 private:
  // A declaration at namespace scope, a directive, or a bracket of a namespace.
  struct Item {
    size_t begin, end;
    std::set<std::string> names;  // that it declares
    bool always;                  // kept without a use
  };

  SourcePlace FilePlaceOf(size_t token) const;
  void ReadItems();
  void ReadDirective(size_t token);
  void AddDeclaration(size_t begin, const Declaration& declaration, const std::string& scope);
  void AddValues(size_t begin, size_t end);
  std::set<std::string> NamesOf(size_t begin, const Declaration& declaration) const;
  std::vector<FunctionParameter> ReadParameters(size_t open) const;
  void ReadTemplateParameters(CudaFunction* function) const;

  const std::string file_, text_;
  const SourceReader reader_;
  std::vector<Item> items_;
  std::vector<CudaFunction> functions_;
  std::map<std::string, std::string> macros_;  // name to its value; "" for those with parameters
  std::map<std::string, std::string> values_;  // of constants and aliases
};

}  // namespace kgrpo::cuda_source
