#include "evaluator_cuda/version.h"

#include "judging_digest.h"  // made by the build

namespace kgrpo::evaluator_cuda {

const char* SourceDigest() {
  return KGRPO_SOURCE_DIGEST;
}

}  // namespace kgrpo::evaluator_cuda
