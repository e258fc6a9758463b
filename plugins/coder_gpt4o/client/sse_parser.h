// Parses server-sent events (the WHATWG HTML standard, section 9.2.6) from bytes that arrive in any pieces. Used by
// response_reader.cc.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace kgrpo::coder_gpt4o {

class SseParser {
 public:
  // Receives the data of one event: its data lines, joined by line feeds. Valid during the call only.
  using OnEvent = std::function<void(std::string_view data)>;

  explicit SseParser(OnEvent on_event) : on_event_(std::move(on_event)) {}

  // Takes the next bytes. Lines end with LF, CR or CRLF; a piece may end anywhere, within a character or a line end.
  void Feed(std::string_view bytes);

  // Ends the stream. The standard drops a last event without an empty line after it; it is kept here because some
  // servers omit the line.
  void Finish();

 private:
  void TakeLine(std::string_view line);

  OnEvent on_event_;
  std::string line_;        // the received part of a line
  std::string data_;        // of the event that has begun
  bool has_data_ = false;   // a data line came, perhaps an empty one
  bool after_cr_ = false;   // the last byte was CR: an LF that follows belongs to it
  bool first_line_ = true;  // may begin with a byte order mark
};

}  // namespace kgrpo::coder_gpt4o
