// Shared by warp operations and reconvergence.
#pragma once

#include <cstdint>

#include "simt/state/machine.h"

namespace kgrpo::simt {

// The lanes that take part in the warp operation `in` as lane `lane` names them.
uint32_t MembersOf(const Warp& warp, const Instruction& in, int lane);
// Finds the lane that each lane of a shuffle reads.
void ShuffledFrom(const Warp& warp, const Instruction& in, uint32_t* from);
// Makes `lanes` of the running group wait at `pc`.
void Park(Warp& warp, uint32_t lanes, uint32_t pc);
// Orders the earlier accesses of `known` before the later ones of `lanes`.
void SynchroniseLanes(Warp& warp, uint32_t lanes, uint32_t known);
inline void SynchroniseLanes(Warp& warp, uint32_t lanes) { SynchroniseLanes(warp, lanes, lanes); }
// The warp's alive lanes are all at the barrier `in` (or, for barrier.sync, parked at barriers).
void ArriveAtBarrier(Warp& warp, const Instruction& in, uint32_t mask);
// The line of the source that the instruction at `pc` comes from.
inline int LineOf(const Warp& warp, uint32_t pc) { return warp.grid->kernel->lines[pc].line; }

}  // namespace kgrpo::simt
