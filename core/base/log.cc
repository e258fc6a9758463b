#include "base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>

namespace kgrpo {

namespace {

spdlog::level::level_enum SpdlogLevel(LogLevel level) {
  constexpr spdlog::level::level_enum kLevels[] = {spdlog::level::debug, spdlog::level::info, spdlog::level::warn,
                                                   spdlog::level::err};
  return kLevels[static_cast<size_t>(level)];
}

}  // namespace

void InitLog(LogLevel least) {
  auto logger = std::make_shared<spdlog::logger>("kgrpo", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
  logger->set_level(SpdlogLevel(least));
  logger->set_pattern("%^%l:%$ %v");
  spdlog::set_default_logger(std::move(logger));
}

void SetLogLevel(LogLevel least) {
  spdlog::default_logger()->set_level(SpdlogLevel(least));
}

std::string PrintableText(std::string_view text) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string printable;
  printable.reserve(text.size());
  for (const char character : text) {
    const auto byte = static_cast<unsigned char>(character);
    if (character == '\n') {
      printable += "\n    ";
    } else if ((byte < 0x20 && character != '\t') || byte == 0x7f) {
      printable += "\\x";
      printable += kHex[byte >> 4];
      printable += kHex[byte & 15];
    } else {
      printable += character;
    }
  }
  return printable;
}

}  // namespace kgrpo
