// Fuzzes the PTX parser. PTX from a candidate's object is untrusted: any text must be parsed and lowered, or refused by
// an Error. Run by scripts/fuzz.
#include <kgrpo/sdk/error.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "simt/lower/module.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    kgrpo::simt::Module::Parse(std::string_view(reinterpret_cast<const char*>(data), size));
  } catch (const kgrpo::Error&) {
    // Refused: as it should be.
  }
  return 0;
}
