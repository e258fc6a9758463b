// The part of Jinja2 that Hugging Face chat templates use, rendered as transformers renders it: trim_blocks and
// lstrip_blocks are on, values are immutable, loops have break and continue. chat_template.h calls it.
#ifndef KGRPO_PLUGINS_POLICY_QWEN_TOKENIZER_JINJA_H_
#define KGRPO_PLUGINS_POLICY_QWEN_TOKENIZER_JINJA_H_
#include <ctime>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>

namespace kgrpo::jinja {

// Immutable: safe from any thread.
class Template {
 public:
  // Throws Error "NAME:LINE: what" for anything that is not known here.
  Template(std::string_view source, std::string name);

  // `variables`: an object of valid UTF-8; `now`: the time of strftime_now. Throws Error "NAME:LINE: what": the
  // template's raise_exception, a wrong use of a value, or a template that runs for too long.
  std::string Render(const nlohmann::ordered_json& variables, std::time_t now) const;

  // True if the template has this name or string anywhere outside of its plain text.
  bool Mentions(const std::string& word) const { return notes_.words.contains(word); }

  // Kept of the first reading.
  struct Notes {
    std::set<std::string> words;
    std::map<size_t, size_t> conditions;  // of `a if b`: the place of `if` by that of `a`
    std::map<size_t, size_t> ends;        // of a body: the place after its last statement by that of its start
  };

 private:
  std::string name_;
  std::string source_;
  Notes notes_;
};

}  // namespace kgrpo::jinja
#endif  // KGRPO_PLUGINS_POLICY_QWEN_TOKENIZER_JINJA_H_
