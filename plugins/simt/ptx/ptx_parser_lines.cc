// The source line of an instruction: .file and .loc directives, and the functions' names that these refer to.
#include <charconv>
#include <optional>

#include "simt/ptx/ptx_parser.h"

namespace kgrpo::simt {
namespace {

uint64_t PlaceKey(const SourceLine& line) { return uint64_t{line.file} << 32 | static_cast<uint32_t>(line.line); }

// Returns true if a mangled name (Itanium C++ ABI) is that of a copy or move constructor or assignment: C1, C2, C3 or
// aS with one parameter, a const& or && to a substitution (the class).
bool IsCopy(std::string_view name) {
  if (!name.ends_with('_')) return false;
  const size_t substitution = name.rfind('S');
  if (substitution == std::string_view::npos) return false;
  std::string_view head = name.substr(0, substitution);
  for (const std::string_view reference : {"ERK", "EO"}) {
    if (!head.ends_with(reference)) continue;
    head.remove_suffix(reference.size());
    for (const std::string_view member : {"C1", "C2", "C3", "aS"}) {
      if (head.ends_with(member)) return true;
    }
    return false;
  }
  return false;
}

}  // namespace

// The .file directives stand at the end of the text, but .loc lines need to know which files are headers.
void Parser::ScanFiles(std::string_view text) {
  constexpr std::string_view kFile = ".file";
  for (size_t at = text.find(kFile); at != std::string_view::npos; at = text.find(kFile, at + 1)) {
    const char* end = text.data() + text.size();
    const char* number = text.data() + at + kFile.size();
    while (number != end && (*number == ' ' || *number == '\t')) ++number;  // text from a fatbin lacks the tabs
    size_t index = 0;
    const char* name = std::from_chars(number, end, index).ptr;
    if (name == number) continue;
    while (name != end && *name != '"' && *name != '\n') ++name;
    if (name == end || *name != '"' || index > 65535) continue;
    const char* stop = ++name;
    while (stop != end && *stop != '"' && *stop != '\n') ++stop;
    if (module_.files.size() <= index) module_.files.resize(index + 1);
    module_.files[index] = std::string(name, stop);
  }
}

// The strings are at the end too: "LABEL:", then lines of ".b8" with the name's bytes, the last of which is 0.
void Parser::ScanNames(std::string_view text) {
  const size_t section = text.find(".debug_str");
  if (section == std::string_view::npos) return;
  const size_t open = text.find('{', section);
  if (open == std::string_view::npos) return;
  std::string_view rest = text.substr(open + 1, text.find('}', open) - open - 1);
  std::string_view label;
  std::string name;
  while (!rest.empty()) {
    const size_t length = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, length);
    rest.remove_prefix(std::min(length + 1, rest.size()));
    if (const size_t colon = line.find(':'); colon != std::string_view::npos) {
      label = line.substr(0, colon);
      label.remove_prefix(std::min(label.find_first_not_of(" \t"), label.size()));
      name.clear();
      continue;
    }
    const size_t bytes = line.find(".b8");
    if (bytes == std::string_view::npos) continue;
    const char *at = line.data() + bytes + 3, *end = line.data() + line.size();
    while (at != end) {
      unsigned value = 0;
      const auto [next, error] = std::from_chars(at, end, value);
      if (error != std::errc()) {
        ++at;  // a comma or a space
        continue;
      }
      at = next;
      if (value != 0) {
        name += static_cast<char>(value);
      } else if (IsCopy(name)) {
        copies_.insert(label);
      }
    }
  }
}

SourceLine Parser::Place() {
  SourceLine line;
  line.file = static_cast<uint16_t>(Integer());
  line.line = static_cast<int32_t>(Integer());
  Integer();
  return line;
}

// .loc file line column [, function_name label[+n], inlined_at file line column ...]. For nested inlining there is one
// .loc a level, the outermost first. The chosen place is the innermost one that a user can change: in the user's own
// file, and not the definition of a class whose objects are copied, which has the line of `struct`.
void Parser::Location() {
  std::optional<SourceLine> own;
  bool inner = true, copy = false;  // inner: all places so far are in headers or in copies
  const auto consider = [&](const SourceLine& line) {
    if (line.line <= 0 || !inner) return;
    where_ = line;
    // For a place within another inlined one, the earlier .loc told where that was inlined.
    if (const auto outer = inlined_at_.find(PlaceKey(line)); own && outer != inlined_at_.end()) where_ = outer->second;
    if (!own) own = line;
  };
  const SourceLine first = Place();
  consider(first);
  while (Accept(',')) {
    const std::string_view what = Word();
    if (what == "function_name") {
      copy = copies_.contains(Word());
      if (Accept('+')) Integer();
      Accept(',');
      if (!lexer_.Peek().Is("inlined_at")) continue;
      Word();
    } else if (what != "inlined_at") {
      Bad("unexpected '" + std::string(what) + "' in .loc");
    }
    inner = IsHeader(where_.file) || (copy && own && PlaceKey(where_) == PlaceKey(*own));
    consider(Place());
  }
  if (own && PlaceKey(*own) != PlaceKey(where_) && (copy || IsHeader(own->file))) inlined_at_[PlaceKey(*own)] = where_;
}

bool Parser::IsHeader(uint16_t file) const {
  if (file >= module_.files.size()) return false;
  const std::string& name = module_.files[file];
  return name.find("/include/") != std::string::npos || name.find("/site-packages/") != std::string::npos ||
         name.find("/dist-packages/") != std::string::npos || name.ends_with(".h") || name.ends_with(".hpp");
}

}  // namespace kgrpo::simt
