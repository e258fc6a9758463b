// The prompt for a model that writes the kernel of a suggestion: two mustache templates over a request, the options
// that set them, and their schema. For the coders that ask a model.
#pragma once

#include <kgrpo/coder.h>

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include <kgrpo/support/metric_registry.h>

namespace kgrpo::coder_shared {

extern const char* const kDefaultSystem;
extern const char* const kDefaultUser;

struct PromptOptions {
  std::string system;  // template; empty: no system message is sent
  std::string user;    // template
  // Of the system message: system, developer or user, which puts it at the beginning of the user's message.
  std::string system_role = "system";
};

// JSON Schema of the option `prompt`. Static.
std::string_view PromptSchema();

// Reads the option `prompt`, which satisfies that schema. `refuse` receives each error in a template, with the option's
// name: "prompt.user".
PromptOptions ReadPromptOptions(const nlohmann::json& prompt,
                                const std::function<void(const std::string& option, const std::string& error)>& refuse);

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
  // The templates must have passed CheckPrompt. `names`: the metrics' names, which must outlive this object.
  CoderPrompt(PromptOptions options, const MetricRegistry& names);
  ~CoderPrompt();

  // The messages of a request, a list of {"role", "content"}.
  nlohmann::json Messages(const kgrpo_coder_request& request) const;

  // The same without the measurements of the current kernel: time, diagnosis, metrics and evidence. These differ
  // between measurements, for example in a resumed run; the rest does not.
  nlohmann::json UnmeasuredMessages(const kgrpo_coder_request& request) const;

 private:
  struct Templates;

  nlohmann::json Render(const kgrpo_coder_request& request, bool measured) const;

  PromptOptions options_;
  const MetricRegistry& names_;
  mutable std::mutex mutex_;  // mustache renders for one thread at a time
  std::unique_ptr<Templates> templates_;
};

}  // namespace kgrpo::coder_shared
