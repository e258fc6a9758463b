// The checks of create and destroy, and an instance for the calls. Called by validate.cc within a child process.
#ifndef KGRPO_VALIDATE_CREATE_H
#define KGRPO_VALIDATE_CREATE_H

#include <filesystem>

#include "plugin/library.h"
#include "validate/session.h"
#include "validate/validate.h"

namespace kgrpo::validate {

// One role of a plugin.
struct Subject {
  const PluginLibrary& library;
  Role role;
  const ValidateOptions& options;
  std::filesystem::path directory;  // to write in
};

void CheckCreation(Session& session, const Subject& subject);
// Every function of the role's interface, with made-up requests.
void CheckCalls(Session& session, const Subject& subject);

}  // namespace kgrpo::validate
#endif
