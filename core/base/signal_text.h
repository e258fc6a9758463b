// Text that a signal handler may build and write: a fixed buffer, no allocation, no locale.
#ifndef KGRPO_BASE_SIGNAL_TEXT_H
#define KGRPO_BASE_SIGNAL_TEXT_H

#include <unistd.h>

#include <cstddef>
#include <cstdint>

namespace kgrpo {

// Text beyond the buffer is dropped.
class SignalText {
 public:
  SignalText& operator<<(const char* text) {
    for (; *text != '\0' && size_ < sizeof buffer_; ++text) buffer_[size_++] = *text;
    return *this;
  }
  SignalText& operator<<(uint64_t number) {
    char digits[21] = {};
    size_t at = sizeof digits - 1;
    do digits[--at] = static_cast<char>('0' + number % 10);
    while ((number /= 10) > 0);
    return *this << digits + at;
  }
  SignalText& Append(const SignalText& other) {
    for (size_t i = 0; i < other.size_ && size_ < sizeof buffer_; ++i) buffer_[size_++] = other.buffer_[i];
    return *this;
  }
  // Writes to standard error. Errors are ignored: nothing else can report them.
  void Write() const {
    for (size_t done = 0; done < size_;) {
      const ssize_t count = write(STDERR_FILENO, buffer_ + done, size_ - done);
      if (count <= 0) return;
      done += static_cast<size_t>(count);
    }
  }

 private:
  char buffer_[1024];
  size_t size_ = 0;
};

}  // namespace kgrpo
#endif
