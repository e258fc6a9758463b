#include "base/files.h"

#include <kgrpo/sdk/error.h>

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

namespace kgrpo {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void Fail(const char* what, const fs::path& path) {
  throw Error(KGRPO_ERROR_UNAVAILABLE, std::string(what) + " " + path.string() + ": " + std::strerror(errno));
}

class Descriptor {
 public:
  Descriptor(const fs::path& path, int flags, mode_t mode = 0) : fd_(open(path.c_str(), flags | O_CLOEXEC, mode)) {
    if (fd_ < 0) Fail("cannot open", path);
  }
  ~Descriptor() { close(fd_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

}  // namespace

void SyncFile(const fs::path& path) {
  const Descriptor file(path, O_RDONLY);
  if (fsync(file.get()) != 0) Fail("cannot write to the disk:", path);
}

void SyncDirectory(const fs::path& path) {
  const Descriptor directory(path, O_RDONLY | O_DIRECTORY);
  // Some file systems cannot sync folders, and say EINVAL: their entries are as safe as they get.
  if (fsync(directory.get()) != 0 && errno != EINVAL) Fail("cannot write to the disk:", path);
}

void SyncTree(const fs::path& path) {
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(path)) {
    if (entry.is_directory()) {
      SyncDirectory(entry.path());
    } else if (entry.is_regular_file()) {
      SyncFile(entry.path());
    }
  }
  SyncDirectory(path);
}

void WriteFileAtomically(const fs::path& path, std::string_view content) {
  const fs::path partial = path.string() + ".partial";
  {
    const Descriptor file(partial, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    for (size_t done = 0; done < content.size();) {
      const ssize_t count = write(file.get(), content.data() + done, content.size() - done);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) Fail("cannot write", partial);
      done += static_cast<size_t>(count);
    }
    if (fsync(file.get()) != 0) Fail("cannot write to the disk:", partial);
  }
  if (rename(partial.c_str(), path.c_str()) != 0) Fail("cannot rename into place", path);
  SyncDirectory(path.has_parent_path() ? path.parent_path() : fs::path("."));
}

void PublishDirectory(const fs::path& from, const fs::path& to) {
  SyncTree(from);
  if (rename(from.c_str(), to.c_str()) != 0) Fail("cannot rename into place", to);
  SyncDirectory(to.parent_path());
}

std::string ReadFile(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  if (file && file.peek() != std::ifstream::traits_type::eof()) content << file.rdbuf();
  if (file.is_open() && !file.bad() && !content.fail()) return std::move(content).str();
  const bool absent = errno == ENOENT || errno == ENOTDIR;
  throw Error(absent ? KGRPO_ERROR_NOT_FOUND : KGRPO_ERROR_UNAVAILABLE,
              "cannot read " + path.string() + ": " + std::strerror(errno));
}

}  // namespace kgrpo
