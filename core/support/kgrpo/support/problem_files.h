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

// Why a service does not take these files; empty where it does. At most 16 files of 1 MiB together and of plain names;
// with `code` false, .yaml and .cu alone: other files (an oracle) may be native code that the evaluator trusts.
std::string WhyNotSendable(const ProblemFiles& files, bool code);

}  // namespace kgrpo
#endif
