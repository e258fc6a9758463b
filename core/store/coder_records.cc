// RunDatabase: totals of the coder's work and cost, and of failures.
#include "store/database.h"

namespace kgrpo {

CoderTotals RunDatabase::ReadCoderTotals(uint64_t up_to_step) {
  // Demonstrations are stored under the first step of their stage, but are collected before it. The view all_rounds
  // would read every column of every round.
  Statement select(
      database_,
      "SELECT count(*), total(coder_outcome BETWEEN 3 AND 6), total(coder_prompt_tokens + coder_completion_tokens), "
      "total(CAST(round(coder_cost * 1e9) AS INTEGER)), total(coder_reused) FROM ("
      "SELECT purpose, step, coder_outcome, coder_prompt_tokens, coder_completion_tokens, coder_cost, "
      "coder_reused FROM rounds UNION ALL "
      "SELECT purpose, step, coder_outcome, coder_prompt_tokens, coder_completion_tokens, coder_cost, "
      "coder_reused FROM dropped_rounds) WHERE step <= ?1 OR (purpose = 'demonstration' AND step <= ?1 + 1)");
  select << up_to_step;
  CoderTotals totals;
  if (!select.Step()) return totals;
  totals.answers = static_cast<uint64_t>(select.Integer(0));
  totals.errors = static_cast<uint64_t>(select.Real(1));
  totals.tokens = static_cast<uint64_t>(select.Real(2));
  totals.cost = select.Real(3) / 1e9;  // billionths, so that the order does not count
  totals.reused = static_cast<uint64_t>(select.Real(4));
  return totals;
}

static_assert(KGRPO_CODER_REFUSED == 3 && KGRPO_CODER_FAILED == 6, "the coder's own faults are the outcomes 3 to 6");

std::vector<RoundFaultCount> RunDatabase::ReadRoundFaults() {
  Statement select(database_,
                   "SELECT 'coder' AS part, coder_outcome AS kind, coder_message AS message, count(*) FROM ("
                   "SELECT coder_outcome, coder_message FROM rounds UNION ALL "
                   "SELECT coder_outcome, coder_message FROM dropped_rounds) WHERE coder_outcome BETWEEN 3 AND 6 "
                   "GROUP BY kind, message UNION ALL "
                   "SELECT failed_part, 0, failed_message, count(*) FROM dropped_rounds WHERE failed_part IS NOT NULL "
                   "GROUP BY failed_part, failed_message");
  std::vector<RoundFaultCount> faults;
  while (select.Step()) {
    RoundFaultCount& fault = faults.emplace_back();
    fault.part = RoundPartOf(select.Text(0));
    if (fault.part == RoundPart::kCoder)
      fault.kind = CoderOutcomeName(static_cast<kgrpo_coder_outcome>(select.Integer(1)));
    fault.message = select.Text(2);
    fault.count = static_cast<size_t>(select.Integer(3));
  }
  return faults;
}

}  // namespace kgrpo
