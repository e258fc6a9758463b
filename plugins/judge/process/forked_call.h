// Runs a function of a problem's author (oracle.cc, checker.cc, inputs.cc) in a copy of this process, so that its end
// by a signal, an exit or a limit is a result here. Used by source_oracle.cc and source_inputs.cc.
#pragma once

#include <functional>
#include <string>

namespace kgrpo::evaluator {

// How a call ended. [any thread]
struct CallEnd {
  std::string failure;  // "crashed (Segmentation fault)", "threw an exception", ...; empty: it returned
  std::string words;    // what it wrote to kCallWords, at most 1,000 bytes
};

// The copy's descriptor for words.
inline constexpr int kCallWords = 3;

// Calls `body` in the copy; of what it changes, only shared memory is seen here. `processor_seconds`: the copy's limit;
// five times that of wall clock. Throws Error(KGRPO_ERROR_UNAVAILABLE) if no process can be made for `file`.
CallEnd CallInCopy(const std::string& file, int processor_seconds, const std::function<void()>& body);

// Memory that a copy and this process share, with a page before and after it that neither may access: a copy's access
// there ends it, with the words "accesses NAME out of its bounds".
class SharedBytes {
 public:
  // At the end of its pages, or at their start. Throws Error(KGRPO_ERROR_UNAVAILABLE) if memory is short.
  SharedBytes(std::string name, size_t bytes, bool at_end = true);
  ~SharedBytes();
  SharedBytes(SharedBytes&& other) noexcept;
  SharedBytes& operator=(SharedBytes&&) = delete;
  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  char* pages_ = nullptr;
  size_t mapped_ = 0, bytes_ = 0;
  void* data_ = nullptr;
  std::string name_;
};

}  // namespace kgrpo::evaluator
