#include "kgrpo/support/yaml.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>

namespace kgrpo {
namespace {

// Limits against brackets that exhaust the stack and aliases that make a short file large. No real file reaches them.
constexpr size_t kMaxDepth = 64;
constexpr size_t kMaxNodes = 100'000;
constexpr const char* kTooMany = "more than 100,000 values, aliases included";

constexpr const char* kMissingComma =
    "a ',' is missing here, or a key or text that contains '[', '{', ': ' or '? ' needs quotes";
constexpr const char* kOneColumn = "the keys of a mapping, and the items of a list, begin in one column";
constexpr const char* kUnknownAlias = "'*' refers to a name that no '&' gives before it; as text it needs quotes";

// yaml-cpp's messages that name a rule of its grammar, and the likely cause.
constexpr std::pair<std::string_view, const char*> kCauses[] = {
    {"end of map flow", kMissingComma},
    {"end of sequence flow", kMissingComma},
    {"illegal flow end", kMissingComma},
    {"end of map not", kOneColumn},
    {"end of sequence not", kOneColumn},
    {"illegal map value", "text that contains ': ' needs quotes"},
    {"unknown token", "text cannot begin with this character: put it in quotes"},
    {"the referenced anchor", kUnknownAlias},
};

// The place of the first byte that is not UTF-8 text, or is NUL.
std::optional<YamlPlace> FindBadByte(const std::string& text) {
  YamlPlace at{1, 1};
  for (size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const size_t length = lead < 0x80                   ? 1
                          : lead >= 0xC2 && lead < 0xE0 ? 2
                          : lead >= 0xE0 && lead < 0xF0 ? 3
                          : lead >= 0xF0 && lead < 0xF5 ? 4
                                                        : 0;
    if (length == 0 || lead == 0 || i + length > text.size()) return at;
    for (size_t j = 1; j < length; ++j) {
      if ((static_cast<unsigned char>(text[i + j]) & 0xC0) != 0x80) return at;
    }
    i += length;
    ++at.column;
    if (lead == '\n') {
      ++at.line;
      at.column = 1;
    }
  }
  return {};
}

// Places of byte positions, which are asked for mostly in ascending order.
class Places {
 public:
  explicit Places(std::string_view text) : text_(text) {}

  YamlPlace At(size_t position) {
    if (position < position_) *this = Places(text_);
    for (; position_ < std::min(position, text_.size()); ++position_) {
      const auto byte = static_cast<unsigned char>(text_[position_]);
      if (byte == '\n') {
        ++place_.line;
        place_.column = 1;
      } else if ((byte & 0xC0) != 0x80) {
        ++place_.column;
      }
    }
    return place_;
  }

 private:
  std::string_view text_;
  size_t position_ = 0;
  YamlPlace place_{1, 1};
};

// Builds the tree from yaml-cpp's events, each of which has the position of its first byte. Throws YamlError.
class Reader : public YAML::EventHandler {
 public:
  explicit Reader(std::string_view text) : text_(text), places_(text) {}

  void Read(std::vector<YamlNode>* documents) {
    std::istringstream stream{std::string(text_)};
    try {
      YAML::Parser parser(stream);
      documents_ = documents;
      while (parser.HandleNextDocument(*this)) {
      }
    } catch (const YAML::Exception& error) {
      Throw(error);
    }
  }

 private:
  struct Open {
    YamlNode node;
    YAML::anchor_t anchor;
    size_t nodes;  // in the document before it
    bool flow;
  };
  struct Anchored {
    YamlNode node;
    size_t nodes;
  };

