// Messages over a socket to and from helper programs: bytes with a time limit, and lists of byte strings, each preceded
// by its length.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace kgrpo::process {

enum class Heard { kWhole, kEnded, kLate };

// Reads exactly `bytes`. `seconds`: how long the other side may take (negative: for ever); the time used is subtracted.
// Polls for the first `spin_seconds` in place of sleeping.
Heard ReadExactly(int fd, void* data, size_t bytes, double* seconds, double spin_seconds = 0);

// Waits up to `most` seconds, and no longer than `seconds`, for something to read or the end of the stream; the time
// used is subtracted from `seconds`.
bool WaitReadable(int fd, double most, double* seconds);

// Writes all parts. False if the other side is gone, or takes longer than `seconds` (negative: waits for ever).
bool SendExactly(int fd, std::initializer_list<std::string_view> parts, double seconds);

// Writes one message; false if the other side is gone.
bool WriteFrames(int fd, const std::vector<std::string>& parts);

// Reads one message of at most `most_bytes`, waiting at most `seconds` (negative: for ever). False at the end of the
// stream, when the time is over, or for a malformed message.
bool ReadFrames(int fd, std::vector<std::string>* parts, double seconds, size_t most_bytes = size_t{256} << 20);

}  // namespace kgrpo::process
