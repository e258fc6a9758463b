#include "interpreter/code_not_judged.h"

#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <set>
#include <string_view>
#include <utility>

#include "cuda_source/lexer.h"
#include "cuda_source/own_headers.h"
#include "judge/compile/candidate_form.h"   // IsPtx
#include "judge/compile/compiled_kernel.h"  // KernelName
#include "judge/problem/random.h"

namespace kgrpo::interpreter {
namespace {

using evaluator::Bindings;
using evaluator::Problem;
using simt::CodeNotRun;

constexpr uint64_t kBeyondStream = ~uint64_t{17};  // SubKey index of the stream of these cases' inputs

// The lines of the candidate's own files, which are named as it names them. Those of PTX are of the files that it was
// compiled from, where it tells.
class OwnLines {
 public:
  explicit OwnLines(const std::string& source) : is_ptx_(evaluator::IsPtx(source)) {
    for (const cuda_source::SourcePlace& place : cuda_source::PlacesOfLines(source, evaluator::OwnFileName(source)))
      own_.emplace(place.file, place.line);
  }
  std::vector<CodeNotRun::Line> Of(const std::vector<CodeNotRun::Line>& lines) const {
    std::vector<CodeNotRun::Line> found;
    for (const CodeNotRun::Line& line : lines) {
      if (is_ptx_) {
        if (line.line > 0) found.push_back({line.file.substr(line.file.rfind('/') + 1), line.line});
        continue;
      }
      const auto place = std::find_if(own_.begin(), own_.end(), [&](const std::pair<std::string, int>& one) {
        return one.second == line.line && line.file.ends_with(one.first);
      });
      if (place != own_.end()) found.push_back({place->first, line.line});
    }
    return found;
  }

 private:
  const bool is_ptx_;
  std::set<std::pair<std::string, int>> own_;
};

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
  const OwnLines own(source);
  std::vector<CodeNotRun> code = simt::FindCodeNotRun(module, coverage);
  for (CodeNotRun& one : code) one.lines = own.Of(one.lines);
  std::erase_if(code, [](const CodeNotRun& one) { return one.lines.empty(); });
  return code;
}

std::string LinesOfEdges(const simt::Module& module, const std::vector<std::pair<uint32_t, uint32_t>>& edges,
                         const std::string& source) {
  std::set<CodeNotRun::Line> lines;
  for (const auto& [kernel, at] : edges) lines.insert(simt::LineAt(module, kernel, at));
  return LinesText(OwnLines(source).Of({lines.begin(), lines.end()}));
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

Trouble TryFurtherSizes(LoadedKernel& loaded, const FurtherSizes& how, std::string* not_judged) {
  const auto find = [&] {
    return FindCodeNotJudged(loaded.session.module(), loaded.session.coverage(), loaded.kernel.source);
  };
  std::vector<CodeNotRun> code = find();
  const std::vector<Bindings> sizes = how.reference ? SizesBeyond(how.problem, code) : std::vector<Bindings>();
  const std::shared_ptr<LoadedKernel> reference = sizes.empty() ? nullptr : how.reference();
  for (size_t s = 0; s < sizes.size() && reference != nullptr; ++s) {
    std::vector<evaluator::CorrectnessCase> cases(2);  // two variants: with checks, and with the last block first
    for (int i = 0; i < 2; ++i) {
      evaluator::CorrectnessCase& one = cases[static_cast<size_t>(i)];
      one.size = &sizes[s];
      one.where = evaluator::SizeText(sizes[s]) + ", beyond a constant of the kernel,";
      one.key = evaluator::SubKey(evaluator::SubKey(how.key, kBeyondStream), static_cast<uint64_t>(i));
      one.variant = i;
    }
    // A size counts only if the problem's own kernel is correct there.
    const auto judge = [&](LoadedKernel& one) {
      if (Trouble trouble = one.Start()) return trouble;
      return InterpretedCases(one, how.problem, cases, how.rules(cases)).Run();
    };
    try {
      if (judge(*reference)) continue;
    } catch (const Error& error) {  // tensors that do not fit, or an oracle that fails
      if (error.code() == KGRPO_ERROR_CANCELLED) throw;
      continue;
    }
    if (Trouble trouble = judge(loaded)) return trouble;
  }
  if (!sizes.empty()) code = find();
  const std::string lines = NotJudgedText(loaded.session.module(), code, loaded.kernel.source);
  *not_judged += (not_judged->empty() || lines.empty() ? "" : "; ") + lines;
  return {};
}

}  // namespace kgrpo::interpreter
