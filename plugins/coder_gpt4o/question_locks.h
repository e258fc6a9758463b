// Locks for processes that share a cache: while one asks a question, the others wait for its answer instead of paying
// for the same. The operating system releases the locks of a process that ends, however it ends. Used by coder.cc.
#ifndef KGRPO_CODER_GPT4O_QUESTION_LOCKS_H
#define KGRPO_CODER_GPT4O_QUESTION_LOCKS_H

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

namespace kgrpo::coder_gpt4o {

// The right to ask one question, until this goes.
class QuestionLock {
 public:
  QuestionLock(int file, int64_t place) : file_(file), place_(place) {}
  ~QuestionLock();
  QuestionLock(const QuestionLock&) = delete;
  QuestionLock& operator=(const QuestionLock&) = delete;

 private:
  int file_;
  int64_t place_;
};

// A file beside the cache, of which each question is one byte that may be locked. It stays empty. Any thread.
class QuestionLocks {
 public:
  // `cache`: its file. Where none can be made beside it, or the file system knows no locks, whoever wants to may ask.
  explicit QuestionLocks(const std::filesystem::path& cache);
  ~QuestionLocks();
  QuestionLocks(const QuestionLocks&) = delete;
  QuestionLocks& operator=(const QuestionLocks&) = delete;

  // Null: somebody else asks it. A lock outlives neither this object, nor is it asked for again by who has it.
  std::unique_ptr<QuestionLock> TryLock(const std::string& question) const;

 private:
  int file_ = -1;
};

}  // namespace kgrpo::coder_gpt4o

#endif
