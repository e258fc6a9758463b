#include "evaluator_cuda/version.h"

#include "source_digest.h"  // made by the build

namespace kgrpo::evaluator_cuda {

const char* SourceDigest() {
  return KGRPO_SOURCE_DIGEST;
}

}  // namespace kgrpo::evaluator_cuda
