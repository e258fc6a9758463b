// Compares the function that a kernel defines with the one that was asked for. Code of another language, a method and
// other parameters show there.
#include "coder_shared/source.h"
#include "coder_shared/text.h"
#include "cuda_source/lexer.h"

#include <algorithm>
#include <vector>

namespace kgrpo::coder_shared {
namespace {

using cuda_source::Closes, cuda_source::Lex, cuda_source::Token;
using Tokens = std::vector<Token>;

// A parameter or a returned value: its type without qualifiers, as a group of types with equal bits, and how often it
// is a pointer.
struct Type {
  std::string base;  // "" if it may be anything: a name of the source
  int pointers = 0;
  std::string name = {};  // its last word
};

// Types of C and CUDA whose values have the same form; the first group that has all words.
std::string GroupOf(std::vector<std::string> words) {
  constexpr std::string_view kGroups[] = {" void ",
                                          " float ",
                                          " double ",
                                          " bool ",
                                          " char int8_t uint8_t ",
                                          " short int16_t uint16_t ",
                                          " int32_t uint32_t ",
                                          " long size_t ssize_t ptrdiff_t int64_t uint64_t ",
                                          " half __half ",
                                          " __nv_bfloat16 nv_bfloat16 "};
  const size_t all = words.size();
  std::erase_if(words, [](const std::string& word) { return word == "int" || word == "signed" || word == "unsigned"; });
  if (words.empty()) return all > 0 ? std::string(kGroups[6]) : "";
  for (const std::string_view group : kGroups) {
    if (std::all_of(words.begin(), words.end(), [&](const auto& word) { return Contains(group, " " + word + " "); }))
      return std::string(group);
  }
  return "";
}

Type TypeOf(const Tokens& tokens, size_t begin, size_t end) {
  Type type;
  std::vector<std::string> words;
  for (size_t i = begin; i < end && !tokens[i].Is("="); ++i) {
    if (tokens[i].Is("*") || tokens[i].Is("[")) ++type.pointers;
    if (tokens[i].kind != Token::Kind::kIdentifier) continue;
    if (!Contains(" const volatile struct std __restrict__ __restrict restrict ",
                  " " + std::string(tokens[i].text) + " "))
      words.emplace_back(tokens[i].text);
  }
  type.base = GroupOf(words);
  if (!words.empty()) type.name = words.back();
  if (type.base.empty() && words.size() > 1) {  // the last word is the parameter's name
    words.pop_back();
    type.base = GroupOf(words);
  }
  return type;
}

// The parameters between the parentheses `open` and `close`.
std::vector<Type> Parameters(const Tokens& tokens, const std::vector<size_t>& closes, size_t open, size_t close) {
  std::vector<Type> types;
  size_t begin = open + 1;
  int angles = 0;
  for (size_t i = begin; i <= close; ++i) {
    if (i < close && closes[i] > i && !tokens[i].Is("<")) {
      if (!tokens[i].Is("[")) i = closes[i];
      continue;
    }
    angles += tokens[i].Is("<") ? 1 : tokens[i].Is(">") ? -1 : 0;
    if (i < close && !(tokens[i].Is(",") && angles <= 0)) continue;
    const bool none = begin == i || (begin + 1 == i && tokens[begin].Is("void"));
    if (!none) types.push_back(TypeOf(tokens, begin, i));
    begin = i + 1;
  }
  return types;
}

// Where the declaration that names its function at `name` begins.
size_t BeginOf(const Tokens& tokens, size_t name) {
  size_t begin = name;
  while (begin > 0 && tokens[begin - 1].kind != Token::Kind::kDirective && !tokens[begin - 1].Is(";") &&
         !tokens[begin - 1].Is("{") && !tokens[begin - 1].Is("}"))
    --begin;
  return begin;
}

bool TakesTensors(const Tokens& tokens, size_t begin, size_t end) {
  return std::any_of(tokens.begin() + static_cast<std::ptrdiff_t>(begin),
                     tokens.begin() + static_cast<std::ptrdiff_t>(end),
                     [](const Token& token) { return token.Is("Tensor") || token.Is("TensorView"); });
}

}  // namespace

std::string Misfit(std::string_view source, std::string_view signature) {
  const Tokens wanted = Lex(signature).tokens, tokens = Lex(source).tokens;
  const std::vector<size_t> wanted_closes = Closes(wanted), closes = Closes(tokens);
  const std::string function = cuda_source::FunctionName(signature);
  size_t wanted_name = 0;
  while (wanted_name < wanted.size() && !wanted[wanted_name].Is(function)) ++wanted_name;
  if (function.empty() || wanted_name + 1 >= wanted.size() || wanted_closes[wanted_name + 1] == 0) return "";
  const std::vector<Type> parameters =
      Parameters(wanted, wanted_closes, wanted_name + 1, wanted_closes[wanted_name + 1]);
  for (const Token& token : tokens) {
    if (StartsWithAny(cuda_source::IncludedHeader(token), "hip/|CL/|sycl/|metal_stdlib") > 0)
      return "of another language: " + OneLine(token.text);
  }
  std::string misfit;
  std::vector<size_t> open;  // the braces around the token that are no namespace
  for (size_t i = 0; i + 1 < tokens.size(); ++i) {
    if (tokens[i].Is("{") && !OpensScope(tokens, i) && closes[i] > 0) open.push_back(closes[i]);
    while (!open.empty() && open.back() <= i) open.pop_back();
    if (!tokens[i].Is(function) || !tokens[i + 1].Is("(") || closes[i + 1] == 0) continue;
    const size_t close = closes[i + 1];
    size_t body = close + 1;
    while (body < tokens.size() && (tokens[body].Is("noexcept") || tokens[body].Is("const"))) ++body;
    const bool arrow = body + 1 < tokens.size() && tokens[body].Is("->");
    if (body >= tokens.size() || !(tokens[body].Is("{") || arrow)) continue;
    const size_t begin = BeginOf(tokens, i);
    const std::string head = OneLine(source.substr(tokens[begin].begin, tokens[close].end - tokens[begin].begin), 120);
    const auto has = [&](std::string_view word) {
      return std::any_of(tokens.begin() + static_cast<std::ptrdiff_t>(begin),
                         tokens.begin() + static_cast<std::ptrdiff_t>(i),
                         [&](const Token& token) { return token.Is(word); });
    };
    if (!open.empty() || (i > 0 && tokens[i - 1].Is("::"))) {
      misfit = "a member: " + head;
    } else if (has("__global__") || (has("__device__") && !has("__host__"))) {
      misfit = "a function of the device: " + head;
    } else if (TakesTensors(tokens, begin, close)) {
      return "";  // PyTorch's form, TVM-FFI's
    } else if (has("static")) {
      misfit = "static, which no other file can call: " + head;
    } else if (arrow || i == begin || has("__kernel") || has("kernel") || has("fn") || has("func") || has("function") ||
               has("def") || has("entry") || has(":") || has("public")) {
      misfit = "of another language: " + head;
    } else {
      const std::vector<Type> own = Parameters(tokens, closes, i + 1, close);
      const bool same = own.size() == parameters.size() &&
                        std::equal(own.begin(), own.end(), parameters.begin(), [](const Type& a, const Type& b) {
                          return a.base.empty() || b.base.empty() || (a.base == b.base && a.pointers == b.pointers);
                        });
      const auto names = [](const std::vector<Type>& types) {
        std::vector<std::string> found(types.size());
        std::ranges::transform(types, found.begin(), &Type::name);
        return found;
      };
      const std::vector<std::string> own_names = names(own), wanted_names = names(parameters);
      const bool moved = own_names != wanted_names && std::is_permutation(own_names.begin(), own_names.end(),
                                                                          wanted_names.begin(), wanted_names.end());
      if (same && !moved) return "";
      misfit = (same ? "with its parameters in another order: " : "with other parameters: ") + head;
    }
  }
  return misfit;
}

}  // namespace kgrpo::coder_shared
