#include "serve/served_problems.h"

#include <kgrpo/sdk/error.h>
#include <kgrpo/sdk/text.h>

#include <algorithm>
#include <fstream>
#include <system_error>
#include <utility>

#include <kgrpo/support/closest.h>
#include "base/directories.h"   // FolderName
#include "serve/http_server.h"  // HttpError

namespace kgrpo::serve {
namespace {

namespace fs = std::filesystem;

constexpr size_t kInlineKept = 64;  // problems from requests that stay open

bool IsProblemName(const std::string& name) {
  return !name.empty() && name.size() <= 100 && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

}  // namespace

ServedProblem::ServedProblem(std::string name, std::string directory, std::string sha256, size_t devices, bool remove)
    : name_(std::move(name)),
      directory_(std::move(directory)),
      sha256_(std::move(sha256)),
      remove_(remove),
      opened_(devices) {}

ServedProblem::~ServedProblem() {
  opened_.clear();
  std::error_code code;
  if (remove_) fs::remove_all(fs::path(directory_).parent_path(), code);
}

std::string ServedProblem::WithoutPath(std::string text) const {
  for (const std::string& folder : {fs::absolute(directory_).string(), directory_}) {
    for (size_t at = 0; (at = text.find(folder, at)) != std::string::npos; at += name_.size())
      text.replace(at, folder.size(), name_);
  }
  return text;
}

const Problem& ServedProblem::Open(const ServedDevice& device, size_t number) {
  Opened& opened = opened_[number];
  const std::lock_guard<std::mutex> lock(opened.mutex);
  if (!opened.problem) opened.problem.emplace(device.evaluator->OpenProblem(directory_));
  return *opened.problem;
}

Evaluation ServedProblem::Baseline(const ServedDevice& device, size_t number, uint64_t seed, bool thorough) {
  const Problem& problem = Open(device, number);
  Opened& opened = opened_[number];
  if (thorough) return device.evaluator->Baseline(problem, seed, thorough);
  const std::lock_guard<std::mutex> lock(opened.baseline_mutex);
  if (!opened.baseline) opened.baseline = device.evaluator->Baseline(problem);
  return *opened.baseline;
}

ServedProblems::ServedProblems(const std::vector<std::string>& folders, size_t devices, bool inline_code)
    : devices_(devices), inline_code_(inline_code) {
  for (const std::string& folder : folders) {
    const std::string name = FolderName(folder);
    auto problem =
        std::make_shared<ServedProblem>(name, folder, ProblemDigest(ReadProblemFiles(folder)), devices, false);
    if (!named_.emplace(name, problem).second)
      throw Error(KGRPO_ERROR_INVALID, "two of the problems to serve are named " + name);
    by_digest_.emplace(problem->sha256(), problem);
  }
}

std::shared_ptr<ServedProblem> ServedProblems::Find(const ProblemRequest& request) {
  const std::string sha256 = request.files ? ProblemDigest(*request.files) : request.sha256;
  if (request.files && !request.sha256.empty() && request.sha256 != sha256)
    throw HttpError(400, "invalid", "problem.sha256: that is not the digest of problem.files");
  if (sha256.empty()) {
    const auto found = named_.find(request.name);
    if (found != named_.end()) return found->second;
    std::vector<std::string> names;
    for (const auto& [name, problem] : named_) names.push_back(name);
    const std::string closest = Closest(request.name, names);
    throw HttpError(404, "unknown_problem",
                    "there is no problem \"" + request.name + "\" here" +
                        (closest.empty() ? "" : "; did you mean \"" + closest + "\"?") +
                        "; GET /v1/problems lists them, and \"problem\" may be an object with \"name\" and \"files\"");
  }
  const auto named = by_digest_.find(sha256);
  if (named != by_digest_.end() && named->second->name() == request.name) return named->second;
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto kept = std::ranges::find_if(
      inline_, [&](const auto& one) { return one->sha256() == sha256 && one->name() == request.name; });
  if (kept != inline_.end()) {
    inline_.splice(inline_.begin(), inline_, kept);
    return inline_.front();
  }
  if (!request.files) {
    throw HttpError(
        404, "unknown_problem",
        "the problem \"" + request.name + "\" is not here with the files of that digest; send its \"files\"");
  }
  return Keep(request, sha256);
}

std::shared_ptr<ServedProblem> ServedProblems::Keep(const ProblemRequest& request, const std::string& sha256) {
  if (!IsProblemName(request.name))
    throw HttpError(422, "invalid_problem",
                    "problem.name: expected letters, digits, _ and - alone, as a folder's name");
  if (const std::string why = WhyNotSendable(*request.files, inline_code_); !why.empty())
    throw HttpError(422, "invalid_problem", "problem.files: " + why);
  const fs::path folder = directory_.path() / std::to_string(kept_++) / request.name;
  MakeDirectories(folder);
  for (const auto& [name, content] : *request.files) {
    std::ofstream stream(folder / name, std::ios::binary);
    stream << content;
    if (!stream.flush()) throw HttpError(503, "unavailable", "cannot keep the problem's files: is the disk full?");
  }
  if (inline_.size() == kInlineKept) inline_.pop_back();  // evaluations under way hold a reference
  inline_.push_front(std::make_shared<ServedProblem>(request.name, folder.string(), sha256, devices_, true));
  return inline_.front();
}

}  // namespace kgrpo::serve
