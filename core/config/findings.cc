#include "config/findings.h"

#include "base/cancel.h"

#include <kgrpo/support/closest.h>  // JoinedText

#include <sstream>
#include <string_view>
#include <utility>

namespace kgrpo {
namespace {

using Places = std::map<std::string, std::string>;  // PipelineConfig::option_places

// Returns "mine.yaml:7:12: " if the fault begins with an option that stands there; else "".
std::string PlaceOf(const std::string& fault, const std::string& part, const Places& places) {
  constexpr std::string_view kOptions = "options.";
  if (!fault.starts_with(kOptions)) return "";
  const std::string option = fault.substr(0, fault.find_first_of(".:[ ", kOptions.size()));
  const auto place = places.find(part + "." + option);
  return place == places.end() ? "" : place->second + ": ";
}

std::vector<std::string> FaultsOf(const std::string& message, const std::string& part, const std::string& plugin,
                                  const Places& places) {
  const std::string named = part + " (" + plugin + "): ";
  std::vector<std::string> faults;
  std::istringstream lines(message);
  for (std::string line; std::getline(lines, line);) {
    if (faults.empty() || line.starts_with("options."))
      faults.push_back(PlaceOf(line, part, places) + named + line);
    else
      faults.back() += "\n" + line;
  }
  if (faults.empty()) faults.push_back(named + "it does not say why");
  return faults;
}

}  // namespace

PartError::PartError(const Error& error, const std::string& part, const std::string& plugin, const Places& places)
    : PartError(error.code(), FaultsOf(error.what(), part, plugin, places)) {}

PartError::PartError(kgrpo_error_code code, std::vector<std::string> faults)
    : Error(code, JoinedText(faults, "\n")), faults_(std::move(faults)) {}

void Findings::Add(const std::string& fault) {
  if (fault.empty()) return;
  Try([&] { throw Error(KGRPO_ERROR_INVALID, fault); });
}

void Findings::Record(const ConfigError& error) {
  diagnostics.insert(diagnostics.end(), error.diagnostics().begin(), error.diagnostics().end());
  Rank(error.code());
}

void Findings::Record(const Error& error) {
  if (CancelRequested() || error.code() == KGRPO_ERROR_CANCELLED)
    throw Error(KGRPO_ERROR_CANCELLED, "stopped by the user");
  if (const auto* part = dynamic_cast<const PartError*>(&error); part != nullptr)
    failures.insert(failures.end(), part->faults().begin(), part->faults().end());
  else
    failures.emplace_back(error.what());
  Rank(error.code());
}

void Findings::Rank(kgrpo_error_code code) {
  const ExitCode exit = ExitCodeOf(code);
  if (exit_code == kFine || exit == kBadInput) exit_code = exit;
}

}  // namespace kgrpo
