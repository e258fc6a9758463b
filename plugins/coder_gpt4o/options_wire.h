// Reads the options of the key and the connection: a part of options.h. Used by options.cc.
#ifndef KGRPO_CODER_GPT4O_OPTIONS_WIRE_H
#define KGRPO_CODER_GPT4O_OPTIONS_WIRE_H

#include "coder_gpt4o/options.h"

#include <string>

#include <nlohmann/json.hpp>

namespace kgrpo::coder_gpt4o {

// Collects mistakes in the options, one a line, in the form that the host expects: "options.seed: expected an
// integer".
class OptionMistakes {
 public:
  void Add(const std::string& option, const std::string& message);
  void ThrowIfAny() const;  // KGRPO_ERROR_INVALID

 private:
  std::string text_;
};

// An option's text; `otherwise` where it is null or absent.
std::string TextOr(const nlohmann::json& json, const char* key, const std::string& otherwise);

// True if the model reasons before it answers, judged by its name.
bool IsReasoningModel(const std::string& model);

// Adds a mistake for each option that holds a key.
void RefuseKeys(const nlohmann::json& json, const Environment& environment, OptionMistakes& mistakes);

// Reads into options.client. `model` and `mode` must be set already.
void ReadWire(const nlohmann::json& json, const Environment& environment, CoderOptions& options,
              OptionMistakes& mistakes);

}  // namespace kgrpo::coder_gpt4o

#endif
