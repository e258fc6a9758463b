#include "coder_gpt4o/answer.h"

#include "coder_gpt4o/client/ascii.h"
#include "coder_gpt4o/code_blocks.h"
#include "coder_gpt4o/source_text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <vector>

namespace kgrpo::coder_gpt4o {
namespace {

constexpr size_t kMostAnswerBytes = size_t{4} << 20;
constexpr size_t kMostSourceBytes = size_t{1} << 20;
constexpr size_t kExcerptBytes = 240;

// The code with LF line ends, no empty lines before it and exactly one line end after it.
std::string Tidied(std::string_view code) {
  std::string source;
  source.reserve(code.size() + 1);
  for (size_t i = 0; i < code.size(); ++i) {
    if (code[i] != '\r' || i + 1 == code.size() || code[i + 1] != '\n') source += code[i];
  }
  const size_t begin = source.find_first_not_of("\r\n");
  source.erase(0, begin == std::string::npos ? source.size() : begin);
  while (!source.empty() && (source.back() == '\n' || source.back() == ' ')) source.pop_back();
  return source.empty() ? source : source + '\n';
}

bool StartsWith(std::string_view text, std::string_view words) {  // whatever the case; `words` are in lower case
  return text.size() >= words.size() && std::equal(words.begin(), words.end(), text.begin(), [](char a, char b) {
           return a == static_cast<char>(std::tolower(static_cast<unsigned char>(b)));
         });
}

// True if code may begin at this line of an answer without fences: CUDA lines outside functions begin like this.
bool BeginsCode(std::string_view line) {
  line = Trimmed(line);
  constexpr std::array<std::string_view, 21> kBeginnings = {
      "#include",   "#define", "#pragma",   "#if",        "#undef",  "//",        "/*",
      "extern \"",  "__",      "template<", "template <", "using ",  "namespace", "static ",
      "constexpr ", "const ",  "struct ",   "typedef ",   "inline ", "void ",     "enum "};
  return std::any_of(kBeginnings.begin(), kBeginnings.end(),
                     [line](std::string_view beginning) { return line.starts_with(beginning); });
}

bool EndsCode(std::string_view line) {
  line = Trimmed(line);
  return line.ends_with('}') || line.ends_with(';') || line.ends_with("*/") || line.starts_with("//") ||
         line.starts_with("#endif");
}

// The code of an answer without fences: its first line of code to its last, without the prose around them.
std::string UnfencedCode(std::string_view text) {
  size_t first = std::string_view::npos, last = 0;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = text.find('\n', begin);
    end = end == std::string_view::npos ? text.size() : end + 1;
    const std::string_view line = text.substr(begin, end - begin);
    if (first == std::string_view::npos && BeginsCode(line)) first = begin;
    if (first != std::string_view::npos && EndsCode(line)) last = end;
    begin = end;
  }
  return first == std::string_view::npos || last <= first ? "" : std::string(text.substr(first, last - first));
}

ReadAnswer No(kgrpo_coder_outcome outcome, std::string message) {
  return {outcome, "", std::move(message)};
}

// Reads the outcome of an answer without a kernel from its text.
ReadAnswer WithoutKernel(std::string_view text, const std::string& function) {
  text = Trimmed(text);
  std::string_view plain = text;
  while (!plain.empty() &&
         (plain.front() == '*' || plain.front() == '`' || plain.front() == '#' || plain.front() == ' '))
    plain.remove_prefix(1);
  for (const std::string_view words : {"not applicable", "not_applicable"}) {
    if (StartsWith(plain, words)) return No(KGRPO_CODER_NOT_APPLICABLE, OneLine(plain, kExcerptBytes));
  }
  if (StartsWith(plain, "unclear")) return No(KGRPO_CODER_UNCLEAR, OneLine(plain, kExcerptBytes));
  for (const std::string_view words : {"i'm sorry", "i’m sorry", "i am sorry", "sorry", "i can't", "i can’t",
                                       "i cannot", "i'm unable", "i’m unable", "i am unable"}) {
    if (StartsWith(plain, words))
      return No(KGRPO_CODER_REFUSED, "the coder declined: \"" + OneLine(plain, kExcerptBytes) + "\"");
  }
  if (text.empty()) return No(KGRPO_CODER_NO_CODE, "the answer is empty");
  return No(KGRPO_CODER_NO_CODE, "nothing in the answer " + (function.empty() ? "is code" : "defines " + function) +
                                     "; it begins: \"" + OneLine(text, kExcerptBytes) + "\"");
}

// Chooses the kernel among the code blocks that define the function.
ReadAnswer Take(const std::vector<CodeBlock>& defining, std::string_view current) {
  const std::string before = Essence(current);
  const auto chosen = std::find_if(defining.rbegin(), defining.rend(),
                                   [&](const CodeBlock& block) { return Essence(block.text) != before; });
  if (chosen == defining.rend()) {
    return No(KGRPO_CODER_NOT_APPLICABLE, "the coder answered with the kernel as it was: nothing was changed");
  }
  if (!chosen->closed && !IsBalanced(chosen->text)) {
    return No(KGRPO_CODER_TRUNCATED, "the code is incomplete, although the service does not report that it cut it off");
  }
  std::string source = Tidied(chosen->text);
  if (source.size() > kMostSourceBytes) {
    return No(KGRPO_CODER_NO_CODE, "the kernel has " + std::to_string(source.size()) + " bytes; more than " +
                                       std::to_string(kMostSourceBytes) + " is no kernel");
  }
  if (source.find('\0') != std::string::npos) return No(KGRPO_CODER_NO_CODE, "the code has a byte of value 0 in it");
  return {KGRPO_CODER_OK, std::move(source), ""};
}

}  // namespace

