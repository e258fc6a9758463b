// A run's output folder: its contents, who may write to it, and when a command refuses it.
// docs/run_folder.md describes it for users. Made by the loop; the commands use the paths.
#ifndef KGRPO_STORE_RUN_FOLDER_H
#define KGRPO_STORE_RUN_FOLDER_H

#include <filesystem>
#include <string>

namespace kgrpo {

// A new run's claim on the folder of the run that it replaces: the artifacts of that one's plugins are set aside, so
// that the new run's plugins, which are made before the run is, find nothing of theirs. They come back when the claim
// ends and no run was created. Declare it before the plugins' instances.
class RunFolderClaim {
 public:
  // Throws KGRPO_ERROR_UNAVAILABLE where another process is running in the folder.
  explicit RunFolderClaim(const std::filesystem::path& path);
  ~RunFolderClaim();
  RunFolderClaim(const RunFolderClaim&) = delete;
  RunFolderClaim& operator=(const RunFolderClaim&) = delete;

 private:
  friend class RunFolder;
  const std::filesystem::path path_;
  int lock_ = -1;
};

class RunFolder {
 public:
  // Why a new run may not use the folder: what is there, what of the configuration differs from that run's, and what to
  // do. "" when it may: it is absent or empty, or holds what is left of a run that failed before its first step.
  static std::string Refusal(const std::filesystem::path& path, const std::string& resolved_yaml);

  // Of a folder that a new run may use: what becomes of the run that ended in it before its first step was done. ""
  // where there was none. For a user; asked before plugins are made, which write there.
  static std::string Leftover(const std::filesystem::path& path);

  // Names paid work that --overwrite deletes there, and its cost where that is known. "" where there is
  // nothing of the kind. For a user; asked before plugins are made.
  static std::string PaidFor(const std::filesystem::path& path);

  // A folder for a new run, or KGRPO_ERROR_INVALID with the refusal. With `overwrite` an earlier run's files (and no
  // others) are deleted instead, and in any case what `claim` has set aside. Plugins are made and problems opened
  // first, so that a pipeline that cannot start deletes nothing; so artifacts/ itself stays.
  static RunFolder Create(const std::filesystem::path& path, const std::string& resolved_yaml, bool overwrite,
                          RunFolderClaim* claim = nullptr);

  // The folder of a run that is to go on. KGRPO_ERROR_NOT_FOUND when there is no run in it. Artifacts that a claim set
  // aside and, killed, never put back are put back.
  static RunFolder Open(const std::filesystem::path& path);

  ~RunFolder();
  RunFolder(RunFolder&& other) noexcept;
  RunFolder& operator=(RunFolder&&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path resolved_yaml() const { return ResolvedYamlOf(path_); }
  // Of a folder that another process has opened.
  static std::filesystem::path ResolvedYamlOf(const std::filesystem::path& path) { return path / "resolved.yaml"; }
  std::filesystem::path run_json() const { return path_ / "run.json"; }
  std::filesystem::path database() const { return path_ / "run.sqlite"; }
  std::filesystem::path rollouts() const { return path_ / "rollouts"; }
  std::filesystem::path checkpoints() const { return path_ / "checkpoints"; }
  std::filesystem::path kernels() const { return path_ / "kernels"; }
  std::filesystem::path final_model() const { return path_ / "final"; }

 private:
  explicit RunFolder(const std::filesystem::path& path);

  std::filesystem::path path_;
  int lock_ = -1;
};

}  // namespace kgrpo
#endif
