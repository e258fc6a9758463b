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

// All mistakes in a template, as "line:column: message"; empty if there are none.
std::vector<std::string> CheckPrompt(const std::string& text);

// The text cut to at most `bytes`, at the end of a line if possible, otherwise of a character, and a note if it was
// cut. Control characters other than line breaks and tabs become blanks.
std::string Shortened(std::string_view text, size_t bytes);

// The text with "> " before every line, which marks it as data in the prompt.
std::string Quoted(std::string_view text);

// Any thread.
class CoderPrompt {
 public:
  // The templates must have passed CheckPrompt; an empty system template sends no system message. `system_role`: its
  // message's role; "user" puts it at the beginning of the user's message. `diagnosis_bytes`: the longest diagnosis of
  // the current kernel. `names`: the metrics' names, which must outlive this object.
  CoderPrompt(const std::string& system, const std::string& user, std::string system_role, size_t diagnosis_bytes,
              const MetricRegistry& names);
  ~CoderPrompt();

  // The messages of a request, a list of {"role", "content"}.
  nlohmann::json Messages(const kgrpo_coder_request& request) const;

  // The same without the measurements of the current kernel: time, diagnosis, metrics and evidence. These differ
  // between measurements, for example in a resumed run; the rest does not.
  nlohmann::json UnmeasuredMessages(const kgrpo_coder_request& request) const;

 private:
  struct Templates;

  nlohmann::json Render(const kgrpo_coder_request& request, bool measured) const;

  std::string system_role_;
  size_t diagnosis_bytes_;
  const MetricRegistry& names_;
  mutable std::mutex mutex_;  // mustache renders for one thread at a time
  std::unique_ptr<Templates> templates_;
};

}  // namespace kgrpo::coder_gpt4o

#endif
