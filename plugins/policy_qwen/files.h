// The few file operations that reading and writing a model folder takes. Errors name the path and what the system said.
#ifndef KGRPO_PLUGINS_POLICY_QWEN_FILES_H_
#define KGRPO_PLUGINS_POLICY_QWEN_FILES_H_

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kgrpo::policy {

bool FileExists(const std::string& path);

// `folder`, or if it is one of a Hugging Face cache ("models--org--name") the snapshot that its refs/main names. Throws
// KGRPO_ERROR_NOT_FOUND if that is not there.
std::string SnapshotOf(const std::string& folder);

// The whole content of a file.
std::string ReadFile(const std::string& path);

// True for JSON with more than 200 lists and objects in each other: what walks it needs as deep a stack.
bool IsDeepJson(std::string_view text);

// Reads a file that contains a JSON object. Throws KGRPO_ERROR_INVALID, naming the file and the byte where reading
// stopped, if it contains anything else.
nlohmann::json ReadJsonObject(const std::string& path);

// Writes pieces one after the other to a temporary file beside `path`, flushes it to the disk, and renames it to
// `path`: after a crash there is either the old file or the whole new one.
void WriteFileAtomically(const std::string& path, const std::vector<std::string_view>& pieces);

// A file mapped read-only into memory while the object lives. An empty file maps to no bytes. A Git LFS pointer is
// refused.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const uint8_t> bytes() const { return bytes_; }

 private:
  std::span<const uint8_t> bytes_;
};

}  // namespace kgrpo::policy

#endif  // KGRPO_PLUGINS_POLICY_QWEN_FILES_H_
