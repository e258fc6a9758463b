// The plugin coder_program: implements kgrpo.coder/1 by a program in any language that writes kernels.
#include <kgrpo/coder.h>
#include <kgrpo/sdk/plugin.h>

#include <chrono>
#include <exception>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "program_shared/options.h"
#include "program_shared/pool.h"
#include "program_shared/wire.h"

struct kgrpo_coder {
  kgrpo::program::Pool pool;
};

namespace kgrpo::program {
namespace {

using Clock = std::chrono::steady_clock;

kgrpo_str Schema() {
  static const std::string schema = OptionsSchema("coder_program options", "[python3, my_coder.py]", 600);
  return Str(schema);
}

kgrpo_error* Create(const kgrpo_host* host, kgrpo_str options, kgrpo_coder** out) {
  return Guard([&] { *out = new kgrpo_coder{Pool(Host(host), "coder", ReadOptions(View(options)))}; });
}

void Destroy(kgrpo_coder* self) { delete self; }

// Reads the program's answer. A failure of the program fails this request only, and its message is kept.
CoderAnswer Read(const nlohmann::json& result, const std::exception_ptr& error, const std::string& current) {
  CoderAnswer read;
  read.attempts = 1;
  try {
    if (error) std::rethrow_exception(error);
    read = ReadCoderAnswer(result);
    if (read.outcome == KGRPO_CODER_OK && read.source == current) {
      read.outcome = KGRPO_CODER_NOT_APPLICABLE;
      read.source.clear();
      read.message = "the coder gave the kernel back as it was";
    }
  } catch (const std::exception& failure) {
    read.outcome = KGRPO_CODER_FAILED;
    read.message = failure.what();
  }
  return read;
}

kgrpo_error* Implement(kgrpo_coder* self, const kgrpo_coder_request* request, kgrpo_coder_done done) {
  return Guard([&] {
    const auto answer = [done, begun = Clock::now(), current = Copy(request->code_b)](const nlohmann::json& result,
                                                                                      const std::exception_ptr& error) {
      CoderAnswer read = Read(result, error, current);
      read.seconds = std::chrono::duration<double>(Clock::now() - begun).count();
      const kgrpo_coder_answer c = read.ToC();
      done.done(done.context, &c, nullptr);
    };
    self->pool.Submit("implement", CoderParams(*request), answer);
  });
}

void Cancel(kgrpo_coder* self) { self->pool.Cancel(); }

kgrpo_error* Suggestions(const kgrpo_coder* self, kgrpo_text_sink sink) {
  return Guard([&] {
    for (const std::string& suggestion : self->pool.hello().suggestions) sink.put(sink.context, Str(suggestion));
  });
}

kgrpo_error* Describe(const kgrpo_coder* self, kgrpo_text_sink sink) {
  return Guard([&] { sink.put(sink.context, Str(self->pool.description())); });
}

constexpr kgrpo_coder_interface kInterface = {
    sizeof(kgrpo_coder_interface), Schema,   Create, Destroy, Implement, Cancel, Suggestions,
    /*describe_request=*/nullptr,  Describe,
    /*spending=*/nullptr,
    /*get_extension=*/nullptr};

}  // namespace
}  // namespace kgrpo::program

KGRPO_PLUGIN("coder_program", KGRPO_VERSION, "a coder that is a program in any language, over JSON lines",
             {KGRPO_CODER_INTERFACE, &kgrpo::program::kInterface});
