#include "judge/compile/source_policy.h"

#include <algorithm>
#include <cstdlib>
#include <set>

#include "cuda_source/lexer.h"
#include "cuda_source/own_headers.h"

namespace kgrpo::evaluator {
namespace {

using cuda_source::Token;

const std::set<std::string>& AllowedHeaders() {
  static const std::set<std::string> kHeaders = {
      "cuda.h", "cuda_runtime.h", "cuda_runtime_api.h", "device_launch_parameters.h", "device_functions.h",
      "vector_types.h", "vector_functions.h", "cuda_fp16.h", "cuda_bf16.h", "cuda_fp8.h", "cuda_pipeline.h",
      "cuda_pipeline_primitives.h", "math_constants.h", "mma.h", "cooperative_groups.h", "cooperative_groups/reduce.h",
      "cooperative_groups/scan.h", "cooperative_groups/memcpy_async.h", "driver_types.h", "builtin_types.h",
      "crt/mma.h", "sm_61_intrinsics.h", "cudaTypedefs.h",
      // of libcu++, what wraps the device's own instructions; cuda/std is in IsDeviceStandard
      "cuda/annotated_ptr", "cuda/atomic", "cuda/barrier", "cuda/latch", "cuda/pipeline", "cuda/ptx", "cuda/semaphore",
      // the C and C++ standard libraries
      "assert.h", "ctype.h", "errno.h", "float.h", "inttypes.h", "limits.h", "math.h", "stdbool.h", "stddef.h",
      "stdint.h", "stdio.h", "stdlib.h", "string.h", "time.h", "cassert", "cctype", "cerrno", "cfloat", "cinttypes",
      "climits", "cmath", "cstdarg", "cstddef", "cstdint", "cstdio", "cstdlib", "cstring", "ctime", "algorithm",
      "array", "atomic", "bit", "bitset", "chrono", "complex", "exception", "functional", "initializer_list",
      "iostream", "iterator", "limits", "map", "memory", "mutex", "new", "numeric", "optional", "ostream", "random",
      "ratio", "set", "span", "sstream", "stdexcept", "string", "string_view", "tuple", "type_traits", "unordered_map",
      "unordered_set", "utility", "variant", "vector"};
  return kHeaders;
}

// A header of the C++ standard library for devices: "cuda/std/" and one plain name, not one of its inner folders.
bool IsDeviceStandard(const std::string& header) {
  constexpr char kFolder[] = "cuda/std/";
  if (header.rfind(kFolder, 0) != 0) return false;
  const std::string name = header.substr(sizeof kFolder - 1);
  return !name.empty() && name[0] != '_' && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
}

// The library a header belongs to, where a problem may allow it: "cub/block/block_reduce.cuh" -> "cub".
std::string LibraryOf(const std::string& header) {
  static const char* const kLibraries[] = {"cublas", "cudnn",  "cufft", "curand", "cusparse", "cusolver", "cutlass",
                                           "cute",   "thrust", "cub",   "nvtx3",  "nccl",     "cuda"};
  for (const char* library : kLibraries) {
    const std::string name = library;
    if (header.rfind(name, 0) == 0 && (name != "cuda" || header.rfind("cuda/", 0) == 0)) return name;
  }
  return "";
}

// Returns why a directive is refused, or "".
std::string WhyNot(const cuda_source::Directive& directive, const std::vector<std::string>& allowed_libraries,
                   CandidateForm form) {
  const auto& [word, rest] = directive;
  if (word == "include_next" || word == "import" || word == "embed") return "#" + std::string(word) + " is not allowed";
  if (word != "include") return "";
  const std::string header(cuda_source::HeaderNamed(rest));
  if (header.empty()) return "#include must name a header plainly, not through a macro";
  if (AllowedHeaders().count(header) > 0 || IsDeviceStandard(header) || FormAllowsHeader(form, header)) return "";
  const std::string library = LibraryOf(header);
  if (!library.empty() && header.find("..") == std::string::npos) {
    if (std::find(allowed_libraries.begin(), allowed_libraries.end(), library) != allowed_libraries.end()) return "";
    return "the library " + library + " (#include \"" + header.substr(0, 80) +
           "\") is not allowed here: write the kernel itself";
  }
  return "#include of \"" + header.substr(0, 80) +
         "\" is not allowed; allowed are CUDA's core headers, and headers of the C and C++ standard libraries that "
         "need no files or threads: docs/evaluator_sim.md lists them";
}

// The message of the #error in place of an #include, followed by its number.
constexpr char kRefused[] = "kgrpo_include_is_not_allowed_";

}  // namespace

CheckedIncludes CheckIncludes(const std::string& source, const std::vector<std::string>& allowed_libraries,
                              CandidateForm form) {
  CheckedIncludes checked;
  const std::string text = cuda_source::RemoveSplices(source, true);
  std::vector<cuda_source::SourcePlace> places;
  size_t copied = 0, counted = 0, line = 0;
  int depth = 0;  // of conditionals
  for (const Token& token : cuda_source::Lex(text).tokens) {
    if (token.kind != Token::Kind::kDirective) continue;
    const cuda_source::Directive directive = cuda_source::ReadDirective(token.text);
    if (directive.word.starts_with("if")) ++depth;
    if (directive.word == "endif") --depth;
    std::string why = WhyNot(directive, allowed_libraries, form);
    if (why.empty()) continue;
    if (places.empty()) places = cuda_source::PlacesOfLines(text, "");
    line += static_cast<size_t>(std::count(text.begin() + static_cast<std::ptrdiff_t>(counted),
                                           text.begin() + static_cast<std::ptrdiff_t>(token.begin), '\n'));
    counted = token.begin;
    const cuda_source::SourcePlace& place = places[line];
    const bool own_header = !place.file.empty() && place.file != "kernel.cu";
    why = (own_header ? place.file + ":" : "line ") + std::to_string(place.line) + ": " + why;
    if (depth <= 0 && checked.why.empty()) checked.why = why;
    checked.source += text.substr(copied, token.begin - copied) + "#error " + kRefused +
                      std::to_string(checked.conditional.size()) +
                      std::string(static_cast<size_t>(std::count(token.text.begin(), token.text.end(), '\n')), '\n');
    copied = token.end;
    checked.conditional.push_back(std::move(why));
  }
  checked.source = copied == 0 ? source : checked.source + text.substr(copied);
  return checked;
}

std::string CheckedIncludes::WhyRefused(const std::string& diagnosis) const {
  const size_t at = diagnosis.find(kRefused);
  if (at == std::string::npos) return "";
  const size_t number = static_cast<size_t>(std::atoi(diagnosis.c_str() + at + sizeof kRefused - 1));
  return number < conditional.size() ? conditional[number] : "";
}

std::string IncludePolicy(const std::vector<std::string>& allowed_libraries) {
  std::string text = "cuda/std/*";
  for (const std::string& header : AllowedHeaders()) text += "\n" + header;
  std::vector<std::string> libraries = allowed_libraries;
  std::sort(libraries.begin(), libraries.end());
  for (const std::string& library : libraries) text += "\nlibrary " + library;
  return text;
}

// Writes a tensor map, a struct of the host. Evaluators that have it also give it to
// cudaGetDriverEntryPoint, which finds nothing else there.
constexpr char kTensorMapEncoder[] = "cuTensorMapEncodeTiled";

std::string CheckSymbols(const std::vector<std::string>& undefined) {
  // Functions that look up others: calls of those could not be counted or refused by name.
  static const std::set<std::string> kForbidden = {"dlopen",  "dlmopen",           "dlsym", "dlvsym", "dl_iterate_phdr",
                                                   "syscall", "cudaGetExportTable"};
  for (const std::string& symbol : undefined) {
    const std::string name = symbol.substr(0, symbol.find('@'));
    const bool driver = name.size() > 2 && name.compare(0, 2, "cu") == 0 && name[2] >= 'A' && name[2] <= 'Z';
    // The runtime's twins for per-thread default streams: nobody counts those. cudaStreamPerThread does the same.
    const bool twin = name.ends_with("_ptsz") || name.ends_with("_ptds");
    if (name == kTensorMapEncoder) continue;
    if (driver || twin || kForbidden.count(name) > 0) return "The host code uses " + name + ", which is not allowed";
  }
  return "";
}

}  // namespace kgrpo::evaluator
