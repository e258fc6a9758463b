// A request to a coder as the host passes it. Used by the tests of the coders that ask a model.
#ifndef KGRPO_TESTS_CODER_SHARED_ASKED_H
#define KGRPO_TESTS_CODER_SHARED_ASKED_H

#include <kgrpo/coder.h>
#include <kgrpo/sdk/text.h>

#include <cstdint>
#include <string>
#include <utility>

namespace kgrpo::coder_shared {

inline constexpr const char* kKernelB =
    "__global__ void k(float* x) { x[0] = 1; }\nextern \"C\" void launch(float* x) { k<<<1, 1>>>(x); }\n";
inline constexpr const char* kKernelC =
    "__global__ void k(float* x) { *x = 1; }\nextern \"C\" void launch(float* x) { k<<<1, 32>>>(x); }\n";

// A request as the host passes it; owns its texts.
struct Asked {
  explicit Asked(std::string said = "use one warp", uint64_t number = 1) : suggestion(std::move(said)), seed(number) {
    info.struct_size = sizeof(info);
    info.name = Str("set");
    info.title = Str("Set a number");
    info.family = Str("map");
    info.task = Str("Set x[0] to 1.");
    info.signature = Str("extern \"C\" void launch(float* x)");
    info.traits = &trait;
    info.trait_count = 1;
    current.struct_size = sizeof(current);
    current.compiled = current.correct = 1;
    current.verdict = Str("correct");
    current.seconds = 12.3e-6;
    current.metric_count = 1;
  }
  const kgrpo_coder_request& request() {
    c.struct_size = sizeof(c);
    c.problem = &info;
    c.code_a = Str(code_a);
    c.code_b = Str(code_b);
    c.last_suggestion = Str(last_suggestion);
    c.suggestion = Str(suggestion);
    current.diagnosis = Str(diagnosis);
    current.metrics = &registers;
    c.current = &current;
    c.seed = seed;
    return c;
  }

  std::string code_a = kKernelB, code_b = kKernelB, last_suggestion, suggestion, diagnosis = "bound by launches";
  uint64_t seed;
  kgrpo_str trait = Str("streaming");
  kgrpo_metric registers = Measured("registers", 30);
  kgrpo_problem_info info{};
  kgrpo_evaluation current{};
  kgrpo_coder_request c{};
};

inline std::string Fenced(const std::string& code) { return "Here it is.\n```cuda\n" + code + "```\n"; }

}  // namespace kgrpo::coder_shared

#endif
