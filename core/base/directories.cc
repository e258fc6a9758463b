#include "base/directories.h"

#include <kgrpo/sdk/error.h>
#include <stdlib.h>  // mkdtemp

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <system_error>

namespace kgrpo {
namespace {

// The variable's value; empty when it is unset or empty.
std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

std::filesystem::path CacheRoot() {
  if (std::string own = Variable("KGRPO_CACHE_DIR"); !own.empty()) return std::filesystem::absolute(own);
  if (std::string xdg = Variable("XDG_CACHE_HOME"); !xdg.empty()) return std::filesystem::absolute(xdg) / "kgrpo";
  if (std::string home = Variable("HOME"); !home.empty()) return std::filesystem::absolute(home) / ".cache" / "kgrpo";
  throw Error(KGRPO_ERROR_UNAVAILABLE,
              "no folder for caches: set KGRPO_CACHE_DIR (neither XDG_CACHE_HOME nor HOME is set)");
}

std::filesystem::path HostFolder() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
}

std::filesystem::path ShippedProblems() {
  std::error_code error;
  if (std::filesystem::is_directory("problems", error)) return "problems";
  const std::filesystem::path host = HostFolder();
  for (const char* place : {"../share/kgrpo/problems", "../../problems"}) {  // installed; build/bin of a checkout
    const std::filesystem::path problems = (host / place).lexically_normal();
    if (!host.empty() && std::filesystem::is_directory(problems, error)) return problems;
  }
  return "problems";
}

std::string FolderName(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder.lexically_normal();
  return (path.has_filename() ? path : path.parent_path()).filename().string();
}

void MakeDirectories(const std::filesystem::path& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error)
    throw Error(KGRPO_ERROR_UNAVAILABLE, "cannot make the folder " + directory.string() + ": " + error.message());
}

TemporaryDirectory::TemporaryDirectory() {
  std::error_code error;
  const std::filesystem::path root = std::filesystem::temp_directory_path(error);
  if (error) throw Error(KGRPO_ERROR_UNAVAILABLE, "no folder for temporary files: " + error.message() + "; set TMPDIR");
  std::string name = (std::filesystem::absolute(root) / "kgrpo-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) {
    throw Error(KGRPO_ERROR_UNAVAILABLE,
                "cannot make a temporary folder in " + root.string() + ": " + std::strerror(errno));
  }
  path_ = name;
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;  // a folder left behind in /tmp is not worth failing a command
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace kgrpo
