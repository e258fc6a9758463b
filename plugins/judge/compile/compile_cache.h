// Keeps compiled kernels and the compiler's refusals by content in SQLite, so that the same source is
// compiled once on a machine. Used by Compiler; beside evaluations.sqlite in the evaluator's cache directory.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "judge/cache/cache_file.h"         // CacheFile
#include "judge/compile/compiled_kernel.h"  // CompileOutcome

namespace kgrpo::evaluator {

// All that an outcome depends on.
struct CompileKey {
  std::string source;        // the candidate's text
  std::string entry;         // what is put around it: the problem's launch function and the call of it
  std::string route;         // "fast", "nvcc"
  std::string flags;         // of the compilers, as far as they are not in `evaluator`
  std::string compiler;      // versions of nvcc, NVRTC and g++
  std::string architecture;  // "sm_90"
  std::string policy;        // what may be included
  std::string evaluator;     // digest of our sources: flags, headers of ours, how a source is split

  std::string Digest() const;
};

// [any thread]; several processes may have the same file open.
class CompileCache {
 public:
  static constexpr uint64_t kMostBytes = uint64_t{512} << 20;

  // Opens or makes the file, as CacheFile does. It keeps at most `most_bytes` of outcomes: those kept longest ago go.
  explicit CompileCache(const std::string& path, uint64_t most_bytes = kMostBytes);

  // The outcome kept under the key, if any. An entry that is damaged, or a failing disk, is a miss.
  std::optional<CompileOutcome> Find(const CompileKey& key);

  // Keeps an outcome in place of any other under the key. Does not keep a transient one, since a later compile may
  // differ. Failing to keep it is no error: the source is compiled again.
  void Keep(const CompileKey& key, const CompileOutcome& outcome);

 private:
  void Evict();

  const uint64_t most_bytes_;
  std::mutex mutex_;
  CacheFile file_;
};

// The outcome as bytes, and back; nothing for bytes that are not of this form. `seconds` and `transient` are of the
// moment and left out.
std::string ToBytes(const CompileOutcome& outcome);
std::optional<CompileOutcome> OutcomeFromBytes(const std::string& bytes);

}  // namespace kgrpo::evaluator
