#include "coder_gpt4o/client/sse_parser.h"

#include <algorithm>

namespace kgrpo::coder_gpt4o {

void SseParser::Feed(std::string_view bytes) {
  if (after_cr_ && !bytes.empty()) {
    after_cr_ = false;
    if (bytes.front() == '\n') bytes.remove_prefix(1);
  }
  while (!bytes.empty()) {
    // Two searches that stop at the first line feed are faster than find_first_of, which compares byte by byte.
    const size_t feed = bytes.find('\n');
    const size_t end = std::min(feed, bytes.substr(0, feed).find('\r'));
    if (end == std::string_view::npos) {
      line_.append(bytes);
      return;
    }
    if (line_.empty()) {
      TakeLine(bytes.substr(0, end));  // the whole line lies in this piece: no copy
    } else {
      line_.append(bytes.substr(0, end));
      TakeLine(line_);
      line_.clear();
    }
    size_t used = end + 1;
    if (bytes[end] == '\r') {
      if (used == bytes.size()) {
        after_cr_ = true;
      } else if (bytes[used] == '\n') {
        ++used;
      }
    }
    bytes.remove_prefix(used);
  }
}

void SseParser::Finish() {
  if (!line_.empty()) TakeLine(line_);
  line_.clear();
  Dispatch();
}

void SseParser::TakeLine(std::string_view line) {
  if (first_line_) {
    first_line_ = false;
    if (line.starts_with("\xEF\xBB\xBF")) line.remove_prefix(3);
  }
  if (line.empty()) {
    Dispatch();
    return;
  }
  const size_t colon = line.find(':');
  if (line.substr(0, colon) != "data") return;  // comments (an empty name), event, id, retry: nothing here needs them
  std::string_view value = colon == std::string_view::npos ? std::string_view() : line.substr(colon + 1);
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (has_data_) data_ += '\n';
  data_ += value;
  has_data_ = true;
}

void SseParser::Dispatch() {
  if (!has_data_) return;
  has_data_ = false;
  on_event_(data_);
  data_.clear();
}

}  // namespace kgrpo::coder_gpt4o
