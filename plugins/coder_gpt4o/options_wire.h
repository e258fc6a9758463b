// The part of options.h for the key and the connection. Used by options.cc.
#ifndef KGRPO_CODER_GPT4O_OPTIONS_WIRE_H
#define KGRPO_CODER_GPT4O_OPTIONS_WIRE_H

#include "coder_gpt4o/options.h"

#include <string>

#include <nlohmann/json.hpp>

namespace kgrpo::coder_gpt4o {

// Collects mistakes in the options, a line each, in the form that the host expects: "options.seed: expected an
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

// One that thinks before it answers.
bool IsReasoningModel(const std::string& model);

// Finds keys that stand in any of the options.
void RefuseKeys(const nlohmann::json& json, const Environment& environment, OptionMistakes& mistakes);

// Reads into options.client; `model` and `mode` are there already.
void ReadWire(const nlohmann::json& json, const Environment& environment, CoderOptions& options,
              OptionMistakes& mistakes);

}  // namespace kgrpo::coder_gpt4o

#endif
