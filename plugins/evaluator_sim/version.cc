#include "evaluator_sim/version.h"

#include "source_digest.h"  // made by the build

namespace kgrpo::evaluator_sim {

const char* SourceDigest() {
  return KGRPO_SOURCE_DIGEST;
}

}  // namespace kgrpo::evaluator_sim
