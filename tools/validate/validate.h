// Exercises a plugin's side of the contract: `kgrpo-host plugins validate`. Everything runs in child processes under a
// time limit, so that a crash, an exit() or a hang is a result.
#ifndef KGRPO_VALIDATE_VALIDATE_H
#define KGRPO_VALIDATE_VALIDATE_H

#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace kgrpo {

enum class CheckOutcome { kPassed, kSkipped, kWarning, kFailed };

struct ContractCheck {
  std::string name;  // "reward: create with defaults works or says why not"
  CheckOutcome outcome = CheckOutcome::kPassed;
  std::string detail;  // why it failed or was skipped; of a passed check, what was seen, may be empty
};

struct ValidateOptions {
  // Options as in a pipeline; for a plugin with several interfaces an object with the options of each role. Null:
  // the defaults alone.
  nlohmann::json options;
  int seconds = 60;          // limit of a group of checks (one role's calls)
  bool send = false;         // true: a coder that sends requests to a service may be asked for a kernel
  std::string problem = {};  // a problem's folder, for an evaluator to judge its reference; empty: it judges none
};

// Checks, in order: the library loads and its bootstrap is sound; its texts are well formed; it exports one symbol;
// unknown interfaces are NULL; each table is complete; each options schema is a draft 7 schema; create works or
// explains itself; every function of each interface, called with made-up requests, keeps its word. Options that the
// host would never send give warnings only. [main thread, of a program with one thread]
std::vector<ContractCheck> ValidatePlugin(const std::filesystem::path& path, const ValidateOptions& options = {});

}  // namespace kgrpo
#endif
