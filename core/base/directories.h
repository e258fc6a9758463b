// The cache folder, whose files outlive a run, and temporary folders. Used by services.h and the
// commands.
#ifndef KGRPO_BASE_DIRECTORIES_H
#define KGRPO_BASE_DIRECTORIES_H

#include <filesystem>
#include <string>

namespace kgrpo {

// $KGRPO_CACHE_DIR, else $XDG_CACHE_HOME/kgrpo, else ~/.cache/kgrpo; absolute. Throws kgrpo::Error when none is set. It
// need not exist.
std::filesystem::path CacheRoot();

// The folder of the running kgrpo-host: build/bin, or bin of an installation. Empty if it is unknown.
std::filesystem::path HostFolder();

// The problems that come with kgrpo: "problems" where the working folder has it, else share/kgrpo/problems beside bin,
// else those of the checkout whose build/bin holds this program.
std::filesystem::path ShippedProblems();

// The last part of a folder's path, whether or not a slash follows.
std::string FolderName(const std::filesystem::path& folder);

// Makes the folder and its parents; throws kgrpo::Error with the reason.
void MakeDirectories(const std::filesystem::path& directory);

// A new, empty folder under $TMPDIR. The destructor removes the folder and everything in it.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace kgrpo
#endif
