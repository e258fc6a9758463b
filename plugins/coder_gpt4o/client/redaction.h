// Removes secrets from text. Used by the dispatcher on everything that leaves the client, and by response_reader.cc
// before it shortens a text.
#ifndef KGRPO_CODER_GPT4O_CLIENT_REDACTION_H
#define KGRPO_CODER_GPT4O_CLIENT_REDACTION_H

#include <string>
#include <string_view>
#include <vector>

namespace kgrpo::coder_gpt4o {

class Redaction {
 public:
  // A secret shorter than this is a word ("true", "beta"): to hide it would tear up messages and guard nothing.
  static constexpr size_t kShortest = 8;

  void Hide(std::string_view secret);

  // Replaces every secret in `text`, as it is and as it stands in a URL, by "[hidden]".
  void Apply(std::string& text) const;

  // The same for the beginning of a longer text: what may be the beginning of a secret at its end is dropped.
  void ApplyToCut(std::string& text) const;

 private:
  std::vector<std::string> secrets_;  // longest first: one may hold another
};

}  // namespace kgrpo::coder_gpt4o
#endif
