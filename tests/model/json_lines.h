// Files of one JSON object a line, read as a whole and checked before use. Used by tokenize, score, generate and
// update.
#ifndef KGRPO_MODEL_JSON_LINES_H
#define KGRPO_MODEL_JSON_LINES_H

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace kgrpo::cli {

// One line's object. Getters throw kgrpo::Error with the reason alone: `"prompt_ids"[3]: expected a token id, found
// -1`.
class JsonLine {
 public:
  JsonLine(nlohmann::ordered_json object, size_t number) : object_(std::move(object)), number_(number) {}

  size_t number() const { return number_; }  // from 1
  bool Has(const std::string& key) const { return object_.contains(key); }
  const nlohmann::ordered_json& Get(const std::string& key) const;  // throws when it is missing

  // Throws at the first key that is neither `known` nor `ignored`; the message lists the known ones.
  void RequireKnown(const std::vector<std::string>& known, const std::vector<std::string>& ignored = {}) const;

  std::string Text(const std::string& key) const;
  double Number(const std::string& key) const;
  uint64_t Count(const std::string& key) const;            // an integer >= 0
  std::string NameOrNumber(const std::string& key) const;  // as JSON, so that "3" and 3 differ
  bool Flag(const std::string& key) const;
  std::vector<int32_t> Ids(const std::string& key) const;
  std::vector<float> Numbers(const std::string& key) const;

 private:
  nlohmann::ordered_json object_;
  size_t number_;
};

// The input's name in messages: "-" is standard input.
std::string InputName(const std::string& file);

// Collects the mistakes of a file's lines, to report them together.
class LineMistakes {
 public:
  explicit LineMistakes(std::string name) : name_(std::move(name)) {}

  // Runs `body`, and records a kgrpo::Error that it throws as a mistake of the line.
  void Try(size_t line, const std::function<void()>& body);

  // Throws KGRPO_ERROR_INVALID with the first twenty as `file:line: message`, and the number of the others.
  void ThrowIfAny() const;

 private:
  std::string name_, messages_;
  size_t count_ = 0;
};

// Reads every line of `file` ("-": standard input); lines of white space are skipped. Parses each, and calls `check`
// with it, which throws kgrpo::Error for a mistake. Throws KGRPO_ERROR_INVALID with the bad lines as LineMistakes
// reports them.
void ReadJsonLines(const std::string& file, const std::function<void(JsonLine line)>& check);

// Writes the object as one line of standard output. Bytes that are not UTF-8 become U+FFFD.
void WriteJsonLine(const nlohmann::ordered_json& object);

}  // namespace kgrpo::cli
#endif