  void OnDocumentStart(const YAML::Mark&) override { anchors_.clear(); }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t anchor) override {
    YamlNode node;
    node.at = ParentPlace();
    node.plain = true;
    Add(std::move(node), anchor, nodes_);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) throw YamlError{PlaceOf(mark), kUnknownAlias};
    nodes_ += found->second.nodes;
    Add(found->second.node, 0, nodes_);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    YamlNode node;
    const size_t begin = SkipProperties(mark);
    const char first = begin < text_.size() ? text_[begin] : '\0';
    const bool quoted = first == '"' || first == '\'', block = first == '|' || first == '>';
    node.value = value;
    node.at = places_.At(begin);
    node.plain = !quoted && !block;
    if (tag != "?" && (node.plain || tag != "!")) node.tag = tag;
    if (quoted) RequireClosed(begin);
    const size_t text = begin + (quoted ? 1 : 0);
    if (!block && text_.substr(text, value.size()) == value) {
      node.text = {node.at.line, node.at.column + (quoted ? 1 : 0)};
    } else if (first == '|') {
      const size_t line = text_.find('\n', begin);
      if (line != std::string_view::npos) node.text = {node.at.line + 1, IndentOf(text_.substr(line + 1), value) + 1};
    }
    Add(std::move(node), anchor, nodes_);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value style) override {
    Begin(YamlNode::Kind::kList, mark, tag, anchor, style);
  }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value style) override {
    Begin(YamlNode::Kind::kMapping, mark, tag, anchor, style);
  }
  void OnSequenceEnd() override { End(); }
  void OnMapEnd() override { End(); }

  void Begin(YamlNode::Kind kind, const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
             YAML::EmitterStyle::value style) {
    Open& open = open_.emplace_back();
    open.node.kind = kind;
    open.node.at = places_.At(SkipProperties(mark));
    if (tag != "?") open.node.tag = tag;
    open.anchor = anchor;
    open.nodes = nodes_;
    open.flow = style == YAML::EmitterStyle::Flow;
    if (open_.size() > kMaxDepth) throw YamlError{open.node.at, "nested more than 64 levels deep"};
  }

  void End() {
    Open open = std::move(open_.back());
    open_.pop_back();
    Add(std::move(open.node), open.anchor, open.nodes);
  }

  // Puts a whole node into the one that is open. `before`: nodes in the document before it.
  void Add(YamlNode node, YAML::anchor_t anchor, size_t before) {
    if (++nodes_ > kMaxNodes) throw YamlError{ParentPlace(), kTooMany};
    if (anchor != 0) anchors_[anchor] = {node, nodes_ - before};
    if (open_.empty()) return documents_->push_back(std::move(node));
    YamlNode& parent = open_.back().node;
    const bool key = parent.IsMapping() && parent.keys.size() == parent.values.size();
    (key ? parent.keys : parent.values).push_back(std::move(node));
  }

  // The place of a value that is not written: its key's, or that of the collection.
  YamlPlace ParentPlace() const {
    if (open_.empty()) return {1, 1};
    const YamlNode& parent = open_.back().node;
    return parent.keys.size() > parent.values.size() ? parent.keys.back().at : parent.at;
  }

  size_t PositionOf(const YAML::Mark& mark) const {
    return std::min(text_.size(), static_cast<size_t>(std::max(0, mark.pos)));
  }
  YamlPlace PlaceOf(const YAML::Mark& mark) { return places_.At(PositionOf(mark)); }

  // The position of a node without its anchor and tag.
  size_t SkipProperties(const YAML::Mark& mark) const {
    constexpr std::string_view kSpace = " \t\r\n";
    size_t at = PositionOf(mark);
    while (at < text_.size() && (text_[at] == '&' || text_[at] == '!')) {
      at = std::min(text_.find_first_of(kSpace, at), text_.size());
      at = std::min(text_.find_first_not_of(kSpace, at), text_.size());
    }
    return at;
  }

  // yaml-cpp ends a text in quotes at the end of the file.
  void RequireClosed(size_t begin) {
    const char quote = text_[begin];
    for (size_t at = begin + 1; at < text_.size(); ++at) {
      if (quote == '"' && text_[at] == '\\') {
        ++at;
      } else if (text_[at] == quote) {
        if (quote == '"' || at + 1 >= text_.size() || text_[at + 1] != quote) return;
        ++at;  // '' stands for '
      }
    }
    throw YamlError{places_.At(begin), "this quote is never closed"};
  }

  // Throws the error with its likely cause and place: yaml-cpp often stops behind it.
  [[noreturn]] void Throw(const YAML::Exception& error) {
    const size_t position = PositionOf(error.mark);
    YamlError found{places_.At(position), error.msg};
    for (const auto& [theirs, cause] : kCauses) {
      if (found.message.starts_with(theirs)) found.message = cause;
    }
    const size_t start = position == 0 ? 0 : text_.rfind('\n', position - 1) + 1;  // npos + 1 is 0
    std::string_view before = text_.substr(start, position - start);
    before = before.substr(0, before.find_last_not_of(' ') + 1);
    const auto bracket = std::find_if(open_.rbegin(), open_.rend(), [](const Open& open) { return open.flow; });
    const bool at_end = text_.find_first_not_of(" \t\r\n", position) == std::string_view::npos;
    if (bracket != open_.rend() && (at_end || bracket->node.at.line < found.at.line)) {
      found.message = at_end ? "this bracket is never closed"
                             : "this bracket is not closed, or a ',' is missing, before line " +
                                   std::to_string(found.at.line) + ", column " + std::to_string(found.at.column);
      found.at = bracket->node.at;
    } else if (found.message == kOneColumn && (before.ends_with('\'') || before.ends_with('"'))) {
      found.message = "text follows the closing quote: is a quote missing in a line above?";
    } else if (error.msg.starts_with("illegal map value") && before.find(": ") == std::string_view::npos) {
      // The key of this line goes on with a text of the line before it.
      const size_t above = start < 2 ? 0 : text_.rfind('\n', start - 2) + 1;
      const size_t word = before.starts_with('\t') ? start : std::min(text_.find_first_not_of(" -", above), start);
      found.message = before.starts_with('\t')
                          ? "a tab cannot indent: use spaces"
                          : "a ':' is missing after this key, or the keys of a mapping do not begin in one column";
      found.at = places_.At(word);
    }
    throw YamlError(found);
  }

  // By how many characters the lines of a literal block are indented. `written`: from the line after its '|'.
  static int IndentOf(std::string_view written, std::string_view value) {
    while (!value.empty() && !written.empty()) {
      std::string_view line = written.substr(0, written.find('\n'));
      if (line.ends_with('\r')) line.remove_suffix(1);
      const std::string_view kept = value.substr(0, value.find('\n'));
      if (!kept.empty()) return static_cast<int>(line.size() - std::min(line.size(), kept.size()));
      value.remove_prefix(1);
      written.remove_prefix(std::min(written.size(), written.find('\n') + 1));
    }
    return 0;
  }

  const std::string_view text_;
  Places places_;
  std::vector<YamlNode>* documents_ = nullptr;
  std::vector<Open> open_;  // collections that the current event is in
  std::map<YAML::anchor_t, Anchored> anchors_;
  size_t nodes_ = 0;
};

}  // namespace

