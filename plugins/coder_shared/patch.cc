#include "coder_shared/parts.h"

#include "coder_shared/text.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

namespace kgrpo::coder_shared {
namespace {

// True for a line such as "<<<<<<< SEARCH".
bool IsMark(std::string_view line, char c) {
  line = Trimmed(line);
  const size_t length = std::min(line.find_first_not_of(c), line.size());
  return length >= 5 && length <= 9 && line.find_first_of("(;", length) == std::string_view::npos &&
         (length == line.size() || line[length] == ' ');
}

std::vector<Hunk> SearchReplace(const std::vector<std::string_view>& lines) {
  std::vector<Hunk> hunks;
  std::vector<std::string>* part = nullptr;
  for (const std::string_view line : lines) {
    if ((IsMark(line, '<') || IsMark(line, '-')) && part == nullptr) {
      hunks.emplace_back();
      part = &hunks.back().old_lines;
    } else if (IsMark(line, '=') && !hunks.empty() && part == &hunks.back().old_lines) {
      part = &hunks.back().new_lines;
    } else if ((IsMark(line, '>') || IsMark(line, '+')) && !hunks.empty() && part == &hunks.back().new_lines) {
      part = nullptr;
    } else if (part != nullptr) {
      part->emplace_back(line);
    }
  }
  return part == nullptr ? hunks : std::vector<Hunk>();
}

std::vector<std::string> TextLines(std::string_view text) {
  std::vector<std::string> lines;
  for (const std::string_view line : Lines(text)) lines.emplace_back(line);
  return lines;
}

// The names that the old and the new text have in XML and JSON.
constexpr std::pair<const char*, const char*> kEditNames[] = {
    {"search", "replace"}, {"old_str", "new_str"},      {"old_string", "new_string"},  {"find", "replace"},
    {"old", "new"},        {"old_text", "new_text"},    {"old_code", "new_code"},      {"original", "updated"},
    {"before", "after"},   {"original", "replacement"}, {"old_content", "new_content"}};

// <search> ... </search> <replace> ... </replace>
std::vector<Hunk> XmlEdits(std::string_view text) {
  std::vector<Hunk> hunks;
  const auto take = [&](const std::string& name, size_t from, std::string_view* inside) {
    const std::string opening = "<" + name + ">", closing = "</" + name + ">";
    const size_t begin = text.find(opening, from), end = begin < text.size() ? text.find(closing, begin) : begin;
    if (end >= text.size()) return std::string_view::npos;
    *inside = text.substr(begin + opening.size(), end - begin - opening.size());
    if (inside->starts_with('\n')) inside->remove_prefix(1);
    return end + closing.size();
  };
  for (const auto& [old_name, new_name] : kEditNames) {
    std::string_view before, after;
    for (size_t at = 0; hunks.size() < 1000;) {
      at = take(old_name, at, &before);
      if (at == std::string_view::npos) break;
      at = take(new_name, at, &after);
      if (at == std::string_view::npos) break;
      hunks.push_back({TextLines(before), TextLines(after), 0, true});
    }
    if (!hunks.empty()) break;
  }
  return hunks;
}

void AddJsonEdits(const nlohmann::json& value, std::vector<Hunk>* hunks, int depth) {
  constexpr int kMostDepth = 8;
  if (depth > kMostDepth || !value.is_structured()) return;
  for (const auto& [old_name, new_name] : kEditNames) {
    if (!value.is_object() || !value.contains(old_name) || !value.contains(new_name)) continue;
    if (!value[old_name].is_string() || !value[new_name].is_string()) continue;
    hunks->push_back({TextLines(value[old_name].get_ref<const std::string&>()),
                      TextLines(value[new_name].get_ref<const std::string&>()), 0, true});
    return;
  }
  for (const nlohmann::json& inner : value) {
    if (inner.is_string() && inner.get_ref<const std::string&>().starts_with('{')) {  // the arguments of a call
      AddJsonEdits(nlohmann::json::parse(inner.get_ref<const std::string&>(), nullptr, false), hunks, depth + 1);
    } else {
      AddJsonEdits(inner, hunks, depth + 1);
    }
  }
}

// The calls of an editing tool: {"old_str": ..., "new_str": ...}, one or several.
std::vector<Hunk> JsonEdits(std::string_view text) {
  constexpr int kMostObjects = 64;
  std::vector<Hunk> hunks;
  size_t at = text.find('{');
  for (int count = 0; at < text.size() && count < kMostObjects; ++count) {
    size_t end = at;
    int depth = 0;
    bool quoted = false;
    for (; end < text.size(); ++end) {
      if (quoted && text[end] == '\\') {
        ++end;
      } else if (text[end] == '"') {
        quoted = !quoted;
      } else if (!quoted) {
        depth += text[end] == '{' ? 1 : text[end] == '}' ? -1 : 0;
        if (depth == 0) break;
      }
    }
    if (end >= text.size()) break;
    const nlohmann::json object = nlohmann::json::parse(text.substr(at, end + 1 - at), nullptr, false);
    AddJsonEdits(object, &hunks, 0);
    at = text.find('{', end);
  }
  return hunks;
}

// `told`: the fence says that it is a diff; `prose`: there is no fence, and other text may follow a hunk.
std::vector<Hunk> UnifiedDiff(std::vector<std::string_view> lines, bool told, bool prose) {
  const auto first = std::find_if(lines.begin(), lines.end(), [](std::string_view line) {
    return StartsWithAny(line, "@@|--- |diff --git|*** Begin") > 0;
  });
  const bool header = first != lines.end();
  const bool begins = !header || (told && first != lines.begin());  // with a hunk that has no header
  if (!begins) lines.erase(lines.begin(), first);
  while (!lines.empty() && Trimmed(lines.back()).empty()) lines.pop_back();
  std::vector<Hunk> hunks;
  bool changes = false, adds = false, in_hunk = begins;
  if (in_hunk) hunks.emplace_back();
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::string_view line = lines[i];
    if (line.starts_with("\\ ")) continue;  // "\ No newline at end of file"
    // Headers, and the marks around a patch that is an e-mail.
    if (StartsWithAny(line, "diff --git|index |new file") > 0 || (header && (line == "---" || line == "-- "))) {
      in_hunk = false;
    } else if (line.starts_with("*** ")) {  // of OpenAI's patches
      in_hunk = line.starts_with("*** Update") || line.starts_with("*** Add");
      if (in_hunk) hunks.emplace_back();
    } else if (line.starts_with("@@")) {
      hunks.emplace_back();
      const size_t minus = line.find('-');
      for (size_t at = minus;
           at != std::string_view::npos && ++at < line.size() && IsDigit(line[at]) && hunks.back().line < 1000000;)
        hunks.back().line = hunks.back().line * 10 + static_cast<size_t>(line[at] - '0');
      in_hunk = true;
    } else if (header && line.starts_with("--- ") && i + 1 < lines.size() && lines[i + 1].starts_with("+++ ")) {
      in_hunk = ++i + 1 < lines.size() && !lines[i + 1].starts_with("@@");  // a hunk without a header
      if (in_hunk) hunks.emplace_back();
    } else if (in_hunk && (line.empty() || line[0] == ' ' || line[0] == '+' || line[0] == '-')) {
      const std::string rest(line.substr(line.empty() ? 0 : 1));
      if (line.empty() || line[0] != '+') hunks.back().old_lines.push_back(rest);
      if (line.empty() || line[0] != '-') hunks.back().new_lines.push_back(rest);
      changes = changes || (!line.empty() && line[0] != ' ');
      adds = adds || (!line.empty() && line[0] == '+');
    } else if ((told || header) && in_hunk) {  // context without the blank before it, or prose that ends the patch
      in_hunk = !header || !prose;
      if (!in_hunk) continue;
      hunks.back().old_lines.emplace_back(line);
      hunks.back().new_lines.emplace_back(line);
    } else if (!header) {
      return {};
    }
  }
  for (Hunk& hunk : hunks) {  // empty lines between hunks
    while (!hunk.old_lines.empty() && !hunk.new_lines.empty() && hunk.old_lines.back().empty() &&
           hunk.new_lines.back().empty())
      hunk.old_lines.pop_back(), hunk.new_lines.pop_back();
  }
  std::erase_if(hunks, [](const Hunk& hunk) { return hunk.old_lines == hunk.new_lines; });  // text before the patch
  return changes && (header || told || adds) ? hunks : std::vector<Hunk>();
}

std::string Text(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + '\n';
  return text;
}

// Where the hunk's old lines stand, but for blanks at the ends of lines; with `indented` at their beginnings, too.
std::vector<size_t> PlacesOf(const Hunk& hunk, const std::vector<std::string>& lines, bool indented = false) {
  std::vector<size_t> places;
  const std::vector<std::string>& old = hunk.old_lines;
  if (old.empty() && hunk.line <= lines.size() && (hunk.line > 0 || lines.empty())) places.push_back(hunk.line);
  const auto code = [&](std::string_view line) {
    return indented ? Trimmed(line) : line.substr(0, line.find_last_not_of(" \t\r") + 1);
  };
  for (size_t at = 0; at + old.size() <= lines.size() && !old.empty(); ++at) {
    if (std::equal(old.begin(), old.end(), lines.begin() + static_cast<std::ptrdiff_t>(at),
                   [&](const std::string& a, const std::string& b) { return code(a) == code(b); }))
      places.push_back(at);
  }
  return places;
}

// Replaces the hunk's old text if it occurs exactly once, be it within a line.
bool ReplaceText(const Hunk& hunk, std::vector<std::string>* lines) {
  const auto joined = [](const std::vector<std::string>& some) {
    std::string text = Text(some);
    return text.substr(0, text.size() - (text.empty() ? 0 : 1));
  };
  const std::string before = joined(hunk.old_lines);
  std::string text = Text(*lines);
  const size_t at = Trimmed(before).empty() ? std::string::npos : text.find(before);
  if (at == std::string::npos || text.find(before, at + 1) != std::string::npos) return false;
  text.replace(at, before.size(), joined(hunk.new_lines));
  *lines = TextLines(text);
  return true;
}

// Gives the new lines the indentation that the old ones have in the kernel, where the first of them is `line`.
void Indent(std::string_view line, Hunk* hunk) {
  const auto blanks = [](std::string_view text) { return std::min(text.find_first_not_of(" \t"), text.size()); };
  const size_t own = blanks(hunk->old_lines[0]);
  for (std::string& added : hunk->new_lines) {
    if (!Trimmed(added).empty())
      added = std::string(line.substr(0, blanks(line))) + added.substr(std::min(own, blanks(added)));
  }
}

}  // namespace

