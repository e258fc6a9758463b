#include "kgrpo/support/yaml.h"

#include <libfyaml.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <memory>
#include <new>
#include <string_view>
#include <system_error>
#include <utility>

namespace kgrpo {
namespace {

// Limits against brackets that exhaust the stack and aliases that make a short file large. No real file reaches them.
constexpr int kMaxDepth = 64;
constexpr size_t kMaxNodes = 100'000;
constexpr const char* kTooMany = "more than 100,000 values, aliases included";

constexpr const char* kUnclosedQuote = "this quote is never closed";

// libfyaml's messages that name a rule of its grammar, and the likely cause.
constexpr std::pair<std::string_view, const char*> kCauses[] = {
    {"double-quoted scalar without closing", kUnclosedQuote},
    {"single-quoted scalar without closing", kUnclosedQuote},
    {"invalid trailing content after", "text follows the closing quote: is a quote missing in a line above?"},
    {"invalid multiline plain key",
     "a ':' is missing after a key, or the keys of a mapping do not begin in one column"},
    {"could not find expected ':'", "a ':' is missing after this key"},
    {"invalid nested block mapping", "text that contains ': ' needs quotes"},
    {"missing comma in flow",
     "a ',' is missing here, or a key or text that contains '[', '{', ': ' or '? ' needs quotes"},
    {"wrong indendation", "the keys of a mapping, and the items of a list, begin in one column"},
    {"plain scalar cannot start", "text cannot begin with this character: put it in quotes"},
};

std::string TextOf(fy_token* token) {
  size_t size = 0;
  const char* text = token == nullptr ? nullptr : fy_token_get_text(token, &size);
  return text == nullptr ? std::string() : std::string(text, size);
}

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

YamlPlace PlaceOf(fy_token* token) {
  const fy_mark* mark = token == nullptr ? nullptr : fy_token_start_mark(token);
  return mark == nullptr ? YamlPlace() : YamlPlace{mark->line + 1, mark->column + 1};
}

class Reader {
 public:
  explicit Reader(const std::string& text) : text_(text) {
    fy_diag_cfg how;
    fy_diag_cfg_default(&how);
    how.fp = nullptr;
    how.output_fn = [](fy_diag*, void*, const char*, size_t) {};
    diag_.reset(fy_diag_create(&how));
    if (diag_ == nullptr) throw std::bad_alloc();
    fy_diag_set_collect_errors(diag_.get(), true);
    fy_parse_cfg config{};
    config.diag = diag_.get();
    // Sloppy: as in other parsers, a bracket may close in the column of its key.
    config.flags =
        static_cast<fy_parse_cfg_flags>(FYPCF_DEFAULT_VERSION_1_2 | FYPCF_COLLECT_DIAG | FYPCF_SLOPPY_FLOW_INDENTATION);
    parser_.reset(fy_parser_create(&config));
    if (parser_ == nullptr || fy_parser_set_string(parser_.get(), text_.data(), text_.size()) != 0)
      throw std::bad_alloc();
  }

  YamlFile Read() {
    YamlFile file;
    while (!error_ && Next()) {
      if (event_->type != FYET_DOCUMENT_START) continue;
      anchors_.clear();
      if (!Next()) break;
      YamlNode document = ReadNode({1, 1});
      if (!error_) file.documents.push_back(std::move(document));
    }
    file.error = std::move(error_);
    return file;
  }

 private:
  struct Anchored {
    YamlNode node;
    size_t nodes;
  };
  struct FreesEvent {
    fy_parser* parser;
    void operator()(fy_event* event) const { fy_parser_event_free(parser, event); }
  };

  // Goes to the next event; false at the end or after an error.
  bool Next() {
    event_ = {fy_parser_parse(parser_.get()), FreesEvent{parser_.get()}};
    if (event_ == nullptr && fy_diag_got_error(diag_.get())) TakeError();
    return event_ != nullptr;
  }

  void TakeError() {
    void* position = nullptr;
    const fy_diag_error* found = fy_diag_errors_iterate(diag_.get(), &position);
    if (found == nullptr) return Fail({1, 1}, "cannot be parsed");
    YamlError error{{found->line, found->column}, found->msg};
    for (const auto& [theirs, cause] : kCauses) {
      if (!error.message.starts_with(theirs)) continue;
      if (theirs.ends_with("without closing")) --error.at.column;  // theirs is behind the quote
      error.message = cause;
    }
    // The parser stops at the last place where the bracket could close, many lines later in a long file.
    const bool in_quotes = error.message == kUnclosedQuote;
    if (!in_quotes && !open_brackets_.empty() && open_brackets_.back().line < error.at.line) {
      const auto lines = std::count(text_.begin(), text_.end(), '\n') + !text_.ends_with('\n');
      error.message = error.at.line > lines
                          ? "this bracket is never closed"
                          : "this bracket is not closed, or a ',' is missing, before line " +
                                std::to_string(error.at.line) + ", column " + std::to_string(error.at.column);
      error.at = open_brackets_.back();
    }
    Fail(error.at, std::move(error.message));
  }

  void Fail(YamlPlace at, std::string message) {
    if (!error_) error_ = {at, std::move(message)};
  }

