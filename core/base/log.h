// How log lines look and where they go. The commands call InitLog once; everybody else uses spdlog's default logger.
#ifndef KGRPO_BASE_LOG_H
#define KGRPO_BASE_LOG_H

#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>

namespace kgrpo {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

// Log lines go to standard error ("info: text"; with colour on a terminal), so that standard output holds results
// alone.
void InitLog(LogLevel least);

// From here on log lines go to `stream` too, with the time of day, down to kInfo whatever InitLog was told. `stream`
// outlives the process's logging, and is written under a lock of the logger's own.
void AlsoLogTo(std::ostream& stream);

// Changes what InitLog was told. [any thread]
void SetLogLevel(LogLevel least);

// From here on lines on standard error begin "rank 3: warning: ", and are warnings at least.
void LogAsRank(uint32_t rank);

// `text` with control characters other than tabs and newlines written as \x1b: kernels, compilers and models must not
// steer a person's terminal. Lines after the first are indented.
std::string PrintableText(std::string_view text);

}  // namespace kgrpo
#endif
