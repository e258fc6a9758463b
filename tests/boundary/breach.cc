// What no plugin may do: use a header of the host. The tests of this folder pass when the compiler refuses it.
#include "plugin/loader.h"
