#include "cuda_source/declarations.h"

#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <utility>

#include "cuda_source/conditionals.h"

namespace kgrpo::cuda_source {
namespace {

using Kind = Token::Kind;

SourceReader ReaderOf(const std::string& file, const std::string& text) {
  try {
    return SourceReader(text);
  } catch (const NotUnderstood& not_understood) {
    throw Error(KGRPO_ERROR_INVALID, file + ":1: " + not_understood.what);
  }
}

void AddWords(std::string_view text, std::set<std::string>* words) {
  const LexedSource lexed = Lex(text);
  for (const Token& token : lexed.tokens) {
    if (token.kind == Kind::kIdentifier) words->emplace(token.text);
    if (token.kind == Kind::kDirective) AddWords(ReadDirective(token.text).rest, words);  // a macro within a function
  }
}

}  // namespace

int CudaFunction::IndexOf(const std::string& parameter) const {
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i].name == parameter) return static_cast<int>(i);
  }
  return -1;
}

CudaSource::CudaSource(std::string file, const std::string& text)
    : file_(std::move(file)), text_(WithoutInactive(text).text), reader_(ReaderOf(file_, text_)) {
  try {
    ReadItems();
  } catch (const NotUnderstood& not_understood) {
    Fail(not_understood);
  }
}

const CudaFunction* CudaSource::Find(const std::string& name) const {
  for (const CudaFunction& function : functions_) {
    if (function.name == name) return &function;
  }
  return nullptr;
}

std::string CudaSource::ValueOf(const std::string& name) const {
  for (const auto* values : {&macros_, &values_}) {
    if (const auto found = values->find(name); found != values->end()) return found->second;
  }
  return "";
}

std::string CudaSource::TextOf(size_t begin, size_t end) const {
  return begin >= end ? "" : text_.substr(reader_.At(begin).begin, reader_.At(end - 1).end - reader_.At(begin).begin);
}

std::string CudaSource::PlaceOf(size_t token) const {
  const SourcePlace place = FilePlaceOf(token);
  return place.file + ":" + std::to_string(place.line);
}

int CudaSource::LineOf(size_t token) const { return FilePlaceOf(token).line; }

SourcePlace CudaSource::FilePlaceOf(size_t token) const {
  const size_t offset = token < reader_.size() ? reader_.At(token).begin : text_.size();
  const auto line = std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(offset), '\n');
  return PlacesOfLines(text_, file_)[static_cast<size_t>(line)];
}

void CudaSource::Fail(const NotUnderstood& not_understood) const {
  size_t token = 0;
  while (token < reader_.size() && reader_.At(token).end <= not_understood.offset) ++token;
  Fail(token, not_understood.what + ": not understood; write a plainer form");
}

void CudaSource::Fail(size_t token, const std::string& message) const {
  throw Error(KGRPO_ERROR_INVALID, PlaceOf(token) + ": " + message);
}

void CudaSource::ReadItems() {
  std::vector<std::string> scopes = {""};
  for (size_t i = 0; i < reader_.size();) {
    const Token& token = reader_.At(i);
    const bool linkage = token.Is("extern") && i + 2 < reader_.size() && reader_.At(i + 1).kind == Kind::kString &&
                         reader_.At(i + 2).Is("{");
    const bool inline_namespace = token.Is("inline") && i + 1 < reader_.size() && reader_.At(i + 1).Is("namespace");
    if (token.kind == Kind::kDirective) {
      ReadDirective(i++);
    } else if (linkage) {
      items_.push_back({i, i + 3, {}, true});
      scopes.push_back(scopes.back());
      i += 3;
    } else if (token.Is("namespace") || inline_namespace) {
      const size_t inside = reader_.SkipNamespaceHead(i, reader_.size());
      const bool alias = reader_.At(inside - 1).Is(";");
      items_.push_back({i, inside, {}, !alias});
      if (alias) items_.back().names.emplace(reader_.At(i + 1).text);
      const std::string name = TextOf(i + (inline_namespace ? 2 : 1), inside - 1);
      if (!alias) scopes.push_back(scopes.back() + (name.empty() ? "" : name + "::"));
      i = inside;
    } else if (token.Is("}") || token.Is(";")) {
      items_.push_back({i, i + 1, {}, token.Is("}")});
      if (token.Is("}") && scopes.size() > 1) scopes.pop_back();
      ++i;
    } else {
      Declaration declaration;
      try {
        declaration = reader_.ReadDeclaration(i, reader_.size());
      } catch (const NotUnderstood&) {  // kept as it is; a function in it cannot be drafted
        declaration.for_both = true;
        declaration.end = reader_.SkipToSemicolon(i, reader_.size());
      }
      AddDeclaration(i, declaration, scopes.back());
      i = declaration.end;
    }
  }
}

