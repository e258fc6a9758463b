// Which way of judging this is, for the keys of kept evaluations. Alone in its file, so that a change anywhere compiles
// this one again and no other.
#ifndef KGRPO_EVALUATOR_SIM_VERSION_H
#define KGRPO_EVALUATOR_SIM_VERSION_H

namespace kgrpo::evaluator_sim {

// The SHA-256, in hexadecimal, of the sources of evaluator_sim and evaluator_shared and of the device files.
const char* SourceDigest();

}  // namespace kgrpo::evaluator_sim

#endif
