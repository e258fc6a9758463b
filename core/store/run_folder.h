// A run's output folder: its contents, who may write to it, and when a command refuses it.
// docs/run_folder.md describes it for users. Made by the loop; the commands use the paths.
#ifndef KGRPO_STORE_RUN_FOLDER_H
#define KGRPO_STORE_RUN_FOLDER_H

#include "config/pipeline.h"

#include <filesystem>
#include <string>
#include <vector>

namespace kgrpo {

// A new run's claim on the folder of the run that it replaces. It sets the artifacts of the earlier run's plugins
// aside, because the new run's plugins are made before the run and must not find them. They are put back if the claim
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
  // Returns why a new run may not use the folder: its contents, the differences from that run's configuration, and what
  // to do. "" if the run may: the folder is absent or empty, or holds what is left of a run that failed before its
  // first step.
  // `may_change`: PipelineConfig's. Without it the reason never advises to `resume` with the changes. `inputs`: those
  // of the new run, which may not use a folder that holds one of them. `removed`: PipelineConfig's.
  static std::string Refusal(const std::filesystem::path& path, const std::string& resolved_yaml,
                             const std::vector<std::string>& may_change = {}, const std::vector<Input>& inputs = {},
                             const std::vector<RemovedKey>& removed = {});
  // Returns why a new run may not delete the run in the folder: it reads from it. "" if it does not.
  static std::string WhyKept(const std::filesystem::path& path, const std::vector<Input>& inputs);
  // True for a name that a run writes, and which --overwrite therefore deletes.
  static bool IsOurs(const std::string& name);

  // For a folder that a new run may use: tells the user what happens to a run that ended in it before its first step
  // was done; "" if there was none. Call it before plugins are made, because plugins write there.
  static std::string Leftover(const std::filesystem::path& path);

  // Names for the user the paid work that --overwrite deletes there, and its cost if that is known; "" if there is
  // none. Call it before plugins are made.
  static std::string PaidWork(const std::filesystem::path& path);

  // Returns a folder for a new run, or throws KGRPO_ERROR_INVALID with the refusal. With `overwrite` it deletes an
  // earlier run's files (and no others) instead. In any case it deletes what `claim` has set aside. Plugins are made
  // and problems opened before this call, so that a pipeline that cannot start deletes nothing; therefore artifacts/
  // itself stays.
  static RunFolder Create(const std::filesystem::path& path, const std::string& resolved_yaml, bool overwrite,
                          RunFolderClaim* claim = nullptr);

  // Opens the folder of a run to resume. Throws KGRPO_ERROR_NOT_FOUND if it holds no run. Puts back artifacts that a
  // killed claim left aside.
  static RunFolder Open(const std::filesystem::path& path);

  ~RunFolder();
  RunFolder(RunFolder&& other) noexcept;
  RunFolder& operator=(RunFolder&&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path resolved_yaml() const { return ResolvedYamlOf(path_); }
  // For a folder that another process has opened.
  static std::filesystem::path ResolvedYamlOf(const std::filesystem::path& path) { return path / "resolved.yaml"; }
  std::filesystem::path run_json() const { return path_ / "run.json"; }
  std::filesystem::path database() const { return path_ / "run.sqlite"; }
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
