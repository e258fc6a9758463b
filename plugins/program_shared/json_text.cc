#include "program_shared/json_text.h"

#include <kgrpo/support/dump_json.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

namespace kgrpo::program {
namespace {

// Printable ASCII that JSON takes as it is.
bool IsPlain(char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; }

}  // namespace

void JsonText::Separate() {
  if (!first_) text_ += ',';
  first_ = false;
}

JsonText& JsonText::Open(char bracket) {
  Separate();
  text_ += bracket;
  first_ = true;
  return *this;
}

JsonText& JsonText::Close(char bracket) {
  text_ += bracket;
  first_ = false;
  return *this;
}

JsonText& JsonText::Key(std::string_view key) {
  Separate();
  text_.append("\"").append(key).append("\":");
  first_ = true;
  return *this;
}

JsonText& JsonText::QuotedKey(std::string_view key) {
  Separate();
  Quote(key);
  text_ += ':';
  first_ = true;
  return *this;
}

void JsonText::Quote(std::string_view value) {
  if (std::all_of(value.begin(), value.end(), IsPlain)) {
    text_.append("\"").append(value).append("\"");
    return;
  }
  text_ += DumpJson(nlohmann::json(value));
}

JsonText& JsonText::Text(std::string_view value) {
  Separate();
  Quote(value);
  return *this;
}

JsonText& JsonText::Number(double value) {
  if (!std::isfinite(value)) return Null();
  Separate();
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof(digits), value).ptr;
  text_.append(digits, end);
  // Most languages then read a number with a fraction, whatever its value.
  if (std::none_of(digits, end, [](char c) { return c == '.' || c == 'e'; })) text_ += ".0";
  return *this;
}

JsonText& JsonText::Count(uint64_t value) { return Raw(std::to_string(value)); }

JsonText& JsonText::Flag(bool value) { return Raw(value ? "true" : "false"); }

JsonText& JsonText::Null() { return Raw("null"); }

JsonText& JsonText::Raw(std::string_view json) {
  Separate();
  text_.append(json);
  return *this;
}

}  // namespace kgrpo::program
