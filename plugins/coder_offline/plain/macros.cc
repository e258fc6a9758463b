// Expands macros in the device functions of a source, where a reader of tokens would not see what they do.
#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "coder_offline/plain/source.h"

namespace kgrpo::coder_offline {
namespace {

using cuda_source::Lex, cuda_source::LexedSource;

using cuda_source::Token;

constexpr int kDeepest = 16;                    // macros in macros
constexpr size_t kMostAdded = size_t{1} << 20;  // characters by which a source may grow

struct Macro {
  std::optional<std::vector<std::string>> parameters;  // of a function-like one
  std::string body;
  bool hides = false, simple = true;
};

bool Hides(std::string_view body) {
  for (const std::string_view word :
       {"[", "&", "=", "return", "__sync", "__shared__", "__global__", "<<<", "threadIdx", "blockIdx", "++", "--"}) {
    if (body.find(word) != std::string_view::npos) return true;
  }
  return false;
}

// Reads "#define NAME(a, b) body".
std::optional<std::pair<std::string, Macro>> ReadDefine(std::string_view directive) {
  const LexedSource lexed = Lex(directive.substr(1));
  const std::vector<Token>& tokens = lexed.tokens;
  if (tokens.size() < 2 || !tokens[0].Is("define")) return std::nullopt;
  Macro macro;
  size_t body = 2;
  if (tokens.size() > 2 && tokens[2].Is("(") && tokens[2].begin == tokens[1].end) {
    macro.parameters.emplace();
    for (body = 3; body < tokens.size() && !tokens[body].Is(")"); ++body) {
      if (tokens[body].kind == Token::Kind::kIdentifier) macro.parameters->emplace_back(tokens[body].text);
      macro.simple = macro.simple && !tokens[body].Is(".");
    }
    ++body;
  }
  if (body < tokens.size()) macro.body = directive.substr(1 + tokens[body].begin);
  macro.hides = Hides(macro.body);
  for (size_t i = body; i < tokens.size(); ++i) {
    macro.simple = macro.simple && tokens[i].text != "#" && tokens[i].text != tokens[1].text;
  }
  return std::pair(std::string(tokens[1].text), macro);
}

// The macro's body with its arguments in place of its parameters; cut off once it has more than `most` characters.
std::string Substituted(const Macro& macro, const std::vector<std::string>& arguments, size_t most) {
  const LexedSource lexed = Lex(macro.body);
  std::string text;
  size_t at = 0;
  for (const Token& token : lexed.tokens) {
    const auto parameter = std::find(macro.parameters->begin(), macro.parameters->end(), token.text);
    if (token.kind != Token::Kind::kIdentifier || parameter == macro.parameters->end()) continue;
    text +=
        macro.body.substr(at, token.begin - at) + arguments[static_cast<size_t>(parameter - macro.parameters->begin())];
    at = token.end;
    if (text.size() > most) break;
  }
  return text + macro.body.substr(at);
}

// By token: inside the body of a device function.
std::vector<bool> InDeviceFunctions(const std::vector<Token>& tokens) {
  std::vector<bool> inside(tokens.size());
  int depth = 0;
  bool marked = false;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const Token& token = tokens[i];
    if (token.Is("{") && (marked || depth > 0)) ++depth;
    if (token.Is("}") && depth > 0) --depth;
    inside[i] = depth > 0;
    if (depth > 0) continue;
    if (token.Is("__global__") || token.Is("__device__")) marked = true;
    if (token.Is(";") || token.Is("}")) marked = false;
  }
  return inside;
}

// The arguments of a macro's use, whose parenthesis is token `open`, and its last token. No arguments where they do not
// match the parameters.
std::optional<std::vector<std::string>> Arguments(const std::string& text, const std::vector<Token>& tokens,
                                                  size_t open, const Macro& macro, size_t* last) {
  std::vector<std::string> arguments;
  int depth = 0;
  size_t begin = open + 1;
  for (size_t i = open; i < tokens.size(); ++i) {
    const bool opens = tokens[i].Is("(") || tokens[i].Is("[") || tokens[i].Is("{");
    const bool closes = tokens[i].Is(")") || tokens[i].Is("]") || tokens[i].Is("}");
    depth += opens ? 1 : closes ? -1 : 0;
    if (depth == 0 || (depth == 1 && tokens[i].Is(","))) {
      if (i > begin) arguments.push_back(text.substr(tokens[begin].begin, tokens[i - 1].end - tokens[begin].begin));
      begin = i + 1;
    }
    if (depth != 0) continue;
    *last = i;
    if (arguments.size() != macro.parameters->size()) return std::nullopt;
    return arguments;
  }
  return std::nullopt;
}

}  // namespace

std::string ExpandMacros(std::string text, std::set<std::string, std::less<>>* hidden) {
  text = cuda_source::RemoveSplices(text);
  std::map<std::string, Macro, std::less<>> macros;
  const LexedSource definitions = Lex(text);
  for (const Token& token : definitions.tokens) {
    if (token.kind != Token::Kind::kDirective) continue;
    const auto read = ReadDefine(token.text);
    if (!read) continue;
    const auto [macro, added] = macros.insert(*read);
    if (!added && macro->second.body != read->second.body) macro->second.simple = false;
    if (!added) macro->second.hides = macro->second.hides || read->second.hides;
  }
  std::erase_if(macros, [](const auto& macro) { return !macro.second.hides; });
  const size_t most = text.size() + kMostAdded;
  for (int pass = 0; pass < kDeepest; ++pass) {
    const LexedSource lexed = Lex(text);
    const std::vector<Token>& tokens = lexed.tokens;
    const std::vector<bool> inside = InDeviceFunctions(tokens);
    std::string expanded;
    size_t at = 0;
    for (size_t i = 0; i < tokens.size() && expanded.size() <= most; ++i) {
      const auto found =
          inside[i] && tokens[i].kind == Token::Kind::kIdentifier ? macros.find(tokens[i].text) : macros.end();
      if (found == macros.end() || !found->second.simple) continue;
      const Macro& macro = found->second;
      size_t last = i;
      std::string body = macro.body;
      if (macro.parameters) {
        if (i + 1 >= tokens.size() || !tokens[i + 1].Is("(")) continue;
        const auto arguments = Arguments(text, tokens, i + 1, macro, &last);
        if (!arguments) continue;
        body = Substituted(macro, *arguments, most);
      }
      expanded += text.substr(at, tokens[i].begin - at) + body;
      at = tokens[last].end;
      i = last;
    }
    if (at == 0 || expanded.size() > most) break;
    text = expanded + text.substr(at);
  }
  for (const auto& [name, macro] : macros) hidden->insert(name);  // those that are left in device functions
  return text;
}

}  // namespace kgrpo::coder_offline
