#include "judge/process/own_files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

namespace kgrpo::evaluator {
namespace {

bool IsOurs(const struct stat& status) {
  return status.st_uid == geteuid() || status.st_uid == 0;
}

// A group with the number of its user is that user's own, as most systems make them.
bool OthersMayWrite(const struct stat& status) {
  return (status.st_mode & S_IWOTH) != 0 || ((status.st_mode & S_IWGRP) != 0 && status.st_gid != status.st_uid);
}

}  // namespace

bool IsOwnFolder(const std::string& path) {
  std::error_code code;
  std::filesystem::path folder = std::filesystem::canonical(path, code);
  if (code) return false;
  struct stat status = {};
  if (stat(folder.c_str(), &status) != 0 || !IsOurs(status) || OthersMayWrite(status)) return false;
  while (folder.has_relative_path()) {
    folder = folder.parent_path();
    if (stat(folder.c_str(), &status) != 0 || !IsOurs(status)) return false;
    if (OthersMayWrite(status) && (status.st_mode & S_ISVTX) == 0) return false;
  }
  return true;
}

bool IsOwnFile(const std::string& path) {
  struct stat status = {};
  return lstat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) && IsOurs(status) && !OthersMayWrite(status) &&
         IsOwnFolder(std::filesystem::path(path).parent_path().string());
}

}  // namespace kgrpo::evaluator