void CudaSource::ReadDirective(size_t token) {
  const Directive directive = kgrpo::cuda_source::ReadDirective(reader_.At(token).text);
  const std::string word(directive.word), rest(directive.rest);
  const LexedSource lexed = Lex(rest);
  Item item = {token, token + 1, {}, true};
  if (word == "define" && !lexed.tokens.empty()) {
    const std::string name(lexed.tokens[0].text);
    const bool call =
        lexed.tokens.size() > 1 && lexed.tokens[1].Is("(") && lexed.tokens[1].begin == lexed.tokens[0].end;
    macros_[name] = call || lexed.tokens.size() < 2 ? "" : rest.substr(lexed.tokens[1].begin);
    item.always = false;
    item.names.insert(name);
  } else if (word == "pragma" && rest.starts_with("once")) {
    item.always = false;
  }
  items_.push_back(std::move(item));
}

void CudaSource::AddDeclaration(size_t begin, const Declaration& declaration, const std::string& scope) {
  items_.push_back({begin, declaration.end, NamesOf(begin, declaration), false});
  if (declaration.body == 0 || declaration.parameters == 0) {
    items_.back().always = reader_.At(begin).Is("using") && reader_.At(begin + 1).Is("namespace");
    return AddValues(begin, declaration.end);
  }
  CudaFunction function;
  function.name = declaration.name;
  function.scope = scope;
  function.kernel = declaration.global;
  function.device = declaration.device;
  function.is_template = declaration.is_template;
  function.extern_c = reader_.At(begin).Is("extern") && reader_.At(begin + 1).kind == Kind::kString;
  function.returns_void = false;
  for (size_t t = begin; t < declaration.parameters; ++t)
    function.returns_void = function.returns_void || reader_.At(t).Is("void");
  function.parameters = ReadParameters(declaration.parameters);
  function.begin = begin;
  function.body = declaration.body;
  function.end = declaration.end;
  if (function.is_template) ReadTemplateParameters(&function);
  items_.back().always = function.name.rfind("operator", 0) == 0 && function.device;
  functions_.push_back(std::move(function));
}

void CudaSource::AddValues(size_t begin, size_t end) {
  const auto name = [this](size_t i) { return std::string(reader_.At(i).text); };
  bool constant = false;
  if (reader_.At(begin).Is("typedef")) values_[name(end - 2)] = TextOf(begin + 1, end - 2);
  for (size_t i = begin; i + 1 < end; ++i) {
    constant = constant || reader_.At(i).Is("const") || reader_.At(i).Is("constexpr") || reader_.At(i).Is("using");
    if (!constant || !reader_.At(i).Is("=") || i == begin) continue;
    size_t last = i + 1;
    while (last < end && !reader_.At(last).Is(";") && !reader_.At(last).Is(",")) ++last;
    values_[name(i - 1)] = TextOf(i + 1, last);
  }
}

