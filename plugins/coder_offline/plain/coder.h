// The offline coder on a kernel without a schedule line: techniques that need only the source's tokens. Called by
// coder.cc.
#pragma once

#include <string_view>
#include <vector>

#include "coder_offline/coder.h"
#include "coder_offline/techniques.h"

namespace kgrpo::coder_offline {

// As Implement: applies the applicable techniques of `asks`, in a fixed order. `asks` must not be empty.
Answer ImplementPlain(std::string_view source, const std::vector<Ask>& asks);

}  // namespace kgrpo::coder_offline
