// Runs code that may crash in a child process. Used by catalog.h and validate.h, in programs of one thread: a child of
// fork has only the thread that called it.
#ifndef KGRPO_PLUGIN_CHILD_H
#define KGRPO_PLUGIN_CHILD_H

#include <functional>
#include <string>

namespace kgrpo {

struct ChildResult {
  std::string output;  // text that the body wrote through its argument
  std::string
      failure;  // empty when the body returned; else how the child ended: "crashed with signal 11 (Segmentation fault)"
};

// Runs `body` in a forked child; what it passes to its argument becomes `output`, also when it crashes afterwards. The
// child's standard output is a file in memory. After `seconds` it is killed. Throws kgrpo::Error when no child can be
// made. [main thread]
ChildResult RunInChild(const std::function<void(const std::function<void(const std::string&)>& write)>& body,
                       int seconds);

}  // namespace kgrpo
#endif
