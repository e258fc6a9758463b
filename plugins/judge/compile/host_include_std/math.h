// Stands in for the standard header of this name; see cmath.
#include "cuda_runtime.h"
