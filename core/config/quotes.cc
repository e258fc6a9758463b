#include "config/quotes.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <sstream>
#include <string_view>
#include <vector>

#include "config/verbatim.h"

namespace kgrpo {
namespace {

// Remembers where the last text was that stands in quotes or in a block.
class LastText : public YAML::EventHandler {
 public:
  std::optional<YAML::Mark> at() const { return at_; }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t, const std::string&) override {
    if (tag == "!") at_ = mark;
  }
  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}

 private:
  std::optional<YAML::Mark> at_;
};

// True if the quote closes within the line, from that byte on.
bool Closes(std::string_view line, size_t byte, char quote) {
  for (; byte < line.size(); ++byte) {
    const bool doubled = quote == '\'' && line.substr(byte).starts_with("''");
    if (doubled || (quote == '"' && line[byte] == '\\'))
      ++byte;
    else if (line[byte] == quote)
      return true;
  }
  return false;
}

}  // namespace

std::optional<QuotedText> LastQuotedText(const std::string& yaml) {
  LastText last;
  std::istringstream stream(yaml);
  try {
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(last)) {
    }
  } catch (const YAML::Exception&) {
    // Only the place of the error matters, not its cause.
  }
  if (!last.at()) return {};
  const std::vector<std::string_view> lines = LinesOf(yaml);
  const auto first = static_cast<size_t>(last.at()->line);
  if (first >= lines.size()) return {};
  const std::string_view line = lines[first];
  const bool marked = first == 0 && yaml.starts_with("\xEF\xBB\xBF");     // as UTF-8: counted in no column
  auto byte = static_cast<size_t>(last.at()->column) + (marked ? 3 : 0);  // yaml-cpp counts bytes
  if (byte >= line.size() || (line[byte] != '"' && line[byte] != '\'')) return {};
  const char quote = line[byte];
  QuotedText text{last.at()->line + 1, static_cast<int>(CountCharacters(line.substr(0, byte))) + 1};
  ++byte;
  for (size_t i = first; i < lines.size(); ++i, byte = 0) {
    text.last_line = static_cast<int>(i) + 1;
    text.closed = Closes(lines[i], byte, quote);
    if (text.closed) break;
  }
  return text;
}

}  // namespace kgrpo
