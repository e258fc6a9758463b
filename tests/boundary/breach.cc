// A breach by a plugin: it uses a header of the host, or of another plugin. BREACH names one; the tests of this folder
// pass when the compiler does not find it.
#include BREACH
