#include "store/checkpoints.h"

#include "base/files.h"

#include <kgrpo/sdk/error.h>
#include <kgrpo/support/dump_json.h>
#include <kgrpo/support/sha256.h>

#include <algorithm>
#include <charconv>
#include <future>
#include <map>
#include <set>
#include <string_view>
#include <utility>

namespace kgrpo {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPartial = ".partial";  // being written
constexpr const char* kRemoved = ".removed";  // being deleted
constexpr const char* kSetAside = ".set_aside";
constexpr int kFormat = 2;                          // version of state.json; 1 had a reward_mean, too
constexpr const char* kOwnDigest = "state_sha256";  // digest of state.json without this key

// state.json: the run's position, and the checkpoint's files as they were written, by their paths below it.
struct Contents {
  CheckpointState state;
  std::map<std::string, uint64_t> bytes;
  std::map<std::string, std::string> digests;  // SHA-256; none in a checkpoint of an earlier version
};

Contents ReadContents(const fs::path& checkpoint) {
  const fs::path file = checkpoint / "state.json";
  const Error damaged(KGRPO_ERROR_INVALID, file.string() + " is damaged: it is not the text that was written");
  try {
    auto json = nlohmann::ordered_json::parse(ReadFile(file));
    if (json.at("format") > kFormat) {
      throw Error(KGRPO_ERROR_UNSUPPORTED, checkpoint.string() + " was written by another version of this program");
    }
    Contents contents;
    contents.state.step = json.at("step");
    contents.state.stage = json.at("stage");
    contents.state.stage_steps = json.at("stage_steps");
    contents.bytes = json.value("files", std::map<std::string, uint64_t>());
    contents.digests = json.value("sha256", std::map<std::string, std::string>());
    const std::string digest = json.value(kOwnDigest, "");
    json.erase(kOwnDigest);
    if (!digest.empty() && digest != Sha256(DumpJson(json))) throw damaged;
    return contents;
  } catch (const nlohmann::json::exception&) {
    throw damaged;
  }
}

// False for a checkpoint of another version, or one that cannot be read now (rights, too many open files, a file system
// that is away).
bool IsDamage(const Error& error) {
  return error.code() != KGRPO_ERROR_UNSUPPORTED && error.code() != KGRPO_ERROR_UNAVAILABLE;
}

// The step of a checkpoint's folder name, "step-40"; nothing for any other name.
std::optional<uint64_t> StepOf(const std::string& name) {
  constexpr std::string_view kPrefix = "step-";
  uint64_t step = 0;
  if (!name.starts_with(kPrefix)) return std::nullopt;
  const char* const end = name.data() + name.size();
  const auto [rest, error] = std::from_chars(name.data() + kPrefix.size(), end, step);
  return error == std::errc() && rest == end ? std::optional(step) : std::nullopt;
}

// Path below `folder` -> bytes, of every file.
std::map<std::string, uint64_t> FileSizes(const fs::path& folder) {
  std::map<std::string, uint64_t> sizes;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) sizes[fs::relative(entry.path(), folder).generic_string()] = entry.file_size();
  }
  return sizes;
}

}  // namespace

Checkpoints::Checkpoints(const fs::path& directory, FaultPoints faults)
    : directory_(directory), faults_(std::move(faults)) {
  for (const fs::directory_entry& entry : fs::directory_iterator(directory_)) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(kPartial) || name.ends_with(kRemoved)) fs::remove_all(entry.path());
  }
}

fs::path Checkpoints::PathOf(uint64_t step) const { return directory_ / ("step-" + std::to_string(step)); }

void Checkpoints::Write(const CheckpointState& state, const std::function<void(const fs::path&)>& fill) {
  const fs::path target = PathOf(state.step);
  const fs::path partial = target.string() + kPartial;
  fs::remove_all(partial);
  fs::create_directories(partial);
  Pass(faults_, "checkpoint: begun");
  try {
    fill(partial);
  } catch (const Error&) {  // a full disk has no room for half of one
    fs::remove_all(partial);
    throw;
  }
  Pass(faults_, "checkpoint: filled");
  nlohmann::ordered_json json = {
      {"format", kFormat}, {"step", state.step}, {"stage", state.stage}, {"stage_steps", state.stage_steps}};
  const auto sizes = FileSizes(partial);
  json["files"] = sizes;  // in bytes, so that a file that was cut off later is reported
  // The disk takes the files while they are hashed: gigabytes keep either busy for seconds.
  std::future<void> flushed = std::async(std::launch::async, [&] { SyncTree(partial); });
  json["sha256"] = Digests(partial, sizes);
  flushed.get();
  json[kOwnDigest] = Sha256(DumpJson(json));
  WriteFileAtomically(partial / "state.json", DumpJson(json, 2) + "\n");
  Pass(faults_, "checkpoint: before rename");
  if (fs::exists(target)) {
    const fs::path removed = target.string() + kRemoved;
    fs::rename(target, removed);
    PublishDirectory(partial, target);
    fs::remove_all(removed);
  } else {
    PublishDirectory(partial, target);
  }
  Pass(faults_, "checkpoint: renamed");
}

