// Runs the command of the option api_key_command, for services whose keys expire. Used by dispatcher.cc.
#pragma once

#include <string>

namespace kgrpo::coder_gpt4o {

// What the shell command writes to its standard output, without blanks around it. Throws Error(KGRPO_ERROR_UNAVAILABLE)
// if it fails, writes nothing, or takes more than a minute. Its standard error is dropped.
std::string KeyOfCommand(const std::string& command);

}  // namespace kgrpo::coder_gpt4o
