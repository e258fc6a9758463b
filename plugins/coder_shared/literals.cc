#include "coder_shared/literals.h"

#include "coder_shared/text.h"
#include "coder_shared/thoughts.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace kgrpo::coder_shared {
namespace {

// The character, in UTF-8, that "\uXXXX" stands for; empty if it is none, or half of one.
std::string OfEscape(std::string_view escape) {
  const nlohmann::json parsed = nlohmann::json::parse("\"" + std::string(escape) + "\"", nullptr, false);
  return parsed.is_string() ? parsed.get<std::string>() : "";
}

}  // namespace

std::string Unescaped(std::string_view text) {
  constexpr std::string_view kEscapes = "ntrbf\"'\\/", kPlain = "\n\t\r\b\f\"'\\/";
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    const char next = text[i] == '\\' && i + 1 < text.size() ? text[i + 1] : '\0';
    const size_t escape = kEscapes.find(next);
    if (next == '\n') {
      ++i;  // continues the literal
    } else if (escape < kEscapes.size()) {
      plain += kPlain[escape];
      ++i;
    } else if (const std::string one = next == 'u' ? OfEscape(text.substr(i, 6)) : ""; !one.empty()) {
      plain += one;
      i += 5;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

std::vector<CodeBlock> YamlTexts(std::string_view text) {
  std::vector<CodeBlock> texts;
  const auto indentation = [](std::string_view line) { return std::min(line.find_first_not_of(" -"), line.size()); };
  size_t key = std::string_view::npos, inner = 0;  // the indentation of the block's key and of its text
  for (const std::string_view line : Lines(text)) {
    const bool blank = Trimmed(line).empty();
    const size_t begin = std::min(line.find_first_not_of(' '), line.size());
    if (key != std::string_view::npos && (blank || begin > key)) {
      if (!blank && texts.back().text.empty()) inner = begin;
      texts.back().text += std::string(line.substr(blank ? line.size() : std::min(inner, begin))) + '\n';
      continue;
    }
    const std::string_view rest = Trimmed(line);
    key = std::string_view::npos;
    if (!rest.ends_with(": |") && !rest.ends_with(": |-") && !rest.ends_with(": |+")) continue;
    key = indentation(line);
    texts.push_back({"", true, "", "", "", /*within=*/true});
  }
  return texts;
}

std::vector<CodeBlock> Literals(std::string_view text, bool json) {
  std::vector<CodeBlock> literals;
  std::string_view between;  // what stands between a literal and the last one
  std::string key;           // of a JSON object
  size_t after = 0;
  for (size_t at = 0; at < text.size();) {
    if (!json && text[at] == '#') {
      at = std::min(text.find('\n', at), text.size());
      continue;
    }
    if (text[at] != '"' && (json || text[at] != '\'')) {
      ++at;
      continue;
    }
    size_t prefix = at;
    while (!json && prefix > after && at - prefix < 2 && IsLetter(text[prefix - 1])) --prefix;
    const bool raw = Lower(text.substr(prefix, at - prefix)).find('r') != std::string::npos;
    const bool triple = !json && text.substr(at, 3) == std::string(3, text[at]);
    const std::string quote(triple ? 3 : 1, text[at]);
    const size_t quote_at = at;
    between = text.substr(after, prefix - after);
    const size_t begin = at + quote.size();
    size_t end = begin;
    while (end < text.size() && text.substr(end, quote.size()) != quote && (json || triple || text[end] != '\n'))
      end += text[end] == '\\' && end + 1 < text.size() ? 2 : 1;
    const bool closed = text.substr(end, quote.size()) == quote;
    at = after = std::min(closed ? end + quote.size() : end, text.size());
    if (!closed && !json && !triple) continue;  // an apostrophe
    if (Lower(text.substr(prefix, quote_at - prefix)).find('f') != std::string::npos) continue;
    const std::string_view inside = text.substr(begin, end - begin);
    if (json && Trimmed(text.substr(at, 16)).starts_with(':')) {
      key = Lower(inside);
    } else if (json && Trimmed(between).starts_with(':') && IsThoughtful(key)) {
      continue;  // {"reasoning": "a draft", ...}
    }
    const std::string literal = raw ? std::string(inside) : Unescaped(inside);
    const bool list = json && Trimmed(between) == "," && !Trimmed(text.substr(at, 16)).starts_with(':');
    if (!literals.empty() && (list || between.find_first_not_of(" \t\r\n\\+") == std::string_view::npos)) {
      std::string& whole = literals.back().text;
      if (list && !whole.ends_with('\n')) whole += '\n';
      whole += literal;
      literals.back().closed = closed;
    } else {
      literals.push_back({literal, closed, "", "", "", /*within=*/true});
    }
  }
  return literals;
}

}  // namespace kgrpo::coder_shared
