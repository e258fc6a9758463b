#include "policy_qwen/files.h"

#include <fcntl.h>
#include <kgrpo/sdk/error.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

namespace kgrpo::policy {
namespace {

[[noreturn]] void FailWithErrno(const std::string& path, const char* what) {
  const int code = errno;
  throw Error(code == ENOENT ? KGRPO_ERROR_NOT_FOUND : KGRPO_ERROR_UNAVAILABLE,
              path + ": " + what + ": " + std::strerror(code));
}

class FileDescriptor {
 public:
  FileDescriptor(const std::string& path, int flags, mode_t mode = 0)
      : fd_(::open(path.c_str(), flags | O_CLOEXEC, mode)) {
    if (fd_ < 0) FailWithErrno(path, "cannot open");
  }
  ~FileDescriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;

  int get() const { return fd_; }
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

void WriteAll(int fd, std::string_view data, const std::string& path) {
  while (!data.empty()) {
    const ssize_t written = ::write(fd, data.data(), data.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      FailWithErrno(path, "cannot write");
    }
    data.remove_prefix(static_cast<size_t>(written));
  }
}

int64_t SizeOfRegularFile(int fd, const std::string& path) {
  struct stat status;
  if (::fstat(fd, &status) != 0) FailWithErrno(path, "cannot read its size");
  if (!S_ISREG(status.st_mode)) throw Error(KGRPO_ERROR_INVALID, path + ": not a file");
  return status.st_size;
}

}  // namespace

bool FileExists(const std::string& path) {
  std::error_code ignored;  // a path that cannot be examined fails with its reason when it is read
  return std::filesystem::exists(path, ignored);
}

std::string SnapshotOf(const std::string& folder) {
  if (!FileExists(folder + "/snapshots") || !FileExists(folder + "/refs")) return folder;
  const std::string reference = folder + "/refs/main";
  std::string name = FileExists(reference) ? ReadFile(reference) : "";
  name.erase(name.find_last_not_of(" \n\r") + 1);
  const std::string snapshot = folder + "/snapshots/" + name;
  if (name.empty() || !FileExists(snapshot)) {
    throw Error(KGRPO_ERROR_NOT_FOUND, folder +
                                           ": a Hugging Face cache folder whose refs/main names no folder under "
                                           "snapshots/; name one of those folders, or download the model again");
  }
  return snapshot;
}

std::string ReadFile(const std::string& path) {
  const MappedFile file(path);
  return std::string(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
}

bool IsDeepJson(std::string_view text) {
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size() && depth <= 200; ++i) {
    if (text[i] == '"') quoted = !quoted;
    if (quoted) {
      i += text[i] == '\\' ? 1 : 0;
    } else if (text[i] == '{' || text[i] == '[') {
      ++depth;
    } else if (text[i] == '}' || text[i] == ']') {
      --depth;
    }
  }
  return depth > 200;
}

nlohmann::json ReadJsonObject(const std::string& path) {
  const std::string text = ReadFile(path);
  const auto fail = [&](const std::string& what) { throw Error(KGRPO_ERROR_INVALID, path + ": " + what); };
  if (text.empty()) fail("is empty; copy the file again");
  if (IsDeepJson(text)) fail("is nested more than 200 deep");
  nlohmann::json value;
  try {
    value = nlohmann::json::parse(text);
  } catch (const nlohmann::json::parse_error& error) {
    const std::string byte = std::to_string(error.byte);
    if (std::string_view(error.what()).find("surrogate") != std::string_view::npos)
      fail("has half of a surrogate pair (\\ud800 to \\udfff) at byte " + byte +
           ": in JSON these are characters only in pairs");
    fail("is not JSON: stopped at byte " + byte + " of " + std::to_string(text.size()) +
         (error.byte < text.size() ? "; repair or copy the file again" : "; the file looks cut short: copy it again"));
  }
  if (!value.is_object()) fail(std::string("is a JSON ") + value.type_name() + ", must be an object");
  return value;
}

void WriteFileAtomically(const std::string& path, const std::vector<std::string_view>& pieces) {
  const std::string temporary = path + ".tmp";
  try {
    FileDescriptor file(temporary, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    for (const std::string_view piece : pieces) WriteAll(file.get(), piece, temporary);
    if (::fsync(file.get()) != 0) FailWithErrno(temporary, "cannot flush to the disk");
    if (::close(file.Release()) != 0) FailWithErrno(temporary, "cannot close");
    if (::rename(temporary.c_str(), path.c_str()) != 0) FailWithErrno(path, "cannot rename into place");
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
  // The rename reaches the disk only when the folder is flushed, too.
  const std::string folder = std::filesystem::path(path).parent_path().string();
  const FileDescriptor directory(folder.empty() ? "." : folder, O_RDONLY | O_DIRECTORY);
  if (::fsync(directory.get()) != 0) FailWithErrno(folder, "cannot flush to the disk");
}

MappedFile::MappedFile(const std::string& path) {
  const FileDescriptor file(path, O_RDONLY);
  const size_t size = static_cast<size_t>(SizeOfRegularFile(file.get(), path));
  if (size == 0) return;
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (data == MAP_FAILED) FailWithErrno(path, "cannot map into memory");
  bytes_ = {static_cast<const uint8_t*>(data), size};
  constexpr std::string_view kPointer = "version https://git-lfs";
  if (std::string_view(static_cast<const char*>(data), size).starts_with(kPointer)) {
    ::munmap(data, size);
    throw Error(KGRPO_ERROR_INVALID, path +
                                         ": is a Git LFS pointer, and the file itself was not downloaded; run `git "
                                         "lfs pull` in that folder");
  }
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<uint8_t*>(bytes_.data()), bytes_.size());
}

}  // namespace kgrpo::policy
