#include "coder_gpt4o/client/sse_parser.h"

#include <utility>

namespace kgrpo::coder_gpt4o {

void SseParser::Feed(std::string_view bytes) {
  for (const char c : bytes) {
    const bool of_crlf = std::exchange(after_cr_, c == '\r') && c == '\n';
    if (of_crlf) continue;
    if (c == '\r' || c == '\n') {
      TakeLine(line_);
      line_.clear();
    } else {
      line_ += c;
    }
  }
}

void SseParser::Finish() {
  if (!line_.empty()) TakeLine(line_);
  TakeLine("");
}

void SseParser::TakeLine(std::string_view line) {
  if (std::exchange(first_line_, false) && line.starts_with("\xEF\xBB\xBF")) line.remove_prefix(3);
  if (line.empty() && std::exchange(has_data_, false)) on_event_(std::exchange(data_, ""));
  const size_t colon = line.find(':');
  if (line.substr(0, colon) != "data") return;  // comments (an empty name), event, id, retry: nothing here needs them
  line = colon == std::string_view::npos ? std::string_view() : line.substr(colon + 1);
  if (line.starts_with(' ')) line.remove_prefix(1);
  if (std::exchange(has_data_, true)) data_ += '\n';
  data_ += line;
}

}  // namespace kgrpo::coder_gpt4o
