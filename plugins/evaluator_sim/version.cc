// The evaluator's version, for the keys of cached evaluations, in a file of its own: a change anywhere recompiles only
// this one.
#include "source_digest.h"  // made by the build

namespace kgrpo::evaluator_sim {

const char* SourceDigest() { return KGRPO_SOURCE_DIGEST; }

}  // namespace kgrpo::evaluator_sim
