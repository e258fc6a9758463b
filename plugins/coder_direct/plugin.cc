// The plugin coder_direct: implements kgrpo.coder/1 for a policy that writes the kernel itself. Answers at once, on the
// caller's thread.
#include <kgrpo/coder.h>
#include <kgrpo/sdk/plugin.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

#include "coder_direct/completion.h"
#include "coder_shared/request.h"

struct kgrpo_coder {
  std::vector<std::string> examples;
};

namespace kgrpo::coder_direct {
namespace {

constexpr char kOptionsSchema[] = R"({
  "$schema": "http://json-schema.org/draft-07/schema#",
  "title": "coder_direct: takes the kernel from the policy's completion",
  "type": "object",
  "properties": {
    "examples": {"type": "string", "default": "", "title": "Folder of completions",
      "x-reads": "content", "description": "A folder whose files are completions with kernels, for warm starts (suggestions: uniform) and the baselines uniform and fixed. Empty: none."}
  },
  "additionalProperties": false
})";

// The files of a folder as texts, in the order of their names.
std::vector<std::string> ReadExamples(const std::string& folder) {
  std::vector<std::string> texts;
  if (folder.empty()) return texts;
  std::error_code error;
  std::vector<std::filesystem::path> files;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    if (entry->is_regular_file()) files.push_back(entry->path());
  }
  std::sort(files.begin(), files.end());
  for (const std::filesystem::path& file : files) {
    std::ifstream stream(file, std::ios::binary);
    std::ostringstream text;
    if (!(text << stream.rdbuf()))
      throw Error(KGRPO_ERROR_INVALID, "options.examples: cannot read " + file.string() + ", or it is empty");
    texts.push_back(std::move(text).str());
  }
  if (texts.empty())
    throw Error(KGRPO_ERROR_INVALID,
                "options.examples: " + (error ? "cannot read the folder " + folder + ": " + error.message()
                                              : "the folder " + folder + " has no file"));
  return texts;
}

kgrpo_str OptionsSchema() { return {kOptionsSchema, sizeof(kOptionsSchema) - 1}; }

kgrpo_error* Create(const kgrpo_host*, kgrpo_str options, kgrpo_coder** out) {
  return Guard([&] {
    *out = new kgrpo_coder{ReadExamples(nlohmann::json::parse(View(options)).at("examples").get<std::string>())};
  });
}

void Destroy(kgrpo_coder* self) { delete self; }

kgrpo_error* Implement(kgrpo_coder*, const kgrpo_coder_request* request, kgrpo_coder_done done) {
  return Guard([&] {
    coder_shared::RequireWhole(request, done, "coder_direct");
    coder_shared::AnswerAtOnce(done, [request] {
      return ReadCompletion({View(request->suggestion), request->truncated != 0}, View(request->problem->signature),
                            View(request->code_b));
    });
  });
}

void Cancel(kgrpo_coder*) {}  // no request outlives its call

kgrpo_error* Suggestions(const kgrpo_coder* self, kgrpo_text_sink sink) {
  return Guard([&] {
    for (const std::string& example : self->examples) sink.put(sink.context, Str(example));
  });
}

constexpr kgrpo_coder_interface kInterface = {sizeof(kgrpo_coder_interface),
                                              OptionsSchema,
                                              Create,
                                              Destroy,
                                              Implement,
                                              Cancel,
                                              Suggestions,
                                              nullptr,
                                              nullptr,
                                              nullptr,
                                              /*get_extension=*/nullptr};

}  // namespace
}  // namespace kgrpo::coder_direct

KGRPO_PLUGIN("coder_direct", KGRPO_VERSION, "takes the kernel from the policy's own completion: no key, no network",
             {KGRPO_CODER_INTERFACE, &kgrpo::coder_direct::kInterface});
