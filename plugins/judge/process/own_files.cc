#include "judge/process/own_files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

namespace kgrpo::evaluator {
namespace {

bool IsOurs(const struct stat& status) { return status.st_uid == geteuid() || status.st_uid == 0; }

// A group with the number of its user is that user's own, as most systems make them.
bool OthersMayWrite(const struct stat& status) {
  return (status.st_mode & S_IWOTH) != 0 || ((status.st_mode & S_IWGRP) != 0 && status.st_gid != status.st_uid);
}

// True if no other user can rename a folder on the way to `folder`, or an entry of ours in it: in folders with the
// sticky bit, as /tmp, only an entry's owner can.
bool KeepsOurEntries(std::filesystem::path folder) {
  for (;; folder = folder.parent_path()) {
    struct stat status = {};
    if (stat(folder.c_str(), &status) != 0 || !IsOurs(status)) return false;
    if (OthersMayWrite(status) && (status.st_mode & S_ISVTX) == 0) return false;
    if (!folder.has_relative_path()) return true;
  }
}

}  // namespace

bool IsOwnFolder(const std::string& path) {
  std::error_code code;
  const std::filesystem::path folder = std::filesystem::canonical(path, code);
  struct stat status = {};
  return !code && stat(folder.c_str(), &status) == 0 && !OthersMayWrite(status) && KeepsOurEntries(folder);
}

bool IsOwnFile(const std::string& path) {
  std::error_code code;
  const std::filesystem::path folder = std::filesystem::canonical(std::filesystem::path(path).parent_path(), code);
  struct stat status = {};
  return !code && lstat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) && IsOurs(status) &&
         !OthersMayWrite(status) && KeepsOurEntries(folder);
}

}  // namespace kgrpo::evaluator