std::map<std::string, std::string> Checkpoints::Digests(const fs::path& folder,
                                                        const std::map<std::string, uint64_t>& files) const {
  fs::path before;
  std::map<std::string, std::string> known, digests;
  std::map<std::string, std::future<std::string>> hashed;  // each file by a thread
  if (const std::optional<CheckpointState> last = Last()) {
    before = PathOf(last->step);
    known = ReadContents(before).digests;
  }
  for (const auto& [name, bytes] : files) {
    const auto same = known.find(name);
    std::error_code error;
    const bool shared = same != known.end() && fs::equivalent(before / name, folder / name, error);
    if (shared) {
      digests[name] = same->second;
    } else {
      hashed[name] = std::async(std::launch::async, Sha256OfFile, folder / name);
    }
  }
  for (auto& [name, digest] : hashed) digests[name] = digest.get();
  return digests;
}

std::vector<uint64_t> Checkpoints::Steps() const {
  std::vector<uint64_t> steps;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory_)) {
    if (const std::optional<uint64_t> step = StepOf(entry.path().filename().string())) steps.push_back(*step);
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

std::vector<CheckpointState> Checkpoints::List() const {
  std::vector<CheckpointState> states;
  for (const uint64_t step : Steps()) {
    try {
      states.push_back(ReadContents(PathOf(step)).state);
    } catch (const Error& error) {
      if (error.code() == KGRPO_ERROR_UNSUPPORTED) throw;
    }
  }
  return states;
}

std::string Checkpoints::Damage(uint64_t step) const {
  const fs::path path = PathOf(step);
  try {
    const Contents contents = ReadContents(path);
    if (contents.state.step != step) return (path / "state.json").string() + " is of another step";
    const auto found = FileSizes(path);
    for (const auto& [name, bytes] : contents.bytes) {
      const auto file = found.find(name);
      if (file == found.end()) return (path / name).string() + " is missing";
      if (file->second != bytes) {
        return (path / name).string() + " has " + std::to_string(file->second) + " bytes, and " +
               std::to_string(bytes) + " were written";
      }
    }
    for (const auto& [name, digest] : contents.digests) {
      if (Sha256OfFile(path / name) != digest) return (path / name).string() + " has changed since it was written";
    }
    return "";
  } catch (const Error& error) {
    if (!IsDamage(error)) throw;
    return error.what();
  }
}

std::vector<uint64_t> Checkpoints::WholeSteps(uint64_t before) const {
  std::vector<uint64_t> steps = Steps();
  std::erase_if(steps, [&](uint64_t step) { return step >= before || !Damage(step).empty(); });
  return steps;
}

void Checkpoints::SetAside(uint64_t step) {
  const fs::path target = PathOf(step).string() + kSetAside;
  fs::remove_all(target);
  fs::rename(PathOf(step), target);
}

std::optional<CheckpointState> Checkpoints::Last() const {
  const std::vector<CheckpointState> states = List();
  return states.empty() ? std::nullopt : std::optional(states.back());
}

void Checkpoints::Prune(uint32_t keep_last, uint32_t keep_best, const std::map<uint64_t, double>& scores) {
  const std::vector<CheckpointState> states = List();
  std::set<uint64_t> keep;
  for (size_t i = 0; i < std::max(keep_last, 1u) && i < states.size(); ++i)
    keep.insert(states[states.size() - 1 - i].step);
  std::vector<std::pair<double, uint64_t>> scored;
  for (const CheckpointState& state : states) {
    const auto found = scores.find(state.step);
    if (found != scores.end()) scored.emplace_back(found->second, state.step);
  }
  std::stable_sort(scored.begin(), scored.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  for (size_t i = 0; i < keep_best && i < scored.size(); ++i) keep.insert(scored[i].second);
  for (const CheckpointState& state : states) {
    if (keep.contains(state.step)) continue;
    const fs::path removed = PathOf(state.step).string() + kRemoved;
    fs::rename(PathOf(state.step), removed);
    Pass(faults_, "checkpoint: pruning");
    fs::remove_all(removed);
  }
}

}  // namespace kgrpo