std::vector<Hunk> ReadPatch(std::string_view text, std::string_view info) {
  const std::vector<std::string_view> lines = Lines(text);
  std::vector<Hunk> hunks = SearchReplace(lines);
  for (Hunk& hunk : hunks) hunk.text = true;
  if (hunks.empty()) hunks = XmlEdits(text);
  if (hunks.empty() && Contains(text, "\":")) hunks = JsonEdits(text);
  return hunks.empty() ? UnifiedDiff(lines, StartsWithAny(info, "diff|patch") > 0, info == "prose") : hunks;
}

std::string Patched(std::string_view kernel, const std::vector<Hunk>& hunks, std::string* why) {
  std::vector<std::string> lines = TextLines(kernel);
  if (hunks.size() == 1 && hunks[0].old_lines.empty() && hunks[0].line <= 1) return Text(hunks[0].new_lines);
  size_t number = 0;
  std::ptrdiff_t moved = 0;  // by earlier hunks
  for (Hunk hunk : hunks) {
    ++number;
    std::vector<size_t> places = PlacesOf(hunk, lines);
    if (places.empty() && hunk.text && ReplaceText(hunk, &lines)) continue;
    if (places.empty() && !hunk.old_lines.empty()) {
      places = PlacesOf(hunk, lines, /*indented=*/true);
      if (places.size() == 1) Indent(lines[places[0]], &hunk);
    }
    if (places.empty() && !hunk.new_lines.empty() && PlacesOf({hunk.new_lines, {}, 0, false}, lines).size() == 1)
      continue;  // it repeats an earlier one
    const size_t stated = static_cast<size_t>(static_cast<std::ptrdiff_t>(hunk.line) + moved) - 1;
    if (places.size() > 1 && hunk.line > 0 && std::count(places.begin(), places.end(), stated) > 0) places = {stated};
    if (places.size() != 1) {
      *why = "the lines of change " + std::to_string(number) + " occur " + std::to_string(places.size()) +
             " times in the kernel";
      return "";
    }
    const auto begin = lines.begin() + static_cast<std::ptrdiff_t>(places[0]);
    const auto after = lines.erase(begin, begin + static_cast<std::ptrdiff_t>(hunk.old_lines.size()));
    lines.insert(after, hunk.new_lines.begin(), hunk.new_lines.end());
    moved += static_cast<std::ptrdiff_t>(hunk.new_lines.size()) - static_cast<std::ptrdiff_t>(hunk.old_lines.size());
  }
  return Text(lines);
}

}  // namespace kgrpo::coder_shared
