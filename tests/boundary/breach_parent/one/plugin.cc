// What no plugin may do: reach another's header by its place.
#include "../two/insides.h"
