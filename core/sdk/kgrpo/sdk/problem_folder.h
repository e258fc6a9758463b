// kgrpo/sdk/problem_folder.h - a problem that is a folder with one file, its reference: the simplest format that an
// evaluator may define.
#ifndef KGRPO_SDK_PROBLEM_FOLDER_H
#define KGRPO_SDK_PROBLEM_FOLDER_H
#include <kgrpo/evaluator.h>
#include <kgrpo/sdk/error.h>
#include <kgrpo/sdk/text.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

namespace kgrpo {

class ProblemFolder {
 public:
  // Reads `reference` ("reference.cu") of the folder. `signature`: the C declaration that a kernel must define. `task`:
  // what to compute, for prompts. Throws KGRPO_ERROR_NOT_FOUND where the file is not there or is empty.
  ProblemFolder(std::string_view folder, std::string_view reference, std::string signature, std::string task)
      : signature_(std::move(signature)), task_(std::move(task)) {
    const std::filesystem::path path = std::filesystem::path(folder).lexically_normal();
    name_ = (path.has_filename() ? path : path.parent_path()).filename().string();
    std::ifstream file(path / reference, std::ios::binary);
    source_.assign(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    if (source_.empty()) throw Error(KGRPO_ERROR_NOT_FOUND, (path / reference).string() + ": no reference kernel");
    info_.struct_size = sizeof(info_);
    info_.name = info_.title = Str(name_);
    info_.split = KGRPO_LITERAL("train");
    info_.signature = Str(signature_);
    info_.task = Str(task_);
    info_.source = Str(source_);
  }
  ProblemFolder(const ProblemFolder&) = delete;
  ProblemFolder& operator=(const ProblemFolder&) = delete;

  const kgrpo_problem_info& info() const { return info_; }
  const std::string& source() const { return source_; }

 private:
  std::string name_, source_, signature_, task_;
  kgrpo_problem_info info_{};
};

}  // namespace kgrpo
#endif
