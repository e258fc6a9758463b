// Writes files so that each is complete or absent whenever the process or the machine dies. Used by store/ and by
// commands.
#ifndef KGRPO_BASE_FILES_H
#define KGRPO_BASE_FILES_H

#include <filesystem>
#include <string>
#include <string_view>

namespace kgrpo {

// Writes the file's bytes and their folder's entry to the disk. Throw KGRPO_ERROR_UNAVAILABLE with the path and the
// reason.
void SyncFile(const std::filesystem::path& path);
void SyncDirectory(const std::filesystem::path& path);
// Every file and folder below `path`, and `path` itself.
void SyncTree(const std::filesystem::path& path);

// Replaces the file's content in one step: readers see the old bytes or the new ones.
void WriteFileAtomically(const std::filesystem::path& path, std::string_view content);

// Renames a folder into place, with its content on the disk before and its new name after.
void PublishDirectory(const std::filesystem::path& from, const std::filesystem::path& to);

// The whole file. Throws KGRPO_ERROR_NOT_FOUND when it cannot be read.
std::string ReadFile(const std::filesystem::path& path);

}  // namespace kgrpo
#endif
