// The former place of this header, for evaluator_cuda/plugin.cc alone: remove both once that includes the new one.
#include <kgrpo/support/sha256.h>
