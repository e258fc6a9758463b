// coder_offline_apply: runs the offline coder on a kernel, from the command line.
//
//   coder_offline_apply kernel.cu "tile in shared memory 32" "pad shared memory"   # applied one after the other
//   coder_offline_apply kernel.cu                                                  # written again from its schedule
//   coder_offline_apply --suggestions
//   coder_offline_apply --reachable DIR kernel.cu     # every reachable kernel as a file in DIR
//
// The kernel goes to standard output, the summary to standard error. Exit codes: 0 done, 1 not applicable or unclear,
// 2 bad usage, a file that can't be read, or an index that can't be written.
#include <deque>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "coder_offline/coder.h"
#include "coder_offline/techniques.h"

namespace {

using kgrpo::coder_offline::Answer;
using kgrpo::coder_offline::Implement;
using kgrpo::coder_offline::Rewrite;
using kgrpo::coder_offline::Status;
using kgrpo::coder_offline::Suggestions;

bool ReadFile(const std::string& path, std::string* text) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  content << file.rdbuf();
  *text = content.str();
  if (!file) std::cerr << "coder_offline_apply: can't read " << path << "\n";
  return static_cast<bool>(file);
}

std::string ScheduleLine(const std::string& source) {
  const size_t at = source.find("// schedule:");
  return source.substr(at, source.find('\n', at) - at);
}

// Writes every kernel that some sequence of suggestions reaches from `start`, breadth first, and index.txt with the
// schedule of each. Returns the exit code.
int WriteReachable(const std::filesystem::path& folder, const std::string& start) {
  std::string why;
  const std::string first = Rewrite(start, &why);
  if (first.empty()) {
    std::cerr << "coder_offline_apply: " << why << "\n";
    return 1;
  }
  std::filesystem::create_directories(folder);
  std::ofstream index(folder / "index.txt");
  std::set<std::string> seen = {first};
  std::deque<std::string> waiting = {first};
  size_t count = 0;
  while (!waiting.empty()) {
    const std::string source = waiting.front();
    waiting.pop_front();
    const std::string name = std::to_string(count++) + ".cu";
    std::ofstream kernel(folder / name);
    if (!(kernel << source).flush()) return 2;
    index << name << "\t" << ScheduleLine(source) << "\n";
    for (const std::string& suggestion : Suggestions()) {
      const Answer answer = Implement(source, suggestion);
      if (answer.status == Status::kOk && seen.insert(answer.source).second) waiting.push_back(answer.source);
    }
  }
  std::cerr << count << " kernels\n";
  return index ? 0 : 2;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.size() == 1 && arguments[0] == "--suggestions") {
    for (const std::string& suggestion : Suggestions()) std::cout << suggestion << "\n";
    return 0;
  }
  std::string source;
  if (arguments.size() == 3 && arguments[0] == "--reachable") {
    return ReadFile(arguments[2], &source) ? WriteReachable(arguments[1], source) : 2;
  }
  if (arguments.empty() || arguments[0].rfind("--", 0) == 0) {
    std::cerr << "usage: coder_offline_apply kernel.cu [suggestion ...] | --suggestions | --reachable DIR kernel.cu\n";
    return 2;
  }
  if (!ReadFile(arguments[0], &source)) return 2;
  if (arguments.size() == 1) {
    std::string why;
    const std::string again = Rewrite(source, &why);
    if (again.empty()) std::cerr << "coder_offline_apply: " << why << "\n";
    std::cout << again;
    return again.empty() ? 1 : 0;
  }
  for (size_t i = 1; i < arguments.size(); ++i) {
    const Answer answer = Implement(source, arguments[i]);
    std::cerr << arguments[i] << ": " << (answer.status == Status::kOk ? answer.summary : answer.message) << "\n";
    if (answer.status != Status::kOk) return 1;
    source = answer.source;
  }
  std::cout << source;
  return 0;
}
