#include "loop/lessons.h"

#include "base/keyed.h"
#include "loop/metrics.h"
#include "store/json.h"
#include "store/readable.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace kgrpo {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// Keys of texts in run.sqlite.
constexpr const char* kTraits = "traits";    // of the run's problems
constexpr const char* kEarlier = "lessons";  // from earlier runs

double Similarity(const std::string& family, const std::set<std::string>& traits, const std::string& other_family,
                  const std::set<std::string>& other_traits) {
  std::vector<std::string> common;
  std::ranges::set_intersection(traits, other_traits, std::back_inserter(common));
  const size_t all = traits.size() + other_traits.size() - common.size();
  const double shared = all == 0 ? 0 : static_cast<double>(common.size()) / static_cast<double>(all);
  return (family == other_family ? 0.5 : 0) + shared / 2;
}

}  // namespace

bool Lessons::used() const {
  if (config_.prompt.lessons == 0) return false;
  return (config_.prompt.system + config_.prompt.user).find("lessons") != std::string::npos;
}

void Lessons::Begin(RunDatabase& database, const ProblemSet& problems, const ProblemSet* heldout) {
  Json traits = Json::object();
  for (size_t i = 0; i < problems.size(); ++i) traits[problems[i].name] = problems[i].prompt.traits;
  database.Set(kTraits, DumpJson(traits));
  if (!used()) return;
  database_ = &database;
  for (const auto& [name, list] : traits.items()) traits_[name] = list.get<std::set<std::string>>();
  LeaveOut(heldout);
  if (!database.Get(kEarlier)) {
    for (const std::string& folder : config_.prompt.lessons_from) AddRun(folder);
    database.Set(kEarlier, Text());
    sources_.clear();
  }
  Restore(*database.Get(kEarlier));
}

void Lessons::LeaveOut(const ProblemSet* heldout) {
  // Problems that this run does not open are known only by their folders.
  for (const std::string& folder : config_.heldout_problems) left_out_.insert(fs::path(folder).filename().string());
  for (size_t i = 0; heldout != nullptr && i < heldout->size(); ++i) left_out_.insert((*heldout)[i].name);
}

void Lessons::AddSourcesOf(const fs::path& pipeline, const ProblemSet* heldout) {
  if (!used()) return;
  LeaveOut(heldout);
  const fs::path folder = pipeline.parent_path();
  if (fs::exists(folder / "run.sqlite")) return AddRun(folder.empty() ? "." : folder);
  for (const std::string& earlier : config_.prompt.lessons_from) AddRun(earlier);
}

void Lessons::AddRun(const fs::path& folder) {
  RunDatabase run = OpenRecord(folder);
  const Json traits = Json::parse(run.Get(kTraits).value_or("{}"));
  for (const auto& [name, list] : traits.items()) traits_.emplace(name, list.get<std::set<std::string>>());
  Restore(run.Get(kEarlier).value_or("[]"));
  Speedups speedups;
  Add(run.ReadPlayed(0, ~uint64_t{0} >> 1), &speedups);
}

void Lessons::Add(const std::vector<PlayedRound>& rounds, Speedups* speedups) {
  for (const PlayedRound& round : rounds) {
    if (round.from_reference) speedups->emplace(std::pair(round.problem_name, round.code_b), 1.0);
    if (!round.code_c.empty()) speedups->emplace(std::pair(round.problem_name, round.code_c), round.speedup);
    const auto before = speedups->find({round.problem_name, round.code_b});
    // A search may start from a kernel that no round made, and a round from an incorrect kernel repairs it.
    if (before == speedups->end() || before->second <= 0 || left_out_.contains(round.problem_name)) continue;
    Source& source = sources_[round.problem_name];
    source.family = round.family;
    if (const auto traits = traits_.find(round.problem_name); traits != traits_.end()) source.traits = traits->second;
    Result& result = source.results[SuggestionText(round.suggestion)];
    if (result.uses++ == 0) result.suggestion = round.suggestion;
    if (round.applied && round.speedup > 0) result.log_gain += std::log(round.speedup / before->second);
  }
}

