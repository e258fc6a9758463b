#include "prompt/template.h"

#include <kgrpo/sdk/error.h>
#include <kgrpo/support/closest.h>      // JoinedText
#include <kgrpo/support/number_text.h>  // Format
#include <kgrpo/support/template_data.h>
#include <kainjow/mustache.hpp>

#include <algorithm>

namespace kgrpo {
namespace {

namespace mustache = kainjow::mustache;

mustache::data Number(uint32_t number) { return mustache::data(std::to_string(number)); }

mustache::data Speedup(double speedup) {
  if (speedup <= 0) return mustache::data(false);
  return mustache::data(Format("%.2f", speedup));
}

mustache::data Round(const PromptRound& round, const MetricRegistry* metrics) {
  mustache::data data;
  data.set("round", Number(round.round));
  data.set("suggestion", TextData(round.suggestion));
  data.set("summary", TextData(round.summary));
  data.set("outcome", TextData(round.outcome));
  data.set("correct", mustache::data(round.outcome == KGRPO_VERDICT_CORRECT));
  data.set("applied", mustache::data(round.applied));
  data.set("speedup", Speedup(round.speedup));
  data.set("diagnosis", TextData(round.diagnosis));
  data.set("kernel", TextData(round.kernel));
  SetFigures(round.evaluation, metrics, &data);
  return data;
}

// The rounds with the fastest correct kernels, fastest first; of equal speedups the later is first.
std::vector<const PromptRound*> BestRounds(const PromptState& state) {
  std::vector<const PromptRound*> best;
  for (auto round = state.history.rbegin(); round != state.history.rend(); ++round) {
    if (round->speedup > 0 && !round->kernel.empty()) best.push_back(&*round);
  }
  std::ranges::stable_sort(best, [](const auto* a, const auto* b) { return a->speedup > b->speedup; });
  best.resize(std::min(best.size(), state.best_rounds));
  return best;
}

mustache::data Root(const PromptState& state) {
  std::vector<std::string> applied;
  mustache::data history(mustache::data::type::list);
  for (size_t i = 0; i < state.history.size(); ++i) {
    const PromptRound& round = state.history[i];
    if (i >= state.history_from) history.push_back(Round(round, state.metrics));
    if (round.applied) applied.push_back(round.summary.empty() ? round.suggestion : round.summary);
  }

  mustache::data best(mustache::data::type::list);
  for (const PromptRound* round : BestRounds(state)) best.push_back(Round(*round, state.metrics));

  mustache::data current;
  current.set("speedup", Speedup(state.current.speedup));
  current.set("diagnosis", TextData(state.current.diagnosis));
  current.set("verdict", TextData(state.current.verdict));
  current.set("correct", mustache::data(state.current.correct));
  SetFigures(state.current, state.metrics, &current);

  mustache::data root;
  root.set("problem", ProblemData(state.problem));
  root.set("reference", TextData(state.reference));
  root.set("code_a", TextData(state.code_a));
  root.set("code_b", TextData(state.code_b));
  root.set("last_suggestion", TextData(state.last_suggestion));
  root.set("round", Number(state.round));
  root.set("rounds", Number(state.rounds));
  root.set("rounds_left", Number(state.rounds - state.round));
  root.set("first_round", mustache::data(state.round == 1));
  root.set("last_round", mustache::data(state.round == state.rounds));
  root.set("history", history);
  root.set("history_left_out",
           state.history_from > 0 ? Number(static_cast<uint32_t>(state.history_from)) : mustache::data(false));
  root.set("best", best);
  root.set("applied", TextsData(applied));
  root.set("applied_joined", TextData(JoinedText(applied)));
  root.set("last", state.history.empty() ? mustache::data(false) : Round(state.history.back(), state.metrics));
  root.set("current", current);
  return root;
}

}  // namespace

std::vector<TemplateMistake> CheckTemplate(const std::string& text) { return CheckTemplate(text, PromptVariables()); }

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

bool ShortenHistory(PromptState* state) {
  if (state->history_from < state->history.size()) {
    ++state->history_from;
    return true;
  }
  state->best_rounds = std::min(state->best_rounds, BestRounds(*state).size());
  if (state->best_rounds == 0) return false;
  --state->best_rounds;
  return true;
}

std::string PromptTemplate::Render(const PromptState& state) const { return compiled_->mustache.render(Root(state)); }

const Variable& PromptVariables() {
  using Kind = Variable::Kind;
  static const Variable kText{Kind::kText, {}};
  static const Variable kFlag{Kind::kFlag, {}};
  static const Variable kTexts{Kind::kTexts, {}};
  static const Variable kRound{Kind::kRecord,
                               {{"round", kText},
                                {"suggestion", kText},
                                {"summary", kText},
                                {"outcome", kText},
                                {"correct", kFlag},
                                {"applied", kFlag},
                                {"speedup", kText},
                                {"diagnosis", kText},
                                {"kernel", kText},
                                {"time", kText},
                                {"metrics", {Kind::kNamed, {}}},
                                {"evidence", kText}}};
  static const Variable kRoot{Kind::kRecord,
                              {{"problem", ProblemVariable()},
                               {"reference", kText},
                               {"code_a", kText},
                               {"code_b", kText},
                               {"last_suggestion", kText},
                               {"round", kText},
                               {"rounds", kText},
                               {"rounds_left", kText},
                               {"first_round", kFlag},
                               {"last_round", kFlag},
                               {"history", {Kind::kRecords, kRound.members}},
                               {"history_left_out", kText},
                               {"best", {Kind::kRecords, kRound.members}},
                               {"applied", kTexts},
                               {"applied_joined", kText},
                               {"last", kRound},
                               {"current",
                                {Kind::kRecord,
                                 {{"speedup", kText},
                                  {"time", kText},
                                  {"diagnosis", kText},
                                  {"verdict", kText},
                                  {"correct", kFlag},
                                  {"metrics", {Kind::kNamed, {}}},
                                  {"evidence", kText}}}}}};
  return kRoot;
}

}  // namespace kgrpo
