// checkpoints/step-N: folders that are complete or absent. A checkpoint is filled in a folder of another name, flushed
// to the disk and renamed; it is removed by renaming it away first. loop/checkpoint.h defines its contents.
#ifndef KGRPO_STORE_CHECKPOINTS_H
#define KGRPO_STORE_CHECKPOINTS_H

#include "store/fault.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace kgrpo {

// state.json of a checkpoint: where in the run it stands.
struct CheckpointState {
  uint64_t step = 0;         // steps done
  uint64_t stage = 0;        // index of the stage that the next step belongs to, unless this one is done
  uint64_t stage_steps = 0;  // steps of that stage that are done
};

class Checkpoints {
 public:
  // Removes what a killed process left half written.
  Checkpoints(const std::filesystem::path& directory, FaultPoints faults = {});

  // Writes checkpoints/step-N with state.json and whatever `fill` puts into the folder it is given; replaces one that
  // is there already.
  void Write(const CheckpointState& state, const std::function<void(const std::filesystem::path&)>& fill);

  // Deletes all but the last `keep_last` and the `keep_best` of the highest score. The very last always stays.
  // `scores`: by step; a checkpoint without one is none of the best.
  void Prune(uint32_t keep_last, uint32_t keep_best, const std::map<uint64_t, double>& scores);

  // Describes damage to the files of checkpoints/step-N; empty: none. Reads all of them. Throws
  // KGRPO_ERROR_UNAVAILABLE where they cannot be read now, which is no damage.
  std::string Damage(uint64_t step) const;
  // Renames checkpoints/step-N to step-N.set_aside: it is kept, and is no checkpoint any more.
  void SetAside(uint64_t step);
  // The steps of all checkpoints in order, whether they can be read or not.
  std::vector<uint64_t> Steps() const;
  // The steps of the undamaged checkpoints below `before`, in order. Reads all of their files.
  std::vector<uint64_t> WholeSteps(uint64_t before = std::numeric_limits<uint64_t>::max()) const;

  // The last checkpoint whose state.json can be read.
  std::optional<CheckpointState> Last() const;
  std::vector<CheckpointState> List() const;  // by step
  std::filesystem::path PathOf(uint64_t step) const;

 private:
  // SHA-256 of a new checkpoint's files. A file that it shares with the last checkpoint keeps the digest that was taken
  // when it was written.
  std::map<std::string, std::string> Digests(const std::filesystem::path& folder,
                                             const std::map<std::string, uint64_t>& files) const;

  std::filesystem::path directory_;
  FaultPoints faults_;
};

}  // namespace kgrpo
#endif
