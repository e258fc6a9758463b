// The video instructions (vadd, vabsdiff4, ...): arithmetic on a register's bytes and halves. Used by lane_ops.cc.
#pragma once

#include <cstdint>

#include "simt/state/opcode.h"

namespace kgrpo::simt {

// Describes the instruction in `mode`. Returns false for any other instruction.
bool ReadVideo(const Opcode& opcode, int64_t& mode);
// One lane of it.
uint32_t VideoLane(uint32_t a, uint32_t b, uint32_t c, int64_t mode);

}  // namespace kgrpo::simt
