#include "cli/become_program.h"

#include <kgrpo/sdk/error.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace kgrpo::cli {

void BecomeProgram(std::vector<std::string> words, const std::string& advice) {
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::fflush(nullptr);
  execvp(arguments.front(), arguments.data());
  throw Error(KGRPO_ERROR_UNAVAILABLE, "cannot start " + words.front() + ": " + std::strerror(errno) + "; " + advice);
}

std::string ChosenPython() {
  const char* named = std::getenv("KGRPO_PYTHON");
  return named != nullptr && *named != '\0' ? named : "python3";
}

}  // namespace kgrpo::cli