std::set<std::string> CudaSource::NamesOf(size_t begin, const Declaration& declaration) const {
  std::set<std::string> names;
  if (declaration.parameters != 0 && !declaration.type && !declaration.is_typedef) {
    if (!declaration.for_both) names.insert(declaration.name);
    return names;
  }
  const auto at = [this](size_t i) -> const Token& { return reader_.At(i); };
  for (size_t i = begin; i + 1 < declaration.end; ++i) {
    const bool keyword = at(i).Is("struct") || at(i).Is("class") || at(i).Is("union") || at(i).Is("enum");
    if (keyword || (at(i).Is("using") && i == begin)) {
      size_t name = i + 1;
      while (name + 1 < declaration.end && (at(name).Is("class") || at(name).Is("struct") || at(name).Is("alignas") ||
                                            at(name).Is("__align__") || at(name).Is("(")))
        name = at(name).Is("(") ? reader_.SkipGroup(name, declaration.end) : name + 1;
      names.emplace(at(name).text);
    }
    if (at(i).Is("{") && at(begin).Is("enum")) AddWords(TextOf(i, declaration.end), &names);
    const Token& next = at(i + 1);
    const bool ends = next.Is("=") || next.Is(";") || next.Is("[") || next.Is(",") || next.Is("{");
    if (at(i).kind == Kind::kIdentifier && ends) names.emplace(at(i).text);
    if (at(i).Is("{") || at(i).Is("[") || at(i).Is("("))
      i = reader_.SkipGroup(i, declaration.end) - 1;
    else if (at(i).Is("template"))
      i = reader_.SkipAngles(i + 1, declaration.end) - 1;
  }
  return names;
}

std::string CudaSource::NeededBy(const CudaFunction& function, const std::function<bool(const std::string&)>& allowed,
                                 bool keep_lines) const {
  std::vector<bool> kept(items_.size());
  std::set<size_t> left_out;  // headers
  std::set<std::string> words = {function.name};
  for (bool more = true; more;) {
    more = false;
    for (size_t i = 0; i < items_.size(); ++i) {
      const Item& item = items_[i];
      const bool used =
          std::any_of(item.names.begin(), item.names.end(), [&](const auto& n) { return words.contains(n); });
      if (kept[i] || !(item.always || used)) continue;
      const std::string text = TextOf(item.begin, item.end);
      if (reader_.At(item.begin).kind == Kind::kDirective) {
        const auto [word, rest] = kgrpo::cuda_source::ReadDirective(text);
        if (word == "line" && !keep_lines) continue;
        if (word == "include" && !allowed(text)) {
          left_out.insert(i);
          continue;
        }
        AddWords(rest, &words);
      } else {
        AddWords(text, &words);
      }
      kept[i] = more = true;
    }
  }
  std::string text;
  size_t from = 0;
  for (size_t i = 0; i < items_.size(); ++i) {
    const size_t begin = reader_.At(items_[i].begin).begin, end = reader_.At(items_[i].end - 1).end;
    if (i == 0) text += text_.substr(0, from = begin);  // the file's comment
    const std::string item = text_.substr(from, end - from);
    const auto lines = static_cast<size_t>(std::count(item.begin(), item.end(), '\n'));
    text += kept[i] ? item : std::string(keep_lines ? lines : 0, '\n');
    if (!left_out.empty() && i == *left_out.begin())
      text += (keep_lines ? "" : "\n") + std::string("#include <cstdint>");
    from = end;
  }
  return text + text_.substr(from);
}

void CudaSource::ReadTemplateParameters(CudaFunction* function) const {
  const size_t open = function->begin + 1, close = reader_.SkipAngles(open, function->end) - 1;
  size_t name = 0, value = 0;
  for (size_t i = open + 1; i <= close; ++i) {
    const Token& token = reader_.At(i);
    if (i == close || token.Is(",")) {
      if (name != 0)
        function->template_parameters.emplace_back(reader_.At(name).text, value == 0 ? "" : TextOf(value, i));
      name = value = 0;
    } else if (token.Is("=") && value == 0) {
      value = i + 1;
    } else if (token.kind == Kind::kIdentifier && value == 0) {
      name = i;
    } else if (token.Is("(")) {
      i = reader_.SkipGroup(i, close) - 1;
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
      if (in_default || token.Is("__restrict__") || token.Is("__restrict") || token.Is("volatile") ||
          token.Is("__grid_constant__"))
        continue;
      if (parameter.pointer && token.Is("*")) words.insert(words.begin(), "*");  // a type that no problem has
      if (token.Is("*") || token.Is("[")) parameter.pointer = true;
      if (token.Is("[")) i = reader_.SkipGroup(i, close) - 1;
      if (token.Is("const") && !parameter.pointer) parameter.constant = true;
      if (token.kind == Kind::kIdentifier && !token.Is("const") && !token.Is("std")) {
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

}  // namespace kgrpo::cuda_source
