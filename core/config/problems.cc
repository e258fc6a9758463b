#include "config/problems.h"

#include <glob.h>
#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <system_error>
#include <utility>

namespace kgrpo {
namespace {

std::string Normal(const std::string& path) {
  std::string normal = std::filesystem::path(path).lexically_normal().string();
  while (normal.size() > 1 && normal.back() == '/') normal.pop_back();
  return normal;
}

}  // namespace

bool IsPattern(const std::string& text) { return text.find_first_of("*?[") != std::string::npos; }

std::vector<std::string> ExpandFolders(const std::string& pattern) {
  std::vector<std::string> folders;
  std::error_code error;
  if (!IsPattern(pattern)) {
    if (std::filesystem::is_directory(pattern, error)) folders.push_back(Normal(pattern));
    return folders;
  }
  glob_t matches = {};
  // A folder that is not there matches nothing; one that cannot be read is a mistake.
  const auto give_up = [](const char*, int reason) { return reason == ENOENT || reason == ENOTDIR ? 0 : 1; };
  const int result = glob(pattern.c_str(), GLOB_NOSORT, give_up, &matches);
  const std::unique_ptr<glob_t, void (*)(glob_t*)> owner(&matches, globfree);
  if (result != 0 && result != GLOB_NOMATCH) {
    throw Error(KGRPO_ERROR_UNAVAILABLE, std::string("a folder cannot be read: ") + std::strerror(errno));
  }
  for (size_t i = 0; i < matches.gl_pathc; ++i) {
    if (std::filesystem::is_directory(matches.gl_pathv[i], error)) folders.push_back(Normal(matches.gl_pathv[i]));
  }
  std::sort(folders.begin(), folders.end());
  folders.erase(std::unique(folders.begin(), folders.end()), folders.end());
  return folders;
}

bool HoldsProblemYaml(const std::string& folder) {
  std::error_code error;
  return std::filesystem::exists(std::filesystem::path(folder) / "problem.yaml", error);
}

std::vector<std::string> ProblemFolders(const std::string& given) {
  const std::vector<std::string> found = ExpandFolders(given);
  if (found.empty())
    throw Error(KGRPO_ERROR_NOT_FOUND, (IsPattern(given) ? "no folder matches " : "there is no folder ") + given);
  const bool any = std::any_of(found.begin(), found.end(), HoldsProblemYaml);
  std::vector<std::string> folders;
  for (const std::string& folder : found) {
    if (any && IsPattern(given) && !HoldsProblemYaml(folder)) continue;  // such as results/ beside the problems
    std::vector<std::string> inner;
    if (!HoldsProblemYaml(folder)) inner = ExpandFolders(folder + "/*");
    std::erase_if(inner, [](const std::string& one) { return !HoldsProblemYaml(one); });
    if (inner.empty()) inner = {folder};
    folders.insert(folders.end(), inner.begin(), inner.end());
  }
  std::sort(folders.begin(), folders.end());
  folders.erase(std::unique(folders.begin(), folders.end()), folders.end());
  return folders;
}

namespace {

class ProblemLists {
 public:
  ProblemLists(Node* root, std::vector<Diagnostic>* diagnostics) : root_(root), diagnostics_(diagnostics) {}

  void Run(bool needs_train, bool needs_heldout) {
    Node* problems = root_->Get("problems");
    if (problems == nullptr || !problems->IsMapping()) return;
    std::set<std::string> named_train, named_heldout;
    std::vector<std::string> train = Expand("train", &named_train);
    std::vector<std::string> heldout = Expand("heldout", &named_heldout);
    // A folder named outright in one list is removed from the other list, unless that one names it outright too.
    std::erase_if(train, [&](const std::string& f) { return named_heldout.contains(f) && !named_train.contains(f); });
    std::erase_if(heldout, [&](const std::string& f) { return named_train.contains(f) && !named_heldout.contains(f); });
    std::vector<std::string> both;
    std::set_intersection(train.begin(), train.end(), heldout.begin(), heldout.end(), std::back_inserter(both));
    for (const std::string& folder : both) {
      const Position& heldout_at = problems->Get("heldout")->at;
      const Position& at = SetLast(heldout_at, problems->Get("train")->at);
      const auto [mine, other] = &at == &heldout_at ? std::pair("problems.heldout", "problems.train")
                                                    : std::pair("problems.train", "problems.heldout");
      Report(at, mine, folder + " is in " + other + " too: name it outright in one of the lists");
    }
    CheckNotEmpty(*problems, "train", train, needs_train);
    CheckNotEmpty(*problems, "heldout", heldout, needs_heldout);
    CheckDistinctNames(*problems, train, heldout);
    for (auto [key, folders] : {std::pair("train", &train), std::pair("heldout", &heldout)}) {
      Node* list = problems->Get(key);
      if (list != nullptr && list->IsList()) *list = Node::FromJson(nlohmann::ordered_json(*folders), list->at);
    }
  }

