#include "config/yaml_words.h"

#include <yaml-cpp/exceptions.h>

#include <algorithm>
#include <utility>

#include "config/hidden_keys.h"

namespace kgrpo {
namespace {

std::string_view LineOf(std::string_view text, int line) {
  for (int i = 1; i < line; ++i) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos) return {};
    text.remove_prefix(end + 1);
  }
  std::string_view found = text.substr(0, text.find('\n'));
  if (found.ends_with('\r')) found.remove_suffix(1);
  return found;
}

bool IndentsByTab(std::string_view line) {
  const size_t first = line.find_first_not_of(" \t");
  return line.substr(0, first).find('\t') != std::string_view::npos;
}

// The last line before `line` that holds more than spaces and a comment; 0: none does.
int LineBefore(std::string_view text, int line) {
  while (--line > 0) {
    const std::string_view one = LineOf(text, line);
    const size_t first = one.find_first_not_of(" \t");
    if (first != std::string_view::npos && one[first] != '#') break;
  }
  return line;
}

// Our message for each beginning of a message of yaml-cpp.
const std::pair<const char*, const char*> kWords[] = {
    {YAML::ErrorMsg::MAP_VALUE,
     "a ':' where none can stand: text that holds ': ' needs quotes, and the keys of a mapping begin in one column"},
    {YAML::ErrorMsg::MAP_KEY, "a key where none can stand: the keys of a mapping begin in one column"},
    {YAML::ErrorMsg::END_OF_MAP,
     "this does not go on with the mapping above: its keys begin in one column, and each is followed by ': '"},
    {YAML::ErrorMsg::END_OF_SEQ, "this does not go on with the list above: its items begin with '- ' in one column"},
    {YAML::ErrorMsg::END_OF_SEQ_FLOW, "the list that '[' begins lacks a ',' here or its ']'"},
    {YAML::ErrorMsg::END_OF_MAP_FLOW,
     "the mapping that '{' begins lacks a ',' here or its '}'; quote text that contains ': ' or '? '"},
    {YAML::ErrorMsg::FLOW_END, "a ']' or '}' that closes nothing; as text it needs quotes"},
    {YAML::ErrorMsg::BLOCK_ENTRY, "a '- ' where no item can begin: the items of a list begin in one column"},
    {YAML::ErrorMsg::UNKNOWN_TOKEN, "text cannot begin with this character: put it in quotes"},
    {YAML::ErrorMsg::INVALID_ESCAPE,
     "an unknown escape in \"double quotes\": write \\\\ for a backslash, or use 'single quotes'"},
    {YAML::ErrorMsg::TAB_IN_INDENTATION, "a tab in the indentation: YAML indents by spaces"},
    {YAML::ErrorMsg::EOF_IN_SCALAR, "the text that begins before is not closed when the file ends"},
    {YAML::ErrorMsg::DOC_IN_SCALAR, "'---' or '...' inside a text in quotes: is a quote missing above?"},
    {YAML::ErrorMsg::CHAR_IN_BLOCK, "only an indentation such as 2, '+' or '-' may follow '|' or '>'"},
    {YAML::ErrorMsg::ALIAS_NOT_FOUND, "'*' refers to a name, and none follows; as text it needs quotes"},
    {YAML::ErrorMsg::ANCHOR_NOT_FOUND, "'&' gives a name, and none follows; as text it needs quotes"},
    // Of two versions of yaml-cpp one adds the name to its message.
    {YAML::ErrorMsg::UNKNOWN_ANCHOR, "'*' refers to a name that no '&' gives before it"},
};

}  // namespace

std::string YamlMistake(const std::string& message, std::string_view text, int line, int column) {
  const std::string_view shown = LineOf(text, line);
  if (IndentsByTab(shown) || (column <= 1 && IndentsByTab(LineOf(text, line - 1)))) {
    return "a tab in the indentation: YAML indents by spaces";
  }
  const size_t at = std::min(shown.size(), static_cast<size_t>(std::max(column, 1) - 1));
  if (message.starts_with(YAML::ErrorMsg::MAP_VALUE) && shown.find(':') == at) {
    // yaml-cpp notices a key without its ':' at that of the next key.
    const int before = LineBefore(text, line);
    if (before > 0 && LineOf(text, before).find(':') == std::string_view::npos)
      return "a ':' where none can stand: line " + std::to_string(before) +
             " above lacks the ':' after its key, or text that holds ': ' needs quotes";
  }
  const size_t before_it = at == 0 ? std::string_view::npos : shown.find_last_not_of(' ', at - 1);
  const bool in_word =
      before_it != std::string_view::npos && std::string_view("}]\"'").find(shown[before_it]) == std::string_view::npos;
  if (message.starts_with(YAML::ErrorMsg::END_OF_MAP_FLOW) && shown.substr(at).starts_with('[') && in_word)
    return "between '{' and '}' a key or text that holds '[' needs quotes: {\"trainer[0].steps\": 10}";
  for (const auto& [theirs, ours] : kWords) {
    if (message.starts_with(theirs)) return ours;
  }
  return message;
}

std::string ShowPlace(std::string_view text, int line, int column) {
  constexpr size_t kLongest = 120;
  std::string shown(LineOf(text, line));
  if (shown.empty() || shown.size() > kLongest) return {};
  const std::string before = shown;
  HideKeys(&shown);
  std::string place = "\n    " + shown;
  if (shown == before && column >= 1 && static_cast<size_t>(column) <= shown.size() + 1) {
    // Under tabs a tab, so that the caret stands where the terminal shows the column.
    std::string under(shown.substr(0, static_cast<size_t>(column - 1)));
    std::ranges::replace_if(
        under, [](char c) { return c != '\t'; }, ' ');
    place += "\n    " + under + "^";
  }
  return place;
}

}  // namespace kgrpo
