// Files kept by content in a folder of the cache directory, so that expensive results are computed once on a machine.
// Several processes may use the folder at once. Used for the expected outputs at a problem's timing size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace kgrpo::evaluator {

// The bytes of an open file, mapped while this lives.
class MappedFile {
 public:
  // Throws Error(KGRPO_ERROR_UNAVAILABLE) where the file cannot be mapped.
  MappedFile(int file, uint64_t bytes);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  const uint8_t* data() const { return data_; }
  uint64_t bytes() const { return bytes_; }

 private:
  const uint8_t* data_ = nullptr;
  uint64_t bytes_;
};

// [any thread]
class KeptFiles {
 public:
  using Append = std::function<void(const void* bytes, size_t count)>;

  // Makes `folder` when it writes the first file. Above `most_bytes`, the least recently used files are deleted. `keep`
  // false: files have no name in the folder, and vanish with their last user.
  KeptFiles(std::string folder, uint64_t most_bytes, bool keep = true)
      : folder_(std::move(folder)), most_bytes_(most_bytes), keep_(keep) {}

  // The data kept under `key` (of characters that file names may have); null if there is none, or if its length or
  // checksum is wrong.
  std::shared_ptr<const MappedFile> Find(const std::string& key) const;

  // Keeps what `write` appends, and returns it. If the folder cannot be used or has no room, the data is in memory
  // while somebody holds it. Throws Error(KGRPO_ERROR_UNAVAILABLE) where memory is short too, and what `write` throws.
  std::shared_ptr<const MappedFile> Keep(const std::string& key, const std::function<void(const Append&)>& write) const;

  // Offset of the appended data in the file.
  static constexpr uint64_t kHeaderBytes = 64;

 private:
  std::shared_ptr<const MappedFile> TryKeep(const std::string& key,
                                            const std::function<void(const Append&)>& write) const;
  void GiveUpOldest(const std::string& newest) const;

  const std::string folder_;
  const uint64_t most_bytes_;
  const bool keep_;
};

}  // namespace kgrpo::evaluator
