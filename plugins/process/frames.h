// Messages between the evaluator and its compile process: a list of byte strings, each preceded by its length.
#ifndef KGRPO_PROCESS_FRAMES_H
#define KGRPO_PROCESS_FRAMES_H

#include <string>
#include <vector>

namespace kgrpo::evaluator {

// Writes one message; false when the other side is gone.
bool WriteFrames(int fd, const std::vector<std::string>& parts);

// Reads one message of at most `most_bytes`, waiting at most `seconds` (negative: for ever). False at the end of the
// stream, when the time is over, or for a malformed message.
bool ReadFrames(int fd, std::vector<std::string>* parts, double seconds, size_t most_bytes = size_t{256} << 20);

}  // namespace kgrpo::evaluator

#endif