  // Reads the node that the current event begins, to its last event. `parent`: the place of a node without one.
  YamlNode ReadNode(YamlPlace parent) {
    YamlNode node;
    const size_t before = nodes_;
    const fy_event_type type = event_->type;
    if (++nodes_ > kMaxNodes) Fail(parent, kTooMany);
    if (error_) return node;
    if (type == FYET_ALIAS) return Alias(event_->alias.anchor);
    const std::string anchor = TextOf(fy_event_get_anchor_token(event_.get()));
    node.tag = TextOf(fy_event_get_tag_token(event_.get()));
    if (type == FYET_SCALAR) {
      ReadScalar(event_->scalar.value, parent, &node);
    } else {
      node.kind = type == FYET_MAPPING_START ? YamlNode::Kind::kMapping : YamlNode::Kind::kList;
      ReadCollection(parent, &node);
    }
    if (!anchor.empty()) anchors_[anchor] = {node, nodes_ - before};
    return node;
  }

  YamlNode Alias(fy_token* token) {
    const YamlPlace at = PlaceOf(token);
    const auto found = anchors_.find(TextOf(token));
    if (found == anchors_.end()) {
      Fail({at.line, at.column - 1}, "'*' refers to a name that no '&' gives before it; as text it needs quotes");
      return {};
    }
    nodes_ += found->second.nodes;
    if (nodes_ > kMaxNodes) {
      Fail(at, kTooMany);
      return {};
    }
    return found->second.node;
  }

  void ReadCollection(YamlPlace parent, YamlNode* node) {
    const bool mapping = node->kind == YamlNode::Kind::kMapping;
    node->at = PlaceOf(mapping ? event_->mapping_start.mapping_start : event_->sequence_start.sequence_start);
    if (++depth_ > kMaxDepth) return Fail(node->at, "nested more than 64 levels deep");
    const bool flow = fy_event_get_node_style(event_.get()) == FYNS_FLOW;
    if (flow) open_brackets_.push_back(node->at);
    const fy_event_type end = mapping ? FYET_MAPPING_END : FYET_SEQUENCE_END;
    while (Next() && event_->type != end) {
      YamlNode& inner = (mapping ? node->keys : node->values).emplace_back(ReadNode(parent));
      if (error_) return;
      if (node->at.line == 0) node->at = inner.at;
      if (!mapping) continue;
      if (!Next()) break;
      node->values.push_back(ReadNode(inner.at));
      if (error_) return;
    }
    if (event_ == nullptr) return Fail(parent, "ends too early");
    --depth_;
    if (flow) open_brackets_.pop_back();
    if (node->at.line == 0) node->at = parent;
  }

  void ReadScalar(fy_token* token, YamlPlace parent, YamlNode* node) {
    node->value = TextOf(token);
    node->at = parent;
    node->plain = true;
    const fy_mark* begin = token == nullptr ? nullptr : fy_token_start_mark(token);
    const fy_mark* end = token == nullptr ? nullptr : fy_token_end_mark(token);
    if (begin == nullptr || end == nullptr) return;
    const fy_scalar_style style = fy_scalar_token_get_style(token);
    const bool quoted = style == FYSS_SINGLE_QUOTED || style == FYSS_DOUBLE_QUOTED;
    node->plain = style == FYSS_PLAIN;
    node->at = {begin->line + 1, begin->column + (quoted ? 0 : 1)};  // libfyaml's place is behind the quote
    const std::string_view written =
        std::string_view(text_).substr(begin->input_pos, end->input_pos - begin->input_pos);
    if (node->plain || quoted) {
      if (written == node->value) node->text = {begin->line + 1, begin->column + 1};
      return;
    }
    node->at = HeaderOf(*begin);
    if (style == FYSS_LITERAL) node->text = {begin->line + 1, IndentOf(written, node->value) + 1};
  }

  // The '|' or '>' of the block whose text begins at `begin`: in the line before, followed by indicators and a comment.
  YamlPlace HeaderOf(const fy_mark& begin) const {
    const size_t end = text_.rfind('\n', std::min(begin.input_pos, text_.size()) - 1);
    const size_t start = end == 0 || end == std::string::npos ? std::string::npos : text_.rfind('\n', end - 1);
    const std::string_view line = std::string_view(text_).substr(start + 1, end - start - 1);  // npos + 1 is 0
    for (size_t at = line.find_first_of("|>"); at != std::string_view::npos; at = line.find_first_of("|>", at + 1)) {
      const size_t rest = line.find_first_not_of("+-0123456789 \t\r", at + 1);
      if (rest != std::string_view::npos && line[rest] != '#') continue;
      const auto continues = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; };
      const auto characters = at - static_cast<size_t>(std::count_if(line.begin(), line.begin() + at, continues));
      return {begin.line, static_cast<int>(characters) + 1};
    }
    return {begin.line + 1, 1};
  }

  // By how many characters the lines of a literal block are indented.
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

  template <auto Free>
  struct Frees {
    template <typename T>
    void operator()(T* object) const {
      Free(object);
    }
  };

  const std::string& text_;
  std::unique_ptr<fy_diag, Frees<fy_diag_destroy>> diag_;
  std::unique_ptr<fy_parser, Frees<fy_parser_destroy>> parser_;
  std::unique_ptr<fy_event, FreesEvent> event_{nullptr, FreesEvent{nullptr}};
  std::map<std::string, Anchored> anchors_;
  std::vector<YamlPlace> open_brackets_;
  size_t nodes_ = 0;
  int depth_ = 0;
  std::optional<YamlError> error_;
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
  // libfyaml ends a text at a NUL byte without an error.
  if (const std::optional<YamlPlace> bad = FindBadByte(text))
    return {{}, YamlError{*bad, "the file is not UTF-8 text", false}};
  return Reader(text).Read();
}

}  // namespace kgrpo
