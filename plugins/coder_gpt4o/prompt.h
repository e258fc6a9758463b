// The prompt: two mustache templates over a request. Used by options.cc (which checks them) and coder.cc.
#ifndef KGRPO_CODER_GPT4O_PROMPT_H
#define KGRPO_CODER_GPT4O_PROMPT_H

#include <kgrpo/coder.h>

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include <kgrpo/support/metric_registry.h>

namespace kgrpo::coder_gpt4o {

extern const char* const kDefaultSystem;
extern const char* const kDefaultUser;

// Every mistake of a template, as "line:column: message"; empty when it is fine.
std::vector<std::string> CheckPrompt(const std::string& text);

// The text cut to `bytes` at the end of a line or at least of a character, with a word that it was; control characters
// other than line breaks and tabs become blanks.
std::string Shortened(std::string_view text, size_t bytes);

// Every line behind "> ": data, whatever it says.
std::string Quoted(std::string_view text);

// Any thread.
class CoderPrompt {
 public:
  // Checked templates; an empty system template sends no system message. `diagnosis_bytes`: of what was found about the
  // current kernel, at most. `names`: what metrics are called.
  CoderPrompt(const std::string& system, const std::string& user, size_t diagnosis_bytes, const MetricRegistry& names);
  ~CoderPrompt();

  // A list of {"role", "content"}.
  nlohmann::json Messages(const kgrpo_coder_request& request) const;

  // The same without what was measured of the current kernel: its time, the diagnosis, metrics and evidence. These
  // differ a little whenever the kernel is measured, in a resumed run for one; the rest does not.
  nlohmann::json UnmeasuredMessages(const kgrpo_coder_request& request) const;

 private:
  struct Templates;

  nlohmann::json Render(const kgrpo_coder_request& request, bool measured) const;

  size_t diagnosis_bytes_;
  const MetricRegistry& names_;
  mutable std::mutex mutex_;  // mustache renders for one thread at a time
  std::unique_ptr<Templates> templates_;
};

}  // namespace kgrpo::coder_gpt4o

#endif
