// A breach by a plugin: it includes another plugin's header by its path.
#include "../two/insides.h"
