// Checks a library's file before the dynamic linker loads it: the linker's own messages for a library of another
// machine, or for one that lacks another, mislead. Used by library.h.
#ifndef KGRPO_PLUGIN_ELF_HEADER_H
#define KGRPO_PLUGIN_ELF_HEADER_H

#include <filesystem>
#include <string>

namespace kgrpo {

// Returns why this machine cannot load the file: "was built for aarch64; this machine is x86-64". Empty if the file's
// header shows no reason.
std::string ForeignElf(const std::filesystem::path& path);

// Returns the linker's `reason` for not loading the file, or a plainer one if the file needs a library that is missing.
std::string PlainLinkerReason(const std::filesystem::path& path, const std::string& reason);

}  // namespace kgrpo
#endif
