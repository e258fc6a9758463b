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
  if (!round.failure) return;
  Statement insert_failure(database_, "INSERT INTO part_failures VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?)");
  (insert_failure << PurposeName(purpose) << step << trajectory << round.round << RoundPartName(round.failure->part)
                  << round.failure->message << WriteSource(answer.source) << answer.summary << round.unchanged)
      .Run();
  if (round.evaluation) WriteEvaluation(purpose, step, trajectory, round);
}

void RunDatabase::WriteReused(Purpose purpose, uint64_t step, uint64_t trajectory, const RoundRecord& round) {
  if (!round.answer.reused) return;
  Statement insert(database_, "INSERT INTO reused_answers VALUES(?, ?, ?, ?)");
  (insert << PurposeName(purpose) << step << trajectory << round.round).Run();
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

std::vector<RoundFaultCount> RunDatabase::ReadRoundFaults() {
  Statement select(database_,
                   "SELECT 'coder' AS part, coder_outcome AS kind, coder_message AS message, count(*) FROM ("
                   "SELECT coder_outcome, coder_message FROM rounds UNION ALL "
                   "SELECT coder_outcome, coder_message FROM dropped_rounds) "
                   "WHERE coder_outcome > 2 GROUP BY kind, message UNION ALL "
                   "SELECT part, 0, message, count(*) FROM part_failures GROUP BY part, message");
  std::vector<RoundFaultCount> faults;
  while (select.Step()) {
    RoundFaultCount& fault = faults.emplace_back();
    for (const RoundPart part : kRoundParts) {
      if (select.Text(0) == RoundPartName(part)) fault.part = part;
    }
    if (fault.part == RoundPart::kCoder)
      fault.kind = CoderOutcomeName(static_cast<kgrpo_coder_outcome>(select.Integer(1)));
    fault.message = select.Text(2);
    fault.count = static_cast<size_t>(select.Integer(3));
  }
  return faults;
}

}  // namespace kgrpo
