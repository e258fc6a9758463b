// Locks for processes that share a cache: while one asks a question, the others wait for its answer instead of paying
// for it too. The operating system releases the locks of a process that ends, however it ends. Used by coder.cc.
#ifndef KGRPO_CODER_GPT4O_QUESTION_LOCKS_H
#define KGRPO_CODER_GPT4O_QUESTION_LOCKS_H

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

namespace kgrpo::coder_gpt4o {

// The exclusive right to ask one question, until this object is destroyed.
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

// A lock file beside the cache. Each question is one byte of it that can be locked; the file stays empty. [any thread]
class QuestionLocks {
 public:
  // `cache`: the cache's file. If no lock file can be created beside it, or the file system has no locks, TryLock
  // always succeeds.
  explicit QuestionLocks(const std::filesystem::path& cache);
  ~QuestionLocks();
  QuestionLocks(const QuestionLocks&) = delete;
  QuestionLocks& operator=(const QuestionLocks&) = delete;

  // Locks a question. Returns null if another open lock file holds the lock. The lock must not outlive this object. The
  // holder must not lock the same question again: that would succeed.
  std::unique_ptr<QuestionLock> TryLock(const std::string& question) const;

 private:
  int file_ = -1;
};

}  // namespace kgrpo::coder_gpt4o

#endif
