// Reads JSON text from left to right without keeping any of it: for the pieces of a stream, of which an answer has a
// thousand. It takes less than JSON allows, never more: who is told "no" asks a parser. Used by content_chunk.cc.
#ifndef KGRPO_CODER_GPT4O_CLIENT_JSON_SCANNER_H
#define KGRPO_CODER_GPT4O_CLIENT_JSON_SCANNER_H

#include <cstddef>
#include <string>
#include <string_view>

namespace kgrpo::coder_gpt4o {

// Every function skips blanks, and says whether what it is named for came next and was passed. After a "no" the place
// means nothing.
class JsonScanner {
 public:
  explicit JsonScanner(std::string_view text) : text_(text) {}

  bool Take(char mark);                    // one of {}[]:,
  bool TakeString(std::string_view* raw);  // between the quotes, escapes as they are; well-formed, no halves of pairs
  bool TakeWord(std::string_view word);    // null, true, false, 0
  bool TakeValue(int depth = 0);           // whatever it is
  bool TakeEnd();                          // nothing but blanks is left

 private:
  void SkipBlanks();
  bool TakeEscape();
  bool TakeWideCharacter();
  bool TakeNumber();
  bool TakeDigits(size_t* count);

  std::string_view text_;
  size_t at_ = 0;
};

// Appends what TakeString gave with its escapes resolved.
void AppendUnescaped(std::string_view raw, std::string& to);

}  // namespace kgrpo::coder_gpt4o
#endif
