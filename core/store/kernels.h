// kernels/PROBLEM/{best.cu, evidence.json}: the best verified kernel of each problem, with what was found about it.
// Written after each step that improved one, and again when a run is resumed, from the run's database.
#ifndef KGRPO_STORE_KERNELS_H
#define KGRPO_STORE_KERNELS_H

#include "store/records.h"

#include <filesystem>

namespace kgrpo {

void WriteBestKernel(const std::filesystem::path& directory, const BestKernel& kernel);

}  // namespace kgrpo
#endif
