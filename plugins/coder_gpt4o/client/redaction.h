// Removes secrets from text. Used by the dispatcher on everything that leaves the client, and by response_reader.cc
// before it shortens a text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kgrpo::coder_gpt4o {

class Redaction {
 public:
  // Shorter values are ordinary words ("true", "beta"): hiding them would garble messages and protect nothing.
  static constexpr size_t kShortest = 8;

  void Hide(std::string_view secret);

  // Replaces every secret in `text` by "[hidden]". Each of its characters may be written plainly or escaped: by a
  // backslash, as \u003d, as %3D, or as an HTML entity.
  void Apply(std::string& text) const;

 private:
  std::vector<std::string> secrets_;  // longest first: one may contain another
};

}  // namespace kgrpo::coder_gpt4o
