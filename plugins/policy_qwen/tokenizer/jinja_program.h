// Parses a Jinja program into statements of one spelling, so that chat_template_recognition.cc can compare their
// meaning. Differences in white space, quotes, ['key'] against .key, needless parentheses and split literals are
// removed. Nothing is evaluated.
#ifndef KGRPO_PLUGINS_POLICY_QWEN_TOKENIZER_JINJA_PROGRAM_H_
#define KGRPO_PLUGINS_POLICY_QWEN_TOKENIZER_JINJA_PROGRAM_H_
#include <string>
#include <string_view>
#include <vector>

namespace kgrpo::tokenizer {

struct JinjaToken {
  enum class Kind { kWord, kString, kPunctuation } kind;
  std::string text;  // of a string: what it holds, escapes resolved
  bool operator==(const JinjaToken&) const = default;
};
using JinjaExpression = std::vector<JinjaToken>;

struct JinjaNode {
  struct Branch {
    JinjaExpression condition;  // empty for else
    std::vector<JinjaNode> body;
  };
  enum class Kind { kOutput, kIf, kFor, kSet } kind;
  JinjaExpression expression;    // what is put out, what follows `for`, what follows `set`
  std::vector<Branch> branches;  // of if: one for each condition; of for: one
};

// Text between tags is an output of a string, stripped as transformers does (trim_blocks and lstrip_blocks are on).
// {% generation %} tags, which put nothing out, are passed over; any other statement throws Error that quotes it.
std::vector<JinjaNode> ParseJinja(std::string_view program);

// One spelling for all expressions that differ in nothing but spelling: message['role'] == "user" becomes
// message.role=='user'.
std::string Spell(const JinjaExpression& expression);

}  // namespace kgrpo::tokenizer
#endif  // KGRPO_PLUGINS_POLICY_QWEN_TOKENIZER_JINJA_PROGRAM_H_
