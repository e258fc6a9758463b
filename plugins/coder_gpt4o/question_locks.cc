#include "coder_gpt4o/question_locks.h"

#include <kgrpo/support/sha256.h>

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace kgrpo::coder_gpt4o {
namespace {

// Sets or removes a lock on one byte. Returns false on failure, with errno set. Open file description locks belong to
// the open file and not to the process, so two coders of one process exclude each other.
bool SetLock(int file, int64_t place, short type) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = place;
  lock.l_len = 1;
  int result = 0;
  do {
    result = fcntl(file, F_OFD_SETLK, &lock);
  } while (result != 0 && errno == EINTR);
  return result == 0;
}

}  // namespace

QuestionLock::~QuestionLock() {
  if (file_ >= 0) SetLock(file_, place_, F_UNLCK);
}

QuestionLocks::QuestionLocks(const std::filesystem::path& cache) {
  // Symbolic links are resolved, so that all names of the cache share one lock file.
  std::error_code error;
  std::filesystem::path file = std::filesystem::weakly_canonical(cache, error);
  if (error) file = cache;
  file += ".lock";
  file_ = open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
}

QuestionLocks::~QuestionLocks() {
  if (file_ >= 0) close(file_);
}

std::unique_ptr<QuestionLock> QuestionLocks::TryLock(const std::string& question) const {
  constexpr size_t kDigits = 15;  // 60 bits: fits a file offset, and questions practically never collide
  const auto place = static_cast<int64_t>(std::stoull(Sha256(question).substr(0, kDigits), nullptr, 16));
  if (file_ >= 0 && SetLock(file_, place, F_WRLCK)) return std::make_unique<QuestionLock>(file_, place);
  const bool held = file_ >= 0 && (errno == EAGAIN || errno == EACCES);
  return held ? nullptr : std::make_unique<QuestionLock>(-1, 0);
}

}  // namespace kgrpo::coder_gpt4o
