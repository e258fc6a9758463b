#include "loop/problem_set.h"

#include <kgrpo/sdk/error.h>
#include <kgrpo/sdk/text.h>
#include <kgrpo/support/template_data.h>  // MakePromptProblem

#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

namespace kgrpo {
namespace {

// A problem, or why it cannot be used.
struct Opened {
  std::optional<OpenProblem> problem;
  std::string unusable;
};

Opened OpenOnce(Evaluator& evaluator, const std::string& directory) {
  Problem problem = evaluator.OpenProblem(directory);
  const kgrpo_problem_info& info = problem.info();
  if (const std::string refused = Copy(info.refused); !refused.empty())
    return {std::nullopt, directory + ": the problem was refused when it was imported: " + refused};
  const PromptProblem prompt = MakePromptProblem(info);
  std::string source = Copy(info.source);
  Evaluation baseline;
  try {
    baseline = evaluator.Baseline(problem);
  } catch (const Error& error) {
    if (error.code() != KGRPO_ERROR_INVALID) throw;  // the machine, not the problem, is the cause
    return {std::nullopt, error.what()};
  }
  return {OpenProblem{std::move(problem), prompt.name, prompt.family, std::move(source), prompt, std::move(baseline),
                      directory},
          ""};
}

// A problem is opened a second time before it is left out: a busy machine may have caused its reference's timeout.
Opened Open(Evaluator& evaluator, const std::string& directory, bool skip_unusable) {
  Opened opened = OpenOnce(evaluator, directory);
  if (!opened.problem && !skip_unusable) throw Error(KGRPO_ERROR_INVALID, opened.unusable);
  return opened.problem ? std::move(opened) : OpenOnce(evaluator, directory);
}

}  // namespace

ProblemSet::ProblemSet(Evaluator& evaluator, const std::vector<std::string>& directories, WorkerPool& pool,
                       bool skip_unusable, const std::function<void()>& opened_one, Findings* findings) {
  Findings first;  // throws
  if (findings == nullptr) findings = &first;
  std::vector<std::optional<Opened>> opened(directories.size());
  std::vector<std::exception_ptr> failures(directories.size());
  std::mutex telling;
  pool.ForEach(directories.size(), [&](size_t i) {
    try {
      opened[i].emplace(Open(evaluator, directories[i], skip_unusable));
    } catch (const Error&) {
      failures[i] = std::current_exception();
    }
    const std::lock_guard<std::mutex> lock(telling);
    if (opened_one) opened_one();
  });
  std::map<std::string, std::string> directory_of;
  problems_.reserve(opened.size());
  for (size_t i = 0; i < opened.size(); ++i) {
    if (!findings->Try([&] {
          if (failures[i]) std::rethrow_exception(failures[i]);
        }))
      continue;
    if (!opened[i]->problem) {
      skipped_.push_back(std::move(opened[i]->unusable));
      continue;
    }
    OpenProblem& problem = *opened[i]->problem;
    const auto [other, inserted] = directory_of.emplace(problem.name, problem.directory);
    if (!inserted)
      findings->Add("two problems are named " + problem.name + ": " + other->second + " and " + problem.directory);
    families_.push_back(problem.family);
    problems_.push_back(std::move(problem));
  }
  if (problems_.empty() && skipped_.size() == directories.size() && !skipped_.empty()) {
    findings->Add("none of the " + std::to_string(skipped_.size()) +
                  " problems can be used; of the first: " + skipped_.front());
  }
}

std::vector<ProblemRecord> ProblemSet::Records() const {
  std::vector<ProblemRecord> records;
  for (const OpenProblem& problem : problems_) {
    records.push_back({problem.name, problem.prompt.title, problem.family, Copy(problem.problem.info().split),
                       problem.directory, problem.source, problem.baseline});
  }
  return records;
}

}  // namespace kgrpo
