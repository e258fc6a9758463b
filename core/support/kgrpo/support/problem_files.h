// The files of a problem's folder as values: how a problem travels to an evaluator on another machine, and the digest
// by which both sides know that they mean the same one. Used by the evaluator's service and by its client.
#ifndef KGRPO_SUPPORT_PROBLEM_FILES_H
#define KGRPO_SUPPORT_PROBLEM_FILES_H

#include <map>
#include <string>

namespace kgrpo {

using ProblemFiles = std::map<std::string, std::string>;  // content by file name: "problem.yaml"

// The regular files directly in the folder, hidden ones left out. Throws Error(KGRPO_ERROR_NOT_FOUND) where there is no
// such folder.
ProblemFiles ReadProblemFiles(const std::string& directory);

// SHA-256 over names and contents: the same for the same files, wherever they lie.
std::string ProblemDigest(const ProblemFiles& files);

// Returns the reason why a service refuses these files; empty if it accepts them. It accepts at most 16 files, together
// 1 MiB, with plain names. With `code` false it accepts only .yaml and .cu: other files (an oracle) may be native code
// that the evaluator trusts.
std::string WhyNotSendable(const ProblemFiles& files, bool code);

}  // namespace kgrpo
#endif
