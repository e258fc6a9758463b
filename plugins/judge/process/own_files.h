// Whether a cached file may be believed: in a folder that several users share, others can put files. Used by what loads
// or reads files of the cache directory.
#pragma once

#include <string>

namespace kgrpo::evaluator {

// True if `path` is a plain file of this user's or root's that others can neither write nor rename.
bool IsOwnFile(const std::string& path);
// True for a folder of this user's or root's that others cannot write, whose ancestors others cannot rename.
bool IsOwnFolder(const std::string& path);

}  // namespace kgrpo::evaluator
