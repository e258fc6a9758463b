#include "store/readable.h"

#include "store/database.h"

#include <kgrpo/sdk/error.h>

#include <system_error>

namespace kgrpo {

namespace fs = std::filesystem;

std::string WhyNoRecord(const fs::path& folder) {
  const fs::path file = folder / "run.sqlite";
  const RunProgress progress = ReadProgress(file);
  if (progress.is_foreign) {
    return file.string() +
           " was not written by this version of kgrpo-host, but by another program or another version: use that one, "
           "or put back a copy of the file";
  }
  if (!progress.is_empty) return "";
  if (!HoldsCheckpoints(folder)) {
    return file.string() + " is empty: the run was ended before its first step. To start it: kgrpo-host resume " +
           folder.string();
  }
  return file.string() +
         " is empty: the run's samples, metrics and costs are lost, and it cannot be resumed. Put back a copy of the "
         "file. Without one, the models in " +
         (folder / "checkpoints").string() + " remain, and a new run needs another folder or --overwrite";
}

void RequireRecord(const fs::path& folder) {
  if (const std::string reason = WhyNoRecord(folder); !reason.empty()) throw Error(KGRPO_ERROR_INVALID, reason);
}

bool HoldsCheckpoints(const fs::path& folder) {
  std::error_code error;
  const fs::directory_iterator entry(folder / "checkpoints", error);
  return !error && entry != fs::directory_iterator();
}

}  // namespace kgrpo
