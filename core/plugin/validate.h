// Exercises a plugin's side of the contract: `kgrpo-host plugins validate`. Every step runs in a child process, so that
// a crash is a result.
#ifndef KGRPO_PLUGIN_VALIDATE_H
#define KGRPO_PLUGIN_VALIDATE_H

#include <filesystem>
#include <string>
#include <vector>

namespace kgrpo {

struct ContractCheck {
  std::string name;  // "reward: create refuses malformed options"
  bool passed = false;
  std::string detail;  // why it failed; of a passed check, what was seen, may be empty
};

// Checks, in order: the library loads and its bootstrap is sound; its texts are static and well formed; it exports one
// symbol; unknown interfaces are NULL; each table is complete; each options schema is a draft 7 schema whose options
// are described and whose defaults are valid; create with defaults succeeds or explains itself; create with broken
// options gives an error with a message, for several kinds of broken; destroy takes NULL. [main thread, of a program
// with one thread]
std::vector<ContractCheck> ValidatePlugin(const std::filesystem::path& path);

}  // namespace kgrpo
#endif
