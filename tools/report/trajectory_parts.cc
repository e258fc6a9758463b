#include "report/trajectory_parts.h"

#include <cmath>
#include <set>
#include <utility>

#include "report/deflate.h"
#include "report/token_texts.h"
#include "store/json.h"

namespace kgrpo {
namespace {

using Json = nlohmann::ordered_json;

// Rounds to five significant digits; more would double the size of the page.
Json Rounded(double value) {
  if (!std::isfinite(value)) return nullptr;
  if (value == 0) return 0;
  const double scale = std::pow(10.0, 5 - std::ceil(std::log10(std::fabs(value))));
  return std::isfinite(scale) ? Json(std::round(value * scale) / scale) : Json(value);
}

void Replace(std::string* text, const std::string& what, const char* with) {
  if (what.size() < 16) return;  // an empty or tiny kernel would match anywhere
  for (size_t at = 0; (at = text->find(what, at)) != std::string::npos; at += 3) text->replace(at, what.size(), with);
}

}  // namespace

int64_t TrajectoryParts::SourceNumber(Database& database, const std::string& hash) {
  if (hash.empty()) return -1;
  const auto [found, is_new] = numbers_.emplace(hash, static_cast<int64_t>(numbers_.size()));
  if (!is_new && texts_.contains(hash)) return found->second;
  Statement select(database, "SELECT text FROM sources WHERE hash = ?");
  select << hash;
  const std::string text = select.Step() ? select.Text(0) : "";
  texts_[hash] = text;
  if (is_new) {
    open_sources_.push_back(text);
    if (open_sources_.size() == kSourcesAPart) CloseSources();
  }
  return found->second;
}

void TrajectoryParts::CloseSources() {
  sources_.push_back(DeflatedBase64(DumpJson(open_sources_)));
  open_sources_ = Json::array();
}

void TrajectoryParts::Finish() {
  if (!open_sources_.empty()) CloseSources();
}

Json TrajectoryParts::AddRun(Database& database, const std::filesystem::path& folder) {
  texts_.clear();
  Statement rounds(database,
                   "SELECT purpose, step, trajectory, round, problem_name, prompted_as, dropped, baseline_seconds, "
                   "prompt, suggestion, completion_ids, logprobs, truncated, code_a, code_b, code_c, coder_outcome, "
                   "coder_summary, coder_message, coder_cost, speedup, reward, idle_reward, reward_parts, verdict, "
                   "correct, seconds, seconds_low, seconds_high, diagnosis, return, advantage "
                   "FROM rounds JOIN trajectories USING(purpose, step, trajectory) "
                   "ORDER BY purpose, step, trajectory, round");
  Json index = Json::array(), trajectories = Json::array();
  std::set<int32_t> used;
  std::string purpose;
  int64_t step = -1, trajectory = -1;
  const auto close = [&] {
    if (trajectories.empty()) return;
    index.push_back({purpose, step, steps_.size()});
    steps_.push_back(DeflatedBase64(DumpJson({{"trajectories", std::move(trajectories)}})));
    trajectories = Json::array();
  };
  while (rounds.Step()) {
    if (rounds.Text(0) != purpose || rounds.Integer(1) != step) {
      close();
      purpose = rounds.Text(0);
      step = rounds.Integer(1);
      trajectory = -1;
    }
    if (rounds.Integer(2) != trajectory) {
      trajectory = rounds.Integer(2);
      trajectories.push_back({{"trajectory", trajectory},
                              {"problem", rounds.Text(4)},
                              {"prompted_as", rounds.Text(5)},
                              {"dropped", rounds.Text(6)},
                              {"baseline", Rounded(rounds.Real(7))},
                              {"rounds", Json::array()}});
    }
    const std::string a = rounds.Text(13), b = rounds.Text(14);
    Json round;
    round["round"] = rounds.Integer(3);
    round["code"] = {SourceNumber(database, a), SourceNumber(database, b), SourceNumber(database, rounds.Text(15))};
    Json prompt = Json::array();
    for (const ChatMessage& message : MessagesFromJson(rounds.Text(8))) {
      std::string content = message.content;
      if (!b.empty()) Replace(&content, texts_[b], "\001B\001");
      if (!a.empty()) Replace(&content, texts_[a], "\001A\001");
      prompt.push_back({message.role, content});
    }
    round["prompt"] = std::move(prompt);
    round["suggestion"] = rounds.Text(9);
    Json ids = Json::array(), logprobs = Json::array();
    for (const int32_t id : rounds.Values<int32_t>(10)) {
      ids.push_back(id);
      used.insert(id);
    }
    for (const float logprob : rounds.Values<float>(11)) logprobs.push_back(Rounded(logprob));
    round["ids"] = std::move(ids);
    round["logprobs"] = std::move(logprobs);
    if (rounds.Integer(12) != 0) round["truncated"] = true;
    round["outcome"] = CoderOutcomeName(static_cast<kgrpo_coder_outcome>(rounds.Integer(16)));
    round["summary"] = rounds.Text(17);
    round["message"] = rounds.Text(18);
    round["cost"] = Rounded(rounds.Real(19));
    round["speedup"] = Rounded(rounds.Real(20));
    round["reward"] = Rounded(rounds.Real(21));
    round["idle_reward"] = Rounded(rounds.Real(22));
    Json parts = Json::object();
    for (const Metric& part : MetricsFromJson(rounds.Text(23))) parts[part.name] = Rounded(part.value);
    round["parts"] = std::move(parts);
    if (!rounds.IsNull(24)) {
      const bool correct = rounds.Integer(25) != 0;
      round["verdict"] = rounds.Text(24);
      if (correct) round["seconds"] = {Rounded(rounds.Real(26)), Rounded(rounds.Real(27)), Rounded(rounds.Real(28))};
      round["diagnosis"] = rounds.Text(29);
    }
    if (!rounds.IsNull(30)) {
      round["return"] = Rounded(rounds.Real(30));
      round["advantage"] = Rounded(rounds.Real(31));
    }
    trajectories.back()["rounds"].push_back(std::move(round));
  }
  close();
  Json tokens = Json::object();
  if (!used.empty()) {
    const auto texts = ReadTokenTexts(folder);
    for (const int32_t id : used) {
      if (const auto found = texts.find(id); found != texts.end()) tokens[std::to_string(id)] = found->second;
    }
  }
  return {{"steps", std::move(index)}, {"tokens", std::move(tokens)}};
}

}  // namespace kgrpo
