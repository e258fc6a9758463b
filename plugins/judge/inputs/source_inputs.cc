#include "judge/inputs/source_inputs.h"

#include <kgrpo/sdk/error.h>

#include <sstream>
#include <utility>

#include "judge/process/trusted_call.h"

namespace kgrpo::evaluator {
namespace {

constexpr int kDrawSeconds = 600;  // of processor time

bool DrawnBySource(const Parameter& parameter) {
  return (parameter.role == Role::kInput || parameter.role == Role::kInout) &&
         parameter.distribution.kind == Distribution::Kind::kSource;
}

// Definitions for inputs.cc: the sizes by name, and numbers that are the same on every machine. As draw.h's, these come
// from whole-number arithmetic up to one rounding.
const char* const kDraw = R"(
class Draw {
 public:
  explicit Draw(std::uint64_t key) : state_(key) {}
  std::uint64_t bits() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  double uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }
  double normal() {
    const std::uint64_t b = bits();
    const auto sum = static_cast<std::int64_t>((b & 0xffff) + ((b >> 16) & 0xffff) + ((b >> 32) & 0xffff) + (b >> 48));
    return static_cast<double>(sum - 2 * 65535) * (1.0 / 37837.22946584478);
  }
  std::int64_t below(std::int64_t limit) {
    return static_cast<std::int64_t>((static_cast<unsigned __int128>(bits()) * static_cast<std::uint64_t>(limit)) >> 64);
  }

 private:
  std::uint64_t state_;
};
)";

std::string TypeOf(const Parameter& parameter) { return Info(parameter.dtype).is_floating ? "double" : "int64_t"; }

std::string Prelude(const Problem& problem) {
  std::string text = "#include <cstdint>\n#include <cmath>\nstruct Sizes {\n";
  for (const auto& [symbol, value] : problem.timing) text += "  std::int64_t " + symbol + ";\n";
  return text + "};\n" + kDraw;
}

// The text appended to inputs.cc: a function of a fixed type for each parameter.
std::string Shims(const Problem& problem) {
  std::ostringstream text;
  text << "\n#line 1 \"calls of inputs.cc\"\n";
  for (const Parameter& parameter : problem.parameters) {
    if (!DrawnBySource(parameter)) continue;
    text << "extern \"C\" void kgrpo_draw_" << parameter.name
         << "(void** values, const double*, const std::int64_t* sizes, void (*)(const char*, unsigned long)) {\n"
         << "  Draw draw(static_cast<std::uint64_t>(sizes[" << problem.timing.size() << "]));\n  const Sizes size = {";
    for (size_t i = 0; i < problem.timing.size(); ++i) text << (i > 0 ? ", " : "") << "sizes[" << i << "]";
    text << "};\n  draw_" << parameter.name << "(static_cast<" << TypeOf(parameter) << "*>(*values), size, draw);\n}\n";
  }
  return text.str();
}

std::string Declarations(const Problem& problem) {
  std::string text;
  for (const Parameter& parameter : problem.parameters) {
    if (!DrawnBySource(parameter)) continue;
    text += (text.empty() ? "void draw_" : ", void draw_") + parameter.name + "(" + TypeOf(parameter) + "* " +
            parameter.name + ", const Sizes& size, Draw& draw)";
  }
  return text;
}

}  // namespace

SourceInputs::SourceInputs(std::shared_ptr<const TrustedLibrary> library, std::string file, std::string parameter)
    : library_(std::move(library)), file_(std::move(file)), parameter_(std::move(parameter)) {}

void SourceInputs::Fill(const Bindings& size, uint64_t key, void* values, size_t bytes) const {
  TrustedCall call = {.function = "kgrpo_draw_" + parameter_,
                      .tensors = {{parameter_, values, bytes, true}},
                      .processor_seconds = kDrawSeconds};
  for (const auto& [symbol, value] : size) call.wholes.push_back(value);
  call.wholes.push_back(static_cast<int64_t>(key));
  const CallEnd end = CallTrusted(library_->path(), call);
  if (!end.failure.empty())
    throw Error(KGRPO_ERROR_INVALID, file_ + ": draw_" + parameter_ + " " + end.failure + " at " + SizeText(size));
}

Problem WithSourceInputs(Problem problem, const std::string& cache_directory) {
  if (!problem.inputs_source) return problem;
  const std::string file = problem.directory + "/inputs.cc";
  const auto library = std::make_shared<const TrustedLibrary>(
      TrustedSource{file, Prelude(problem) + "#line 1 \"" + file + "\"\n" + *problem.inputs_source + Shims(problem),
                    Declarations(problem), cache_directory});
  for (Parameter& parameter : problem.parameters) {
    if (DrawnBySource(parameter))
      parameter.distribution.source = std::make_shared<const SourceInputs>(library, file, parameter.name);
  }
  return problem;
}

}  // namespace kgrpo::evaluator
