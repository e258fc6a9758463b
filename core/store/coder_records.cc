// RunDatabase: the rounds in which trajectories were dropped, and the totals of the coder's work and cost.
#include "store/database.h"

namespace kgrpo {

void RunDatabase::WriteFailedRound(Purpose purpose, uint64_t step, uint64_t trajectory, const RoundRecord& round) {
  const CoderAnswer& answer = round.answer;
  Statement insert(database_, "INSERT INTO dropped_rounds VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  insert << PurposeName(purpose) << step << trajectory << round.round << round.suggestion;
  insert.Blob(std::span(round.completion_ids));
  (insert << WriteSource(round.code_a) << WriteSource(round.code_b) << static_cast<int>(answer.outcome)
          << answer.message << answer.prompt_tokens << answer.completion_tokens << answer.cost << answer.seconds
          << answer.attempts)
      .Run();
  WriteReused(purpose, step, trajectory, round);
}

void RunDatabase::WriteReused(Purpose purpose, uint64_t step, uint64_t trajectory, const RoundRecord& round) {
  if (!round.answer.reused) return;
  Statement insert(database_, "INSERT INTO reused_answers VALUES(?, ?, ?, ?)");
  (insert << PurposeName(purpose) << step << trajectory << round.round).Run();
}

std::optional<RoundRecord> RunDatabase::ReadFailedRound(Purpose purpose, uint64_t step, uint64_t trajectory) {
  Statement select(database_,
                   "SELECT round, suggestion, completion_ids, (SELECT text FROM sources WHERE hash = code_a), "
                   "(SELECT text FROM sources WHERE hash = code_b), coder_outcome, coder_message, coder_prompt_tokens, "
                   "coder_completion_tokens, coder_cost, coder_seconds, coder_attempts, "
                   "EXISTS(SELECT 1 FROM reused_answers u WHERE u.purpose = d.purpose AND u.step = d.step AND "
                   "u.trajectory = d.trajectory AND u.round = d.round) FROM dropped_rounds d "
                   "WHERE purpose = ? AND step = ? AND trajectory = ?");
  select << PurposeName(purpose) << step << trajectory;
  if (!select.Step()) return std::nullopt;
  RoundRecord round;
  round.round = static_cast<uint32_t>(select.Integer(0));
  round.suggestion = select.Text(1);
  const auto completion_ids = select.Values<int32_t>(2);
  round.completion_ids.assign(completion_ids.begin(), completion_ids.end());
  round.code_a = select.Text(3);
  round.code_b = select.Text(4);
  round.answer.outcome = static_cast<kgrpo_coder_outcome>(select.Integer(5));
  round.answer.message = select.Text(6);
  round.answer.prompt_tokens = static_cast<uint64_t>(select.Integer(7));
  round.answer.completion_tokens = static_cast<uint64_t>(select.Integer(8));
  round.answer.cost = select.Real(9);
  round.answer.seconds = select.Real(10);
  round.answer.attempts = static_cast<uint32_t>(select.Integer(11));
  round.answer.reused = select.Integer(12) != 0;
  return round;
}

CoderTotals RunDatabase::ReadCoderTotals(uint64_t up_to_step) {
  // Demonstrations are stored under the first step of their stage, but are collected before it.
  Statement select(database_,
                   "SELECT count(*), total(coder_outcome > 2), total(tokens), total(coder_cost) FROM ("
                   "SELECT purpose, step, coder_outcome, coder_prompt_tokens + coder_completion_tokens AS tokens, "
                   "coder_cost FROM rounds UNION ALL "
                   "SELECT purpose, step, coder_outcome, coder_prompt_tokens + coder_completion_tokens, coder_cost "
                   "FROM dropped_rounds) WHERE step <= ?1 OR (purpose = 'demonstration' AND step <= ?1 + 1)");
  select << up_to_step;
  CoderTotals totals;
  if (!select.Step()) return totals;
  totals.answers = static_cast<uint64_t>(select.Integer(0));
  totals.errors = static_cast<uint64_t>(select.Real(1));
  totals.tokens = static_cast<uint64_t>(select.Real(2));
  totals.cost = select.Real(3);
  Statement reused(
      database_,
      "SELECT count(*) FROM reused_answers WHERE step <= ?1 OR (purpose = 'demonstration' AND step <= ?1 + "
      "1)");
  reused << up_to_step;
  if (reused.Step()) totals.reused = static_cast<uint64_t>(reused.Integer(0));
  return totals;
}

static_assert(KGRPO_CODER_UNCLEAR == 2 && KGRPO_CODER_REFUSED == 3, "the outcomes above 2 are the coder's own faults");

std::vector<CoderFaultCount> RunDatabase::ReadCoderFaults() {
  Statement select(database_,
                   "SELECT coder_outcome, coder_message, count(*) FROM ("
                   "SELECT coder_outcome, coder_message FROM rounds UNION ALL "
                   "SELECT coder_outcome, coder_message FROM dropped_rounds) "
                   "WHERE coder_outcome > 2 GROUP BY coder_outcome, coder_message");
  std::vector<CoderFaultCount> faults;
  while (select.Step()) {
    faults.push_back(
        {static_cast<kgrpo_coder_outcome>(select.Integer(0)), select.Text(1), static_cast<size_t>(select.Integer(2))});
  }
  return faults;
}

}  // namespace kgrpo
