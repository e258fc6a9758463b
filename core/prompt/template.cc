#include "prompt/template.h"

#include "prompt/metrics.h"

#include <kgrpo/sdk/error.h>

#include <cstdio>
#include <kainjow/mustache.hpp>

namespace kgrpo {
namespace {

namespace mustache = kainjow::mustache;

// Empty text is false, so that {{#name}} can ask for it.
mustache::data Text(const std::string& text) {
  return text.empty() ? mustache::data(false) : mustache::data(text);
}
mustache::data Number(uint32_t number) {
  return mustache::data(std::to_string(number));
}

mustache::data Texts(const std::vector<std::string>& texts) {
  mustache::data list(mustache::data::type::list);
  for (const std::string& text : texts) list.push_back(mustache::data(text));
  return list;
}

std::string Join(const std::vector<std::string>& texts) {
  std::string joined;
  for (const std::string& text : texts) joined += (joined.empty() ? "" : ", ") + text;
  return joined;
}

mustache::data Speedup(double speedup) {
  if (speedup <= 0) return mustache::data(false);
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", speedup);
  return mustache::data(std::string(text));
}

// Sets data.a.b.c for the name "a.b.c", which is how mustache reads that name.
void SetNested(mustache::data& data, const std::string& name, const mustache::data& value) {
  const size_t dot = name.find('.');
  if (dot == std::string::npos) return data.set(name, value);
  const std::string head = name.substr(0, dot);
  const mustache::data* known = data.get(head);
  mustache::data inner = known != nullptr && known->is_object() ? *known : mustache::data(mustache::data::type::object);
  SetNested(inner, name.substr(dot + 1), value);
  data.set(head, inner);
}

mustache::data Metrics(const std::vector<NamedNumber>& metrics) {
  if (metrics.empty()) return mustache::data(false);
  mustache::data data;
  for (const auto& [name, value] : metrics) SetNested(data, name, mustache::data(FormatMetric(name, value)));
  return data;
}

mustache::data Round(const PromptRound& round) {
  mustache::data data;
  data.set("round", Number(round.round));
  data.set("suggestion", Text(round.suggestion));
  data.set("summary", Text(round.summary));
  data.set("outcome", Text(round.outcome));
  data.set("right", mustache::data(round.outcome == "right"));
  data.set("applied", mustache::data(round.applied));
  data.set("speedup", Speedup(round.speedup));
  data.set("diagnosis", Text(round.diagnosis));
  return data;
}

mustache::data Root(const PromptState& state) {
  mustache::data problem;
  problem.set("name", Text(state.problem.name));
  problem.set("title", Text(state.problem.title));
  problem.set("family", Text(state.problem.family));
  problem.set("task", Text(state.problem.task));
  problem.set("signature", Text(state.problem.signature));
  problem.set("traits", Texts(state.problem.traits));
  problem.set("traits_joined", Text(Join(state.problem.traits)));

  std::vector<std::string> applied;
  mustache::data history(mustache::data::type::list);
  for (const PromptRound& round : state.history) {
    history.push_back(Round(round));
    if (round.applied) applied.push_back(round.summary.empty() ? round.suggestion : round.summary);
  }

  mustache::data current;
  current.set("speedup", Speedup(state.current_speedup));
  current.set("time", Text(state.current_seconds > 0 ? FormatSeconds(state.current_seconds) : ""));
  current.set("diagnosis", Text(state.current_diagnosis));
  current.set("verdict", Text(state.current_verdict));
  current.set("right", mustache::data(state.current_verdict == "right"));
  current.set("metrics", Metrics(state.current_metrics));
  current.set("evidence", Text(EvidenceText(state.current_metrics)));

  mustache::data root;
  root.set("problem", problem);
  root.set("code_a", Text(state.code_a));
  root.set("code_b", Text(state.code_b));
  root.set("last_suggestion", Text(state.last_suggestion));
  root.set("round", Number(state.round));
  root.set("rounds", Number(state.rounds));
  root.set("rounds_left", Number(state.rounds - state.round));
  root.set("first_round", mustache::data(state.round == 1));
  root.set("last_round", mustache::data(state.round == state.rounds));
  root.set("history", history);
  root.set("applied", Texts(applied));
  root.set("applied_joined", Text(Join(applied)));
  root.set("last", state.history.empty() ? mustache::data(false) : Round(state.history.back()));
  root.set("current", current);
  return root;
}

}  // namespace

struct PromptTemplate::Compiled {
  explicit Compiled(const std::string& text) : mustache(text) {
    mustache.set_custom_escape([](const std::string& value) { return value; });
  }
  mustache::mustache mustache;
};

PromptTemplate::PromptTemplate(const std::string& text, const std::string& what) {
  std::string mistakes;
  for (const TemplateMistake& mistake : CheckTemplate(text)) {
    mistakes += (mistakes.empty() ? "" : "\n") + what + ":" + std::to_string(mistake.line) + ":" +
                std::to_string(mistake.column) + ": " + mistake.message;
  }
  if (!mistakes.empty()) throw Error(KGRPO_ERROR_INVALID, mistakes);
  compiled_ = std::make_unique<Compiled>(text);
}

PromptTemplate::~PromptTemplate() = default;
PromptTemplate::PromptTemplate(PromptTemplate&&) noexcept = default;
PromptTemplate& PromptTemplate::operator=(PromptTemplate&&) noexcept = default;

std::string PromptTemplate::Render(const PromptState& state) const {
  return compiled_->mustache.render(Root(state));
}

std::string FormatSeconds(double seconds) {
  struct Unit {
    double size;
    const char* name;
  };
  static constexpr Unit kUnits[] = {{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}, {1e-9, "ns"}};
  const Unit* unit = &kUnits[3];
  for (const Unit& candidate : kUnits) {
    if (seconds >= candidate.size) {
      unit = &candidate;
      break;
    }
  }
  char text[48];
  std::snprintf(text, sizeof text, "%.3g %s", seconds / unit->size, unit->name);
  return text;
}

}  // namespace kgrpo
