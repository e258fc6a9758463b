// arc4random for helpers that link libstdc++ statically: the archive asks for glibc 2.36's, and with this one a helper
// also runs on glibc 2.35 (Ubuntu 22.04), as the wheel promises.
#include <sys/random.h>

#include <cstdint>
#include <cstdlib>

extern "C" uint32_t arc4random() noexcept {
  uint32_t value = 0;
  if (getrandom(&value, sizeof value, 0) != sizeof value) abort();
  return value;
}
