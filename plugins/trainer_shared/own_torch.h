// Refuses a libtorch of another release than the one that this build used: the dynamic linker takes any whose symbols
// fit. Called by the plugins that link it when an instance is created.
#pragma once

namespace kgrpo::trainer {

// Throws Error(KGRPO_ERROR_UNAVAILABLE) if the loaded libtorch says that it is of another release.
void RequireOwnTorch();

}  // namespace kgrpo::trainer
