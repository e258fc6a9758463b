#include "interpreter/code_not_judged.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <set>
#include <string_view>
#include <utility>

#include "cuda_source/lexer.h"
#include "cuda_source/own_headers.h"
#include "judge/compile/compiled_kernel.h"  // KernelName

namespace kgrpo::interpreter {
namespace {

using evaluator::Bindings;
using evaluator::Problem;
using simt::CodeNotRun;

// "30-31, kernels.cuh:7": lines with at most an empty one or a bracket between them are one range.
std::string LinesText(const std::vector<CodeNotRun::Line>& lines) {
  constexpr size_t kMostRanges = 4;
  std::string text;
  size_t ranges = 0;
  for (size_t first = 0; first < lines.size();) {
    size_t last = first;
    while (last + 1 < lines.size() && lines[last + 1].file == lines[first].file &&
           lines[last + 1].line <= lines[last].line + 2)
      ++last;
    if (++ranges > kMostRanges) return text + ", ...";
    const bool header = lines[first].file != "kernel.cu";
    text += (text.empty() ? "" : ", ") + (header ? lines[first].file + ":" : "") + std::to_string(lines[first].line) +
            (last > first ? "-" + std::to_string(lines[last].line) : "");
    first = last + 1;
  }
  return (lines.size() > 1 ? "lines " : "line ") + text;
}

// The name that the source gives to a kernel's parameter, or "".
std::string ParameterName(const std::string& source, std::string kernel, int parameter) {
  kernel = kernel.substr(0, kernel.find('<'));
  if (const size_t scope = kernel.rfind("::"); scope != std::string::npos) kernel = kernel.substr(scope + 2);
  const cuda_source::LexedSource lexed = cuda_source::Lex(source);
  const std::vector<cuda_source::Token>& tokens = lexed.tokens;
  const std::vector<size_t> closes = cuda_source::Closes(tokens);
  bool global = false;
  for (size_t i = 0; lexed.understood && i + 1 < tokens.size(); ++i) {
    if (tokens[i].Is(";") || tokens[i].Is("}")) global = false;
    global = global || tokens[i].Is("__global__");
    if (!global || !tokens[i].Is(kernel) || !tokens[i + 1].Is("(") || closes[i + 1] == 0) continue;
    int number = 0;
    std::string_view name;
    for (size_t t = i + 2; t <= closes[i + 1]; ++t) {
      if (tokens[t].Is(",") || t == closes[i + 1]) {
        if (number++ == parameter) return std::string(name);
      } else if (tokens[t].kind == cuda_source::Token::Kind::kIdentifier) {
        name = tokens[t].text;
      } else if (closes[t] > t) {
        t = closes[t];
      }
    }
    return "";
  }
  return "";
}

uint64_t TensorBytes(const Problem& problem, const Bindings& size) {
  uint64_t bytes = 0;
  for (const evaluator::Parameter& parameter : problem.parameters)
    if (parameter.IsTensor()) bytes += parameter.MemoryBytes(size);
  return bytes;
}

}  // namespace

std::vector<CodeNotRun> FindCodeNotJudged(const simt::Module& module, const std::vector<simt::Coverage>& coverage,
                                          const std::string& source) {
  std::set<std::pair<std::string, int>> own;
  for (const cuda_source::SourcePlace& place : cuda_source::PlacesOfLines(source, "kernel.cu"))
    own.emplace(place.file, place.line);
  std::vector<CodeNotRun> code = simt::FindCodeNotRun(module, coverage);
  for (CodeNotRun& one : code) {
    std::vector<CodeNotRun::Line> lines;
    for (const CodeNotRun::Line& line : one.lines) {
      const auto place = std::find_if(own.begin(), own.end(), [&](const std::pair<std::string, int>& place) {
        return place.second == line.line && line.file.ends_with(place.first);
      });
      if (place != own.end()) lines.push_back({place->first, line.line});
    }
    one.lines = std::move(lines);
  }
  std::erase_if(code, [](const CodeNotRun& one) { return one.lines.empty(); });
  return code;
}

std::string NotJudgedText(const simt::Module& module, const std::vector<CodeNotRun>& code, const std::string& source) {
  constexpr size_t kMost = 3;
  std::string text;
  for (size_t i = 0; i < code.size() && i < kMost; ++i) {
    text += (i == 0 ? "" : "; ") + LinesText(code[i].lines) + ", which no size reaches";
    if (!code[i].boundary || code[i].boundary->parameter < 0) continue;
    const CodeNotRun::Boundary& boundary = *code[i].boundary;
    const std::string kernel = evaluator::KernelName(module.kernels()[code[i].kernel].name),
                      name = ParameterName(source, kernel, boundary.parameter);
    if (name.empty()) continue;
    const std::string sign = boundary.addend < 0 ? " - " : " + ";
    text += ": " + name + (boundary.addend != 0 ? sign + std::to_string(std::abs(boundary.addend)) : "") + " " +
            boundary.relation + " " + std::to_string(boundary.constant);
  }
  return code.size() > kMost ? text + "; and others" : text;
}

std::vector<Bindings> SizesBeyond(const Problem& problem, const std::vector<CodeNotRun>& code) {
  constexpr size_t kMost = 4;
  constexpr uint64_t kMostBytes = uint64_t{64} << 20;
  std::vector<Bindings> listed = problem.visible;
  listed.insert(listed.end(), problem.hidden.begin(), problem.hidden.end());
  const Bindings smallest = *std::min_element(listed.begin(), listed.end(), [&](const Bindings& a, const Bindings& b) {
    return TensorBytes(problem, a) < TensorBytes(problem, b);
  });
  listed.push_back(problem.timing);
  const uint64_t most_bytes = std::min(kMostBytes, TensorBytes(problem, problem.timing));
  std::vector<Bindings> sizes;
  const auto is_traced = [](const evaluator::Parameter& parameter) { return !parameter.distribution.tapes.empty(); };
  if (problem.oracle == evaluator::OracleKind::kTorchScript ||
      std::any_of(problem.parameters.begin(), problem.parameters.end(), is_traced))
    return sizes;  // files of the listed sizes
  for (const CodeNotRun& one : code) {
    if (!one.boundary || one.boundary->constant <= 0) continue;
    const std::string relation = one.boundary->relation;
    const int64_t least = one.boundary->constant - one.boundary->addend +
                          (relation == ">" || relation == "!=" ? 1
                           : relation == "<"                   ? -1
                                                               : 0);
    for (const auto& [name, value] : smallest) {
      // A dimension may have to be a multiple, or the same as another one: as it is in all sizes that are listed.
      int64_t step = 0;
      bool varies = false;
      for (const Bindings& size : listed) {
        step = std::gcd(step, size.at(name));
        varies = varies || size.at(name) != value;
      }
      Bindings size = smallest;
      const int64_t beyond = (least + step - 1) / std::max<int64_t>(1, step) * step;
      if (!varies || beyond <= 0) continue;
      for (auto& [other, extent] : size) {
        const bool same = std::all_of(
            listed.begin(), listed.end(),
            [&, &dimension = name, &of = other](const Bindings& at) { return at.at(of) == at.at(dimension); });
        if (same) extent = beyond;
      }
      if (std::find(listed.begin(), listed.end(), size) != listed.end() ||
          std::find(sizes.begin(), sizes.end(), size) != sizes.end() || TensorBytes(problem, size) > most_bytes)
        continue;
      if (sizes.size() < kMost) sizes.push_back(std::move(size));
    }
  }
  return sizes;
}

}  // namespace kgrpo::interpreter