 private:
  void Report(const Position& at, const std::string& path, std::string message) {
    diagnostics_->push_back({at, path, std::move(message), ""});
  }

  // The folders of one list; entries without a pattern are also put in *literal.
  std::vector<std::string> Expand(const char* key, std::set<std::string>* literal) {
    std::vector<std::string> folders;
    const Node* problems = root_->Get("problems");
    const Node* list = problems == nullptr ? nullptr : problems->Get(key);
    if (list == nullptr || !list->IsList()) return folders;
    for (size_t i = 0; i < list->items.size(); ++i) {
      const Node& item = list->items[i];
      if (!item.IsString()) continue;
      const std::string pattern = item.scalar.get<std::string>();
      const std::string path = std::string("problems.") + key + "[" + std::to_string(i) + "]";
      try {
        const std::vector<std::string> found = ExpandFolders(pattern);
        if (found.empty() && !pattern.empty()) ReportMissing(item, path);
        folders.insert(folders.end(), found.begin(), found.end());
        if (!IsPattern(pattern)) literal->insert(found.begin(), found.end());
      } catch (const Error& error) {
        Report(item.at, path, error.what());
      }
    }
    std::sort(folders.begin(), folders.end());
    folders.erase(std::unique(folders.begin(), folders.end()), folders.end());
    return folders;
  }

  // Entries that exist below the file's own project are reported once: running elsewhere is one mistake.
  void ReportMissing(const Node& item, const std::string& path) {
    const std::string pattern = item.scalar.get<std::string>();
    const std::string project = ProjectOf(item.at, pattern);
    if (!project.empty() && !projects_.insert(project).second) return;
    Report(item.at, path,
           (IsPattern(pattern) ? "no folder matches " : "there is no folder ") + Describe(item) + " (looked from " +
               std::filesystem::current_path().string() + ")" +
               (project.empty() ? ""
                                : "; paths in this file are relative to the working folder, and " + project +
                                      " holds them: run the command from there"));
  }

  // The folder of the file, or the one above it (of configs/), if it holds what the pattern names; else empty.
  static std::string ProjectOf(const Position& at, const std::string& pattern) {
    namespace fs = std::filesystem;
    if (at.line == 0 || fs::path(pattern).is_absolute()) return "";
    const fs::path folder = fs::absolute(at.file).lexically_normal().parent_path();
    for (const fs::path& project : {folder, folder.parent_path()}) {
      try {
        if (!ExpandFolders((project / pattern).string()).empty()) return project.string();
      } catch (const Error&) {  // it cannot be read: no hint
      }
    }
    return "";
  }

  void CheckNotEmpty(const Node& problems, const char* key, const std::vector<std::string>& folders, bool needed) {
    const Node* list = problems.Get(key);
    if (!needed || !folders.empty() || list == nullptr || !list->IsList()) return;
    if (!list->items.empty()) {  // each of its entries was reported, unless all were taken by the other list
      const bool reported = std::any_of(diagnostics_->begin(), diagnostics_->end(), [&](const Diagnostic& d) {
        return d.path.starts_with(std::string("problems.") + key + "[");
      });
      if (reported || !projects_.empty()) return;
    }
    const Position& at = list->at.line != 0 || list->at.file == "--set" ? list->at
                         : problems.at.line != 0                        ? problems.at
                                                                        : root_->at;
    Report(at, std::string("problems.") + key, "no problem is left to use: list folders such as problems/*");
  }

  // Problems are known by their folder's name from here on.
  void CheckDistinctNames(const Node& problems, const std::vector<std::string>& train,
                          const std::vector<std::string>& heldout) {
    std::map<std::string, std::string> folder_of;
    for (const auto& [key, folders] : {std::pair("train", &train), std::pair("heldout", &heldout)}) {
      for (const std::string& folder : *folders) {
        const std::string name = std::filesystem::path(folder).filename().string();
        const auto [place, fresh] = folder_of.emplace(name, folder);
        if (fresh || place->second == folder) continue;
        Report(problems.Get(key)->at, std::string("problems.") + key,
               folder + " has the same name as " + place->second + ": names of problems must differ");
      }
    }
  }

  Node* root_;
  std::vector<Diagnostic>* diagnostics_;
  std::set<std::string> projects_;  // folders that ReportMissing has named
};

}  // namespace

void ExpandProblemLists(Node* root, bool needs_train, bool needs_heldout, std::vector<Diagnostic>* diagnostics) {
  ProblemLists(root, diagnostics).Run(needs_train, needs_heldout);
}

}  // namespace kgrpo