const YamlNode* YamlNode::Get(std::string_view key) const {
  const auto found = std::ranges::find(keys, key, &YamlNode::value);
  return found == keys.end() ? nullptr : &values[static_cast<size_t>(found - keys.begin())];
}

std::optional<YamlNumber> ReadNumber(const YamlNode& node) {
  if (!node.IsScalar() || !node.plain) return {};
  std::string_view digits = node.value;
  const bool negative = digits.starts_with('-');
  if (negative || digits.starts_with('+')) digits.remove_prefix(1);
  const int base = digits.starts_with("0x") ? 16 : digits.starts_with("0o") ? 8 : 10;
  if (base != 10) digits.remove_prefix(2);
  const char* const end = digits.data() + digits.size();
  if (digits.empty()) return {};

  YamlNumber number;
  uint64_t magnitude = 0;
  if (const auto [stop, error] = std::from_chars(digits.data(), end, magnitude, base);
      stop == end && error == std::errc()) {
    number.real = negative ? -static_cast<double>(magnitude) : static_cast<double>(magnitude);
    constexpr uint64_t kLimit = uint64_t{1} << 63;
    if (magnitude < kLimit || (negative && magnitude == kLimit))
      number.integer = static_cast<int64_t>(negative ? -magnitude : magnitude);
    else if (!negative)
      number.large = magnitude;
    return number;
  }
  // from_chars also takes "inf" and "nan", which are words here.
  if (base != 10 || digits.find_first_not_of("0123456789.eE+-") != std::string_view::npos) return {};
  double real = 0;
  const auto [stop, error] = std::from_chars(digits.data(), end, real);
  if (stop != end || error == std::errc::invalid_argument) return {};
  if (error == std::errc::result_out_of_range) real = HUGE_VAL;
  number.real = negative ? -real : real;
  return number;
}

YamlFile ReadYaml(const std::string& text) {
  YamlFile file;
  try {
    if (const std::optional<YamlPlace> bad = FindBadByte(text))
      throw YamlError{*bad, "the file is not UTF-8 text", false};
    constexpr std::string_view kByteOrder = "\xEF\xBB\xBF";
    Reader(std::string_view(text).substr(text.starts_with(kByteOrder) ? kByteOrder.size() : 0)).Read(&file.documents);
  } catch (YamlError& error) {
    file.error = std::move(error);
  }
  return file;
}

}  // namespace kgrpo
