// What no plugin may do: use a header of another plugin.
#include "two/insides.h"
