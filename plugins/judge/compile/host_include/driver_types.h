// Stands in for the toolkit's header of this name; see cuda_runtime.h.
#include "cuda_runtime.h"
