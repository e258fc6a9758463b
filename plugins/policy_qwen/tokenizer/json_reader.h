// Reads the objects of a JSON file so that each error names the file and the key. Used by the loaders of tokenizer.json
// and tokenizer_config.json.
#ifndef KGRPO_PLUGINS_POLICY_QWEN_TOKENIZER_JSON_READER_H_
#define KGRPO_PLUGINS_POLICY_QWEN_TOKENIZER_JSON_READER_H_
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace kgrpo::tokenizer {

// One object of a JSON file. It remembers which keys were asked for, so that RefuseOthers can name the others. Holds
// references: the file name and the JSON must outlive it. Every failure throws Error: "FILE: KEY.PATH: what".
class ObjectReader {
 public:
  ObjectReader(const std::string& file, std::string path, const nlohmann::json& value);

  // The value of `key`; null if it is absent or JSON null.
  const nlohmann::json* Find(std::string_view key);
  const nlohmann::json& Require(std::string_view key);

  bool Bool(std::string_view key, bool otherwise);
  std::string String(std::string_view key);
  std::string Character(std::string_view key);  // a string of one
  size_t Count(std::string_view key);
  ObjectReader Object(std::string_view key);
  const nlohmann::json& Array(std::string_view key);

  // Fails if the object has a key that was never asked for.
  void RefuseOthers();

  // "path.key", or the key alone at the top level.
  std::string PathOf(std::string_view key) const;
  const std::string& file() const { return file_; }
  // Throws because the value of `key` has the wrong type, is wrong or, for Refuse, well formed but not implemented
  // here.
  [[noreturn]] void FailType(std::string_view key, const std::string& expected) const;
  [[noreturn]] void Fail(std::string_view key, const std::string& what) const;
  [[noreturn]] void Refuse(std::string_view key, const std::string& what) const;
  // Refuses the `type` of a step; `kind` is "decoder", `supported` names those that are.
  [[noreturn]] void RefuseType(const std::string& kind, const std::string& supported);

 private:
  const std::string& file_;
  std::string path_;
  const nlohmann::json& value_;
  std::set<std::string, std::less<>> asked_;
};

// The steps of a part of tokenizer.json, in order: none for JSON null, one for an object, those in `list` for an object
// of type "Sequence", whose steps may be Sequences too.
std::vector<ObjectReader> ReadSteps(const std::string& file, const std::string& path, const nlohmann::json& value,
                                    std::string_view list);

}  // namespace kgrpo::tokenizer
#endif  // KGRPO_PLUGINS_POLICY_QWEN_TOKENIZER_JSON_READER_H_