void Lessons::Restore(const std::string& text) {
  for (const Json& json : Json::parse(text)) {
    const auto name = json.at(0).get<std::string>();
    if (left_out_.contains(name)) continue;
    Source& source = sources_[name];
    json.at(1).get_to(source.family);
    source.traits = json.at(2).get<std::set<std::string>>();
    for (const Json& one : json.at(3)) {
      const auto suggestion = one.at(0).get<std::string>();
      Result& result = source.results[SuggestionText(suggestion)];
      if (result.uses == 0) result.suggestion = suggestion;
      result.uses += one.at(1).get<uint64_t>();
      result.log_gain += one.at(2).get<double>();
    }
  }
}

std::string Lessons::Text() const {
  Json all = Json::array();
  for (const auto& [name, source] : sources_) {
    Json results = Json::array();
    for (const auto& [key, result] : source.results)
      results.push_back({result.suggestion, result.uses, result.log_gain});
    all.push_back({name, source.family, source.traits, std::move(results)});
  }
  return DumpJson(all);
}

void Lessons::Fill(const ProblemSet& problems, RolloutRequest* request) {
  if (!used()) return;
  if (database_ != nullptr && request->step > counted_ + 1) {
    Add(database_->ReadPlayed(counted_ + 1, request->step - 1), &speedups_);
    counted_ = request->step - 1;
  }
  request->lessons.assign(problems.size(), {});
  for (const Assignment& assignment : request->assignments) {
    std::vector<PromptLesson>& lessons = request->lessons[assignment.problem];
    if (lessons.empty()) lessons = For(problems[assignment.problem].prompt, request->purpose, request->step);
  }
}

std::vector<PromptLesson> Lessons::For(const PromptProblem& problem, Purpose purpose, uint64_t step) const {
  struct Sum {
    PromptLesson lesson;
    double weight = 0, log_gain = 0;  // sums over rounds, times the similarity of their problems
    double most = 0;                  // the largest share of a problem
  };
  if (!used()) return {};
  const std::set<std::string> traits(problem.traits.begin(), problem.traits.end());
  std::map<std::string, Sum> sums;
  std::set<std::string> texts;  // of all other problems
  for (const auto& [name, source] : sources_) {
    if (name == problem.name) continue;
    const double similarity = Similarity(problem.family, traits, source.family, source.traits);
    for (const auto& [key, result] : source.results) {
      texts.insert(result.suggestion);
      if (similarity == 0) continue;
      Sum& sum = sums[key];
      if (sum.lesson.uses == 0) sum.lesson.suggestion = result.suggestion;
      sum.lesson.uses += result.uses;
      sum.weight += similarity * static_cast<double>(result.uses);
      sum.log_gain += similarity * result.log_gain;
      if (sum.lesson.problem.empty() || similarity * result.log_gain > sum.most) {
        sum.lesson.problem = name;
        sum.most = similarity * result.log_gain;
      }
    }
  }
  std::vector<const Sum*> order;
  for (const auto& [key, sum] : sums) {
    if (sum.log_gain > 0) order.push_back(&sum);
  }
  std::ranges::stable_sort(order, std::greater<>(), [](const Sum* sum) { return sum->log_gain / (1 + sum->weight); });
  order.resize(std::min<size_t>(order.size(), config_.prompt.lessons));
  std::vector<PromptLesson> lessons;
  KeyedStream random(config_.seed, "shuffle lessons/" + problem.name, {static_cast<uint64_t>(purpose), step});
  for (const Sum* sum : order) {
    PromptLesson& lesson = lessons.emplace_back(sum->lesson);
    lesson.gain = std::exp(sum->log_gain / sum->weight);
    if (config_.controls.shuffle_lessons)
      lesson.suggestion = *std::next(texts.begin(), static_cast<std::ptrdiff_t>(random.Below(texts.size())));
  }
  return lessons;
}

}  // namespace kgrpo