std::string OneLine(std::string_view text, size_t bytes) {
  std::string line;
  for (const char c : Trimmed(text)) {
    if (line.size() >= bytes && (static_cast<unsigned char>(c) & 0xc0) != 0x80) return line + "...";
    const bool control = static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
    if (!control || line.empty() || line.back() != ' ') line += control ? ' ' : c;
  }
  return line;
}

std::string_view WithoutThoughts(std::string_view text) {
  constexpr std::string_view kEnd = "</think>";
  const size_t end = text.rfind(kEnd);  // many chat templates put <think> into the prompt: only </think> arrives
  if (end != std::string_view::npos) return text.substr(end + kEnd.size());
  return Trimmed(text).starts_with("<think>") ? std::string_view() : text;
}

ReadAnswer ReadKernel(const AnswerText& answer, const Wanted& wanted) {
  if (!answer.refusal.empty()) {
    return No(KGRPO_CODER_REFUSED, "the service declined: \"" + OneLine(answer.refusal, kExcerptBytes) + "\"");
  }
  if (answer.finish_reason == "content_filter") {
    return No(KGRPO_CODER_REFUSED, "the service's content filter stopped the answer");
  }
  if (answer.finish_reason == "length") {
    return No(KGRPO_CODER_TRUNCATED,
              "the answer was cut off at the limit of its tokens (finish_reason \"length\"): raise "
              "max_tokens, or set continuations");
  }
  const std::string_view text = WithoutThoughts(answer.text);
  if (text.size() > kMostAnswerBytes) {
    return No(KGRPO_CODER_NO_CODE, "an answer of " + std::to_string(text.size()) + " bytes is no kernel");
  }
  const std::string function = FunctionName(wanted.signature);
  std::vector<CodeBlock> defining = CodeBlocks(text);
  const bool fenced = !defining.empty();
  const bool cut = fenced && !defining.back().closed && !IsBalanced(defining.back().text);
  if (!fenced) defining.push_back({UnfencedCode(text), false});
  std::erase_if(defining, [&](const CodeBlock& block) {
    return function.empty() ? Trimmed(block.text).empty() : !Defines(block.text, function);
  });
  if (!defining.empty()) return Take(defining, wanted.current);
  if (cut) return No(KGRPO_CODER_TRUNCATED, "the answer ends within its code, before " + function + " is defined");
  return WithoutKernel(text, function);
}

}  // namespace kgrpo::coder_gpt4o
