#include "store/run_folder.h"

#include <kgrpo/support/number_text.h>  // FormatDollars
#include "base/files.h"
#include "config/changes.h"
#include "store/database.h"
#include "store/inputs.h"
#include "store/readable.h"

#include <kgrpo/sdk/error.h>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

namespace kgrpo {
namespace {

namespace fs = std::filesystem;

constexpr const char* kEarlierArtifacts =
    "artifacts.earlier";  // artifacts of the run that a new one is about to replace

bool IsEmptyOrAbsent(const fs::path& path) {
  std::error_code error;
  if (!fs::exists(path, error)) return true;
  if (!fs::is_directory(path)) {
    throw Error(KGRPO_ERROR_INVALID, "output_dir " + path.string() + " is a file: name a folder");
  }
  return fs::is_empty(path);
}

bool HoldsAFile(const fs::path& folder) {
  std::error_code error;
  fs::recursive_directory_iterator entry(folder, fs::directory_options::skip_permission_denied, error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    if (!entry->is_directory(error)) return true;
  }
  return false;
}

// Takes the folder's lock for this process. The kernel releases it when the process dies, however it dies.
int LockFolder(const fs::path& path) {
  const fs::path file = path / "run.lock";
  const int lock = open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (lock < 0) throw Error(KGRPO_ERROR_UNAVAILABLE, "cannot write " + file.string() + ": " + std::strerror(errno));
  if (flock(lock, LOCK_EX | LOCK_NB) == 0) {
    // For the next process's message; a lock without it holds as well.
    const std::string own = std::to_string(getpid()) + "\n";
    if (ftruncate(lock, 0) == 0) (void)!pwrite(lock, own.data(), own.size(), 0);
    return lock;
  }
  char holder[32] = "";
  const ssize_t count = pread(lock, holder, sizeof holder - 1, 0);
  close(lock);
  const std::string process =
      count > 1 ? "process " + std::string(holder, static_cast<size_t>(count - 1)) : "another process";
  throw Error(KGRPO_ERROR_UNAVAILABLE, process + " is running in " + path.string() + ": wait for it or stop it");
}

// Returns why no folder can be made in `there`; empty if one can. It makes one, because permissions do not show /proc,
// a read-only or a full file system.
std::string WhyNoFolderIn(const fs::path& there) {
  std::string trial = (there / ".kgrpo-XXXXXX").string();
  if (mkdtemp(trial.data()) == nullptr)
    return "no folder can be made in " + there.string() + ": " + std::strerror(errno);
  rmdir(trial.c_str());
  return "";
}

// Returns why nothing can be written to the folder, or to the one that it is to be made in; empty if it can.
std::string WhyNotWritable(const fs::path& path) {
  std::error_code error;
  fs::path there = fs::absolute(path);
  while (!fs::exists(there, error) && there != there.root_path()) {
    if (error) return there.string() + ": " + error.message();  // a name that is too long, say
    there = there.parent_path();
  }
  if (!fs::is_directory(there, error)) {
    // IsEmptyOrAbsent reports on the folder itself.
    return there == fs::absolute(path) ? "" : there.string() + " is a file";
  }
  if (access(there.c_str(), W_OK | X_OK) != 0) return there.string() + ": " + std::strerror(errno);
  return there == fs::absolute(path) ? "" : WhyNoFolderIn(there);
}

// True if another process holds the folder's lock. Changes nothing.
bool IsLocked(const fs::path& path) {
  const int lock = open((path / "run.lock").c_str(), O_RDONLY | O_CLOEXEC);
  if (lock < 0) return false;
  const bool held = flock(lock, LOCK_SH | LOCK_NB) != 0;
  close(lock);
  return held;
}

// Differences of the new configuration from that of the run in the folder; nothing where that one cannot be read.
std::optional<std::vector<Change>> ChangesOf(const fs::path& path, const std::string& resolved_yaml,
                                             const std::vector<RemovedKey>& removed) {
  if (!fs::exists(path / "resolved.yaml")) return {};
  const std::string before = ReadFile(path / "resolved.yaml");
  if (before == resolved_yaml) return std::vector<Change>();
  return ChangesBetween(before, resolved_yaml, removed);
}

void PutBackEarlierArtifacts(const fs::path& path) {
  if (!fs::exists(path / kEarlierArtifacts)) return;
  fs::remove_all(path / "artifacts");
  fs::rename(path / kEarlierArtifacts, path / "artifacts");
}

}  // namespace

bool RunFolder::IsOurs(const std::string& name) {
  static constexpr std::string_view kOurs[] = {"resolved.yaml",
                                               "run.json",
                                               "run.sqlite",
                                               "run.sqlite-wal",
                                               "run.sqlite-shm",
                                               "run.lock",
                                               "run.log",
                                               "rollouts",
                                               "checkpoints",
                                               "kernels",
                                               "final",
                                               "final.partial",
                                               "artifacts",
                                               kEarlierArtifacts,
                                               "report.html",
                                               "dataset",
                                               "resolved.yaml.partial",
                                               "run.json.partial",
                                               "metrics.jsonl",
                                               "rounds.jsonl"};
  return std::ranges::find(kOurs, name) != std::end(kOurs) || name.find("tfevents") != std::string::npos;
}

std::string RunFolder::WhyKept(const fs::path& path, const std::vector<Input>& inputs) {
  const std::string reads = ReadFromOverwritten(inputs, path);
  if (reads.empty()) return "";
  return "output_dir " + path.string() + " holds what the new run would learn from (" + reads +
         "), and which it would delete: name another folder (--set output_dir=...)";
}

std::string RunFolder::Refusal(const fs::path& path, const std::string& resolved_yaml,
                               const std::vector<std::string>& may_change, const std::vector<Input>& inputs,
                               const std::vector<RemovedKey>& removed) {
  const std::string there = "output_dir " + path.string() + " ";
  if (const std::string reason = WhyNotWritable(path); !reason.empty()) {
    return there + "cannot be written (" + reason + "): name another folder (--set output_dir=...)";
  }
  if (IsEmptyOrAbsent(path)) return "";
  if (std::string kept = WhyKept(path, inputs); !kept.empty()) return kept;
  if (!fs::exists(path / "run.sqlite")) {
    for (const fs::directory_entry& entry : fs::directory_iterator(path)) {
      if (IsOurs(entry.path().filename().string())) continue;
      return there + "is not empty and holds no run (" + entry.path().filename().string() +
             "): name another folder (--set output_dir=...)";
    }
    return "";  // a run that failed before it had anything to keep
  }
  if (IsLocked(path)) {
    return there + "holds a run that another process is writing: wait for it, stop it, or name another folder " +
           "(--set output_dir=...)";
  }
  const RunProgress progress = ReadProgress(path / "run.sqlite");
  const std::string paid =
      progress.coder_cost > 0 ? " (its coder's answers cost " + FormatDollars(progress.coder_cost) + ")" : "";
  const std::string choices =
      "name another folder (--set output_dir=...), or delete that run" + paid + " with --overwrite";
  if (progress.is_foreign) {
    return there +
           "holds a run.sqlite that is of another program, or of another version of this one: name another "
           "folder (--set output_dir=...), or delete it with --overwrite";
  }
  if (progress.steps == 0 && !HoldsCheckpoints(path)) return "";
  if (progress.is_empty) return there + "holds a run that cannot be read: " + WhyNoRecord(path);
  const std::string resume = "kgrpo-host resume " + path.string();
  const std::optional<std::vector<Change>> changes = ChangesOf(path, resolved_yaml, removed);
  const bool ahead = changes && AreAhead(resolved_yaml, *changes, progress.steps);
  const std::string settings = ahead ? ResumeSettingsFor(*changes, may_change) : "";
  const auto sets_steps = [](const Change& change) {
    const bool of_steps =
        change.path == "loop.max_steps" || change.path.ends_with("].steps") || change.path == "trainer.steps";
    return of_steps && change.value && (!change.before || *change.value > *change.before);
  };
  // A finished run continues only with more steps.
  if (progress.purpose != PurposeName(Purpose::kTrain))
    return there + "holds a run of another kind (" + progress.purpose + "): " + choices;
  if (progress.finished && (settings.empty() || std::ranges::none_of(*changes, sets_steps)))
    return there + "holds a finished run: " + choices;
  if (!changes) return there + "holds an unfinished run of another configuration: " + choices;
  if (!changes->empty()) {
    return there + "holds " + (progress.finished ? "a finished" : "an unfinished") + " run of another configuration (" +
           NamesOf(*changes) + (changes->size() == 1 ? " differs" : " differ") + "): " +
           (settings.empty() ? "to continue it as it began: " + resume
                             : "to resume it with them: " + resume + " " + settings) +
           "; otherwise " + choices;
  }
  return there + "holds an unfinished run of this configuration (" + std::to_string(progress.steps) +
         (progress.steps == 1 ? " step" : " steps") + " done). To continue it: " + resume + "; to delete it" + paid +
         " and start again: --overwrite";
}

std::string RunFolder::PaidWork(const fs::path& path) {
  if (!fs::exists(path / "run.sqlite")) return "";
  RunProgress progress;
  try {
    progress = ReadProgress(path / "run.sqlite");
  } catch (const Error&) {
    return "";  // a broken run can be replaced too; its cost is not known
  }
  if (progress.is_foreign) return "";
  const std::string run = "the run in " + path.string();
  if (progress.coder_cost > 0) {
    return run + " is deleted once the new one begins, and with it its coder's answers, which cost " +
           FormatDollars(progress.coder_cost);
  }
  if (progress.steps > 0 || !HoldsAFile(path / "artifacts")) return "";
  return run + " has no finished step; its plugins' files in artifacts/, such as paid answers of its coder, are " +
         "deleted once the new one begins (without --overwrite the new one would keep them)";
}

std::string RunFolder::Leftover(const fs::path& path) {
  if (IsEmptyOrAbsent(path)) return "";
  const bool kept = fs::exists(path / "artifacts") && HoldsAFile(path / "artifacts");
  return "output_dir " + path.string() + " holds a run without a finished step: a new run replaces it" +
         (kept ? ", and keeps its plugins' files in artifacts/, such as the coder's answers" : "");
}

RunFolder::RunFolder(const fs::path& path) : path_(path) {}
RunFolder::RunFolder(RunFolder&& other) noexcept
    : path_(std::move(other.path_)), lock_(std::exchange(other.lock_, -1)) {}
RunFolder::~RunFolder() {
  if (lock_ >= 0) close(lock_);
}

RunFolderClaim::RunFolderClaim(const fs::path& path) : path_(path) {
  if (!fs::exists(path / "artifacts") && !fs::exists(path / kEarlierArtifacts)) return;
  lock_ = LockFolder(path);
  try {
    PutBackEarlierArtifacts(path);  // artifacts that a killed claim left
    fs::rename(path / "artifacts", path / kEarlierArtifacts);
  } catch (...) {
    close(lock_);
    throw;
  }
}

RunFolderClaim::~RunFolderClaim() {
  if (lock_ < 0) return;
  try {
    PutBackEarlierArtifacts(path_);
  } catch (const std::exception&) {
    // The artifacts stay aside; the next process that opens the folder puts them back.
  }
  close(lock_);
}

RunFolder RunFolder::Create(const fs::path& path, const std::string& resolved_yaml, bool overwrite,
                            RunFolderClaim* claim) {
  if (!overwrite || !fs::exists(path / "run.sqlite")) {
    const std::string refusal = Refusal(path, resolved_yaml);
    if (!refusal.empty()) throw Error(KGRPO_ERROR_INVALID, refusal);
  }
  std::error_code error;
  fs::create_directories(path, error);
  if (error)
    throw Error(KGRPO_ERROR_UNAVAILABLE, "cannot create output_dir " + path.string() + ": " + error.message() +
                                             "; name another folder (--set output_dir=...)");
  RunFolder folder(path);
  const bool claimed = claim != nullptr && claim->lock_ >= 0;
  folder.lock_ = claimed ? std::exchange(claim->lock_, -1) : LockFolder(path);
  std::vector<fs::path> old;
  for (const fs::directory_entry& entry : fs::directory_iterator(path)) {
    const std::string name = entry.path().filename().string();
    // The plugins of the new run have their artifact folders already, because they are made before the run's folder.
    if (IsOurs(name) && name != "run.lock" && name != "artifacts" && name != kEarlierArtifacts)
      old.push_back(entry.path());
  }
  old.push_back(path / kEarlierArtifacts);  // the last: while they are there, so is the run that they are of
  for (const fs::path& part : old) fs::remove_all(part);
  for (const fs::path& part : {folder.checkpoints(), folder.kernels()}) fs::create_directories(part);
  WriteFileAtomically(folder.resolved_yaml(), resolved_yaml);
  return folder;
}

RunFolder RunFolder::Open(const fs::path& path) {
  if (fs::exists(path / "experiment.json")) {
    throw Error(
        KGRPO_ERROR_INVALID,
        path.string() + " holds the runs of an experiment: run its file again to continue all of them, or name one");
  }
  if (!fs::exists(path / "run.sqlite") || !fs::exists(path / "resolved.yaml")) {
    throw Error(KGRPO_ERROR_NOT_FOUND, WhyNoRun(path));
  }
  // A run that was killed before it made its tables has lost nothing.
  const RunProgress progress = ReadProgress(path / "run.sqlite");
  if (progress.is_foreign || HoldsCheckpoints(path)) RequireRecord(path);
  if (progress.purpose != PurposeName(Purpose::kTrain))
    throw Error(KGRPO_ERROR_INVALID,
                path.string() + " is the record of " +
                    (progress.purpose == PurposeName(Purpose::kSearch) ? "a search" : "an evaluation") +
                    ", which cannot be resumed: run it again into another folder");
  RunFolder folder(path);
  folder.lock_ = LockFolder(path);
  PutBackEarlierArtifacts(path);
  for (const fs::path& part : {folder.checkpoints(), folder.kernels()}) fs::create_directories(part);
  return folder;
}

}  // namespace kgrpo
