#include "prompt/variables.h"

#include <kgrpo/support/template_data.h>  // ProblemVariable

namespace kgrpo {

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
