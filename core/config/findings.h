// Collects what is wrong with a run before it begins. `run` and `resume` stop at the first finding; `check` lists all
// of them. Both open a run through cli/open_run.h, so that `check` finds a fault exactly if `run` refuses.
#ifndef KGRPO_CONFIG_FINDINGS_H
#define KGRPO_CONFIG_FINDINGS_H

#include <kgrpo/sdk/error.h>

#include "base/exit_code.h"
#include "config/diagnostic.h"

#include <map>
#include <string>
#include <vector>

namespace kgrpo {

// A part that could not be made. Each line is one fault in its plugin's words, after the part's name and, for an option
// that a file or --set gives, its place: "mine.yaml:4:9: coder (my_coder): options.seed: expected an integer". In the
// plugin's message, a line that begins with "options." starts a fault; other lines continue the one before them.
class PartError : public Error {
 public:
  // `places`: PipelineConfig::option_places.
  PartError(const Error& error, const std::string& part, const std::string& plugin,
            const std::map<std::string, std::string>& places);
  PartError(kgrpo_error_code code, std::vector<std::string> faults);
  const std::vector<std::string>& faults() const { return faults_; }

 private:
  std::vector<std::string> faults_;
};

// One thread.
class Findings {
 public:
  enum class Stop { kAtFirst, kNever };
  explicit Findings(Stop stop = Stop::kAtFirst) : stop_(stop) {}

  // True if a fault is collected, and not thrown.
  bool collects() const { return stop_ == Stop::kNever; }

  // Runs `work`, and records the error that it throws. Throws that error instead if the first fault stops, and
  // KGRPO_ERROR_CANCELLED after the user asked to stop: what failed then may have failed by that. Returns true if
  // `work` threw nothing.
  template <typename Work>
  bool Try(const Work& work) {
    if (!collects()) {
      work();
      return true;
    }
    try {
      work();
      return true;
    } catch (const ConfigError& error) {
      Record(error);
    } catch (const Error& error) {
      Record(error);
    }
    return false;
  }

  // Records `fault`, unless it is empty, as a KGRPO_ERROR_INVALID that Try caught.
  void Add(const std::string& fault);

  // Code of the process that reports the faults: bad input outranks a device or tool that this machine lacks.
  ExitCode exit_code = kFine;
  std::vector<Diagnostic> diagnostics;  // faults of the pipeline file
  std::vector<std::string> failures;    // faults of parts and problems
  std::vector<std::string> notes;       // warnings, and checks that were left out, with the reasons

 private:
  void Record(const ConfigError& error);
  void Record(const Error& error);
  void Rank(kgrpo_error_code code);

  Stop stop_;
};

}  // namespace kgrpo
#endif
