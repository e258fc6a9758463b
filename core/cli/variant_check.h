// Makes the plugins of each variant of an experiment before the first run: a mistake in one variant's options is found
// before any variant has trained. Used by `kgrpo-host run` and `check`.
#ifndef KGRPO_CLI_VARIANT_CHECK_H
#define KGRPO_CLI_VARIANT_CHECK_H

#include <vector>

#include "cli/experiment.h"
#include "cli/session.h"

namespace kgrpo::cli {

// Makes every part that the runs' configurations choose, each choice once, except policies, which load models. Opens no
// problem. `checked`: a run whose parts were made already; may be null. Replaces the session's services: no instance
// made by the session may be left. Throws PartError with all mistakes, each behind its place and its variant's name:
//
//   ab.yaml:4:30: variant "log": reward (my_reward): options.score: at character 6 of ...
void CheckVariantParts(Session& session, const std::vector<const PlannedRun*>& runs, const PlannedRun* checked);

}  // namespace kgrpo::cli
#endif
