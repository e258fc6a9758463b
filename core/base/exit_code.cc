#include "base/exit_code.h"

namespace kgrpo {

ExitCode ExitCodeOf(kgrpo_error_code code) {
  switch (code) {
    case KGRPO_ERROR_INVALID:
    case KGRPO_ERROR_NOT_FOUND:
    case KGRPO_ERROR_UNSUPPORTED: return kBadInput;
    case KGRPO_ERROR_UNAVAILABLE: return kUnavailable;
    case KGRPO_ERROR_CANCELLED: return kInterrupted;
    case KGRPO_ERROR_NOT_FINITE:
    case KGRPO_ERROR_BUDGET:
    case KGRPO_ERROR_INTERNAL:
    case KGRPO_ERROR_NO_SCORE: return kFailed;
  }
  return kFailed;
}

}  // namespace kgrpo
