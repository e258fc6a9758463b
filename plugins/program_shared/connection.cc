#include "program_shared/connection.h"

#include <fcntl.h>
#include <kgrpo/sdk/error.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace kgrpo::program {
namespace {

using process::MakePipe, process::Subprocess;

constexpr size_t kLongestLogLine = 4096;

// Appends what can be read now, up to `most` bytes; false at the end of the stream.
bool ReadAvailable(int descriptor, size_t most, std::string* text) {
  char buffer[65536];
  for (size_t total = 0; total < most;) {
    const ssize_t count = read(descriptor, buffer, sizeof buffer);
    if (count == 0) return false;
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno == EAGAIN;
    text->append(buffer, static_cast<size_t>(count));
    total += static_cast<size_t>(count);
    if (static_cast<size_t>(count) < sizeof buffer) break;  // a pipe gives all that it has
  }
  return true;
}

// The end of the line: interpreters put the file's name and the reason last.
std::string EndOfLine(std::string_view line) {
  constexpr size_t kLongest = 200;
  std::string text;
  for (const char c : line.substr(line.size() - std::min(line.size(), kLongest))) text += c < ' ' || c > '~' ? '?' : c;
  return (line.size() > kLongest ? "...\"" : "\"") + text + "\"";
}

std::string EndOf(const Subprocess::Result& result) {
  if (result.signal == 0) return "exit code " + std::to_string(result.exit_code);
  return "signal " + std::to_string(result.signal) + " (" + strsignal(result.signal) + ")";
}

}  // namespace

Connection::Connection(const std::vector<std::string>& command, std::function<void(std::string_view)> log)
    : log_(std::move(log)) {
  auto [their_input, our_input] = MakePipe();
  auto [our_output, their_output] = MakePipe();
  auto [our_error, their_error] = MakePipe();
  input_ = std::move(our_input);
  output_ = std::move(our_output);
  error_ = std::move(our_error);
  for (const auto* ours : {&input_, &output_, &error_}) fcntl(ours->get(), F_SETFL, O_NONBLOCK);
  process_.emplace(Subprocess::Spec{
      .argv = command, .descriptors = {{their_input.get(), 0}, {their_output.get(), 1}, {their_error.get(), 2}}});
}

Connection::~Connection() {
  input_.Close();
  process_->Wait(1);
  ReadErrors(true);
}

void Connection::Send(std::string_view line) {
  outgoing_.append(line);
  Write();
}

void Connection::Write() {
  while (sent_ < outgoing_.size()) {
    const ssize_t count = write(input_.get(), outgoing_.data() + sent_, outgoing_.size() - sent_);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) return;
    if (count < 0) ThrowEnded();
    sent_ += static_cast<size_t>(count);
  }
  outgoing_.clear();
  sent_ = 0;
}

void Connection::ReadErrors(bool to_end) {
  errors_open_ = ReadAvailable(error_.get(), to_end ? size_t{1} << 20 : size_t{65536}, &errors_);
  size_t begin = 0;
  for (size_t i = 0; i < errors_.size(); ++i) {
    const bool ends = errors_[i] == '\n';
    if (!ends && i - begin < kLongestLogLine && !(to_end && i + 1 == errors_.size())) continue;
    const std::string_view line(errors_.data() + begin, (ends ? i : i + 1) - begin);
    if (!line.empty()) {
      log_(line);
      last_words_ = line;
    }
    begin = i + 1;
  }
  errors_.erase(0, begin);
}

void Connection::ThrowEnded() {
  const auto end = process_->Wait(0.2);
  ReadErrors(true);
  const bool silent = end && end->signal == 0 && end->exit_code == 0 && !answered_;
  throw Broken((end ? "ended with " + EndOf(*end) : "closed its standard streams") +
               (silent ? " before it answered; does its last line call run()?" : "") +
               (last_words_.empty() ? "" : "; the last it said: " + EndOfLine(last_words_)));
}

std::vector<std::string> Connection::Wait(double seconds, int wake) {
  pollfd streams[] = {{output_.get(), POLLIN, 0},
                      {errors_open_ ? error_.get() : -1, POLLIN, 0},
                      {wake, POLLIN, 0},
                      {sent_ < outgoing_.size() ? input_.get() : -1, POLLOUT, 0}};
  const int milliseconds = seconds < 0 ? -1 : static_cast<int>(std::min(seconds, 1e6) * 1000) + 1;
  if (poll(streams, std::size(streams), milliseconds) < 0) {
    if (errno == EINTR) return {};
    throw Error(KGRPO_ERROR_UNAVAILABLE, std::string("cannot wait for the program: ") + std::strerror(errno));
  }
  if (streams[1].revents != 0) ReadErrors(false);
  if (streams[3].revents != 0) Write();
  bool ended = false;
  if (streams[0].revents != 0) {
    ended = !ReadAvailable(output_.get(), kLongestLine, &incoming_);
  } else if (streams[2].revents == 0 && process_->Wait(0)) {
    ended = true;  // a child of the program may still hold its standard output open
  }
  std::vector<std::string> lines;
  size_t begin = 0;
  for (size_t end; (end = incoming_.find('\n', std::max(begin, searched_))) != std::string::npos; begin = end + 1) {
    if (end > begin) lines.push_back(incoming_.substr(begin, end - begin));
  }
  incoming_.erase(0, begin);
  searched_ = incoming_.size();
  if (incoming_.size() > kLongestLine) {
    throw Broken("wrote a line of more than " + std::to_string(kLongestLine >> 20) + " MiB, which begins " +
                 Excerpt(incoming_));
  }
  answered_ = answered_ || !lines.empty();
  if (ended && lines.empty()) ThrowEnded();
  return lines;
}

}  // namespace kgrpo::program
