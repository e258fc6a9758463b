// Writes JSON straight into a text, without a tree: for requests for which a tree would cost more than everything else.
// A reader gets the same values as from nlohmann's dump. Used by wire.cc.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace kgrpo::program {

// Writes one value after another, with the commas between them. Keys must need no escapes.
class JsonText {
 public:
  JsonText& Open(char bracket);  // '{' or '['
  JsonText& Close(char bracket);
  JsonText& Key(std::string_view key);        // of an object, before its value
  JsonText& QuotedKey(std::string_view key);  // any text
  JsonText& Text(std::string_view value);     // what is not UTF-8 in it is replaced
  JsonText& Number(double value);             // null where it is not finite
  JsonText& Count(uint64_t value);
  JsonText& Flag(bool value);
  JsonText& Null();
  // A value that is JSON already.
  JsonText& Raw(std::string_view json);

  std::string Take() { return std::move(text_); }

 private:
  void Separate();
  void Quote(std::string_view value);

  std::string text_;
  bool first_ = true;  // of its object or array; or a value after its key
};

}  // namespace kgrpo::program
