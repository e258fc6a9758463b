#include "evaluator_shared/draft/cuda_source.h"

#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <utility>

namespace kgrpo::evaluator {
namespace {

using Kind = Token::Kind;

SourceReader ReaderOf(const std::string& file, const std::string& text) {
  try {
    return SourceReader(text);
  } catch (const NotUnderstood& not_understood) {
    throw Error(KGRPO_ERROR_INVALID, file + ":1: " + not_understood.what);
  }
}

}  // namespace

int CudaFunction::IndexOf(const std::string& parameter) const {
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i].name == parameter) return static_cast<int>(i);
  }
  return -1;
}

CudaSource::CudaSource(std::string file, std::string text)
    : file_(std::move(file)), text_(std::move(text)), reader_(ReaderOf(file_, text_)) {
  try {
    ReadFunctions();
  } catch (const NotUnderstood& not_understood) {
    const auto line =
        std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(not_understood.offset), '\n');
    throw Error(KGRPO_ERROR_INVALID,
                file_ + ":" + std::to_string(line + 1) + ": " + not_understood.what +
                    ": not understood; move it to a header that reference.cu needs not, or write a "
                    "plainer form");
  }
}

const CudaFunction* CudaSource::Find(const std::string& name) const {
  for (const CudaFunction& function : functions_) {
    if (function.name == name) return &function;
  }
  return nullptr;
}

std::string CudaSource::TextOf(size_t begin, size_t end) const {
  return begin >= end ? "" : text_.substr(reader_.At(begin).begin, reader_.At(end - 1).end - reader_.At(begin).begin);
}

int CudaSource::LineOf(size_t token) const {
  const size_t offset = token < reader_.size() ? reader_.At(token).begin : text_.size();
  return static_cast<int>(std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(offset), '\n')) + 1;
}

void CudaSource::Fail(size_t token, const std::string& message) const {
  throw Error(KGRPO_ERROR_INVALID, file_ + ":" + std::to_string(LineOf(token)) + ": " + message);
}

void CudaSource::ReadFunctions() {
  for (size_t i = 0; i < reader_.size();) {
    const bool opens_linkage = reader_.At(i).Is("extern") && i + 2 < reader_.size() &&
                               reader_.At(i + 1).kind == Kind::kString && reader_.At(i + 2).Is("{");
    if (opens_linkage) {
      i += 3;
    } else if (reader_.At(i).kind == Kind::kDirective || reader_.At(i).Is("}") || reader_.At(i).Is(";")) {
      ++i;
    } else if (reader_.At(i).Is("namespace")) {
      while (i < reader_.size() && !reader_.At(i).Is("{")) ++i;
      ++i;
    } else {
      const Declaration declaration = reader_.ReadDeclaration(i, reader_.size());
      if (declaration.body != 0 && declaration.parameters != 0) {
        CudaFunction function;
        function.name = declaration.name;
        function.kernel = declaration.global;
        function.device = declaration.device;
        function.is_template = declaration.is_template;
        function.extern_c = reader_.At(i).Is("extern") && reader_.At(i + 1).kind == Kind::kString;
        function.returns_void = false;
        for (size_t t = i; t < declaration.parameters; ++t)
          function.returns_void = function.returns_void || reader_.At(t).Is("void");
        function.parameters = ReadParameters(declaration.parameters);
        function.begin = i;
        function.body = declaration.body;
        function.end = declaration.end;
        functions_.push_back(std::move(function));
      }
      i = declaration.end;
    }
  }
}

std::vector<FunctionParameter> CudaSource::ReadParameters(size_t open) const {
  std::vector<FunctionParameter> parameters;
  const size_t close = reader_.SkipGroup(open, reader_.size()) - 1;
  for (size_t i = open + 1; i < close;) {
    FunctionParameter parameter;
    std::vector<std::string> words;
    bool in_default = false;
    for (; i < close && !reader_.At(i).Is(","); ++i) {
      const Token& token = reader_.At(i);
      if (token.Is("=")) in_default = true;
      if (token.Is("(")) i = reader_.SkipGroup(i, close) - 1;
      if (in_default || token.Is("__restrict__") || token.Is("__restrict") || token.Is("volatile")) continue;
      if (token.Is("*") || token.Is("[")) parameter.pointer = true;
      if (token.Is("[")) i = reader_.SkipGroup(i, close) - 1;
      if (token.Is("const") && !parameter.pointer) parameter.constant = true;
      if (token.kind == Kind::kIdentifier && !token.Is("const")) {
        words.emplace_back(token.text);
      } else if (token.Is("&") || token.Is("<")) {
        words.insert(words.begin(), std::string(token.text));  // a type that no problem has
      }
    }
    ++i;
    if (words.size() < 2) continue;  // `void`, or a parameter without a name
    parameter.name = words.back();
    for (size_t w = 0; w + 1 < words.size(); ++w) parameter.type += (w == 0 ? "" : " ") + words[w];
    parameters.push_back(std::move(parameter));
  }
  return parameters;
}

}  // namespace kgrpo::evaluator
