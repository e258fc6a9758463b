// Techniques on a kernel's launches: block size and __launch_bounds__.
#include <algorithm>
#include <cctype>
#include <optional>
#include <string>
#include <vector>

#include "coder_offline/plain/techniques.h"

namespace kgrpo::coder_offline {
namespace {

constexpr const char* kNoLaunch = "its launch is not in this source";

// The block size of all launches, which must be the same number along one axis. Returns nullopt and sets *why
// otherwise.
std::optional<int> Threads(const PlainSource& source, std::string* why) {
  std::optional<int> threads;
  for (const PlainLaunch& launch : source.launches()) {
    const auto number = source.Number(launch.block);
    if (!number) {
      *why = "the block size of " + launch.kernel + ", '" + source.Text(launch.block) +
             "', is not one number or the name of one";
      return std::nullopt;
    }
    if (threads && *threads != number->value) {
      *why = "its launches have blocks of different sizes";
      return std::nullopt;
    }
    threads = number->value;
  }
  return threads;
}

// Collects edits that change a number of threads wherever a launch uses it. In() returns true if it found one.
class NumberChange {
 public:
  NumberChange(const PlainSource& source, int from, int to) : source_(source), from_(from), to_(to) {}

  bool In(Range range, Range host, int depth = 0) {
    bool found = false;
    if (depth > 4) return false;  // recursive functions
    for (size_t i = range.begin; i < range.end; ++i) {
      if (const auto value = source_.Value(i)) {
        if (*value != from_ && *value != from_ - 1) continue;
        edits.push_back({source_.At(i).begin, source_.At(i).end, std::to_string(to_ - (from_ - *value))});
        found = true;
      } else if (const PlainFunction* helper = HostFunction(i)) {  // blocks_for(n)
        found = In(helper->body, helper->body, depth + 1) || found;
      } else if (source_.IsName(i)) {
        const auto number = source_.Number({i, i + 1});
        if (number && number->value == from_) {
          edits.push_back({number->begin, number->end, std::to_string(to_)});
          found = true;
        } else if (const auto value = source_.Initializer(host, source_.At(i).text)) {
          if (value->begin > i || value->end <= i) found = In(*value, {host.begin, value->begin}, depth + 1) || found;
        }
      }
    }
    return found;
  }

  std::vector<Edit> edits;

 private:
  // The host function that is called at `i`; null if there is none or it is the enclosing function.
  const PlainFunction* HostFunction(size_t i) const {
    const PlainFunction* function = source_.Follows(i + 1, {"("}) ? source_.Find(source_.At(i).text) : nullptr;
    const bool other = function != nullptr && !function->global && !function->device && !function->body.Holds(i);
    return other ? function : nullptr;
  }

  const PlainSource& source_;
  const int from_, to_;
};

// The reason why the device code does not work with another number of threads; empty if it does.
std::string WhyNotFree(const PlainSource& source, const PlainFunction& function, int threads) {
  const std::string& where = function.name;
  bool warps = false;
  for (size_t i = function.body.begin; i < function.body.end; ++i) {
    warps = warps || source.At(i).text.substr(0, 6) == "__shfl" || source.Follows(i, {"/", "32"});
  }
  for (size_t i = function.body.begin; i < function.body.end; ++i) {
    const auto value = source.Value(i);
    if (value && threads > 1 && *value != 1 && *value != 0 &&
        (*value == threads || *value == threads - 1 || *value == threads / 2 || (warps && *value == threads / 32))) {
      return where + " has the number " + std::to_string(*value) + " in it, which may stand for its threads";
    }
    if (!source.At(i).Is("__shared__")) continue;
    for (size_t k = i; k < function.body.end && !source.At(k).Is(";"); ++k) {
      const auto length = source.Value(k);
      if (length && *length != 32 && *length != 1) return where + " has a shared array of a fixed length";
    }
  }
  return "";
}

// True for the usual names of the number of threads: BLOCK_SIZE, kThreads, TPB.
bool NamesThreads(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  return name.find("block") != std::string::npos || name.find("thread") != std::string::npos || name == "tpb";
}

// True if a loop of the kernel steps by its block or by its grid.
bool Strides(const PlainSource& source, const PlainFunction& kernel) {
  for (size_t i = kernel.body.begin; i + 2 < kernel.body.end; ++i) {
    if (!source.Follows(i, {"+", "="})) continue;
    if (source.At(i + 2).Is("blockDim") || source.At(i + 2).Is("gridDim")) return true;
    for (const std::string& name : source.TemplateParameters(kernel)) {
      if (NamesThreads(name) && source.At(i + 2).Is(name)) return true;
    }
    const auto step = source.Initializer(kernel.body, source.At(i + 2).text);
    if (step && (source.Has(*step, "gridDim") || source.Has(*step, "blockDim"))) return true;
  }
  return false;
}

// True if the kernel numbers its threads across blocks, so that the grid must match the block size.
bool CountsOverBlocks(const PlainSource& source, const PlainFunction& kernel) {
  size_t begin = kernel.body.begin;
  for (size_t i = begin; i < kernel.body.end; ++i) {
    if (!source.At(i).Is(";") && !source.At(i).Is("{") && !source.At(i).Is("}")) continue;
    const Range statement{begin, i};
    if (source.Has(statement, "blockIdx") && !source.Has(statement, "gridDim")) {
      if (source.Has(statement, "blockDim")) return true;
    }
    begin = i + 1;
  }
  return false;
}

// The reason why the launch's template arguments may not follow its block size; empty if they do.
std::string WhyNotArguments(const PlainSource& source, const PlainLaunch& launch, const PlainFunction& kernel,
                            int threads) {
  for (size_t i = kernel.first; i < kernel.name_token; ++i) {
    if (source.Value(i) == threads && !source.Follows(i - 2, {"__launch_bounds__"}))
      return "the template " + kernel.name + " has the number " + std::to_string(threads) + " in it";
  }
  const std::vector<std::string> names = source.TemplateParameters(kernel);
  const std::vector<Range> arguments = source.Split(launch.template_arguments);
  for (size_t i = 0; i < arguments.size(); ++i) {
    const auto number = source.Number(arguments[i]);
    if (number && number->value == threads && (i >= names.size() || !NamesThreads(names[i])))
      return "the number " + std::to_string(threads) + " is an argument of the template " + kernel.name +
             " that may not stand for its threads";
  }
  return "";
}

}  // namespace

PlainResult BlockSize(const PlainSource& source, int threads) {
  std::string why;
  if (source.launches().empty()) return {"", kNoLaunch};
  const auto from = Threads(source, &why);
  if (!from) return {"", why};
  const int to = threads > 0 ? threads : 256;
  if (*from == to) return {"", "already applied: blocks of " + std::to_string(to) + " threads"};
  for (const PlainFunction& function : source.functions()) {
    if (!function.global && !function.device) continue;
    if (why = WhyNotFree(source, function, *from); !why.empty()) return {"", why};
  }
  NumberChange change(source, *from, to);
  for (const PlainLaunch& launch : source.launches()) {
    const PlainFunction* kernel = source.Find(launch.kernel);
    if (kernel == nullptr) return {"", "the kernel " + launch.kernel + " is not in the source"};
    const Range host = source.functions()[launch.host].body;
    const bool fits = change.In(launch.grid, host);
    change.In(launch.block, host);
    change.In(launch.shared, host);
    if (why = WhyNotArguments(source, launch, *kernel, *from); !why.empty()) return {"", why};
    change.In(launch.template_arguments, host);
    const bool strides = Strides(source, *kernel);
    if (!fits && !strides) return {"", "the grid of " + launch.kernel + " does not follow its block size"};
    if (!fits && CountsOverBlocks(source, *kernel) && !source.Has(kernel->body, "gridDim"))
      return {"", "the grid of " + launch.kernel + " does not follow its block size"};
    for (size_t i = kernel->first; i < kernel->name_token; ++i) {
      if (source.At(i).Is("__launch_bounds__") && source.Value(i + 2))
        change.edits.push_back({source.At(i + 2).begin, source.At(i + 2).end, std::to_string(to)});
    }
  }
  for (const PlainLaunch& launch : source.launches()) {  // the old size must not remain elsewhere
    const Range host = source.functions()[launch.host].body;
    for (size_t i = host.begin; i < host.end; ++i) {
      const auto value = source.Value(i);
      if (!value || (*value != *from && *value != *from - 1)) continue;
      const bool changed = std::any_of(change.edits.begin(), change.edits.end(),
                                       [&](const Edit& edit) { return edit.begin == source.At(i).begin; });
      if (!changed) return {"", "the host's code has the number " + std::to_string(*value) + " elsewhere too"};
    }
  }
  return {source.Edited(change.edits), "blocks of " + std::to_string(to) + " threads"};
}

PlainResult LaunchBounds(const PlainSource& source) {
  std::vector<Edit> edits;
  std::string bounds;
  for (const PlainFunction& kernel : source.functions()) {
    if (!kernel.global || source.Has({kernel.first, kernel.name_token}, "__launch_bounds__")) continue;
    int most = 0;
    for (const PlainLaunch* launch : source.LaunchesOf(kernel)) {
      const auto threads = source.Threads(*launch);
      if (!threads) {
        return {"", "the block size of " + kernel.name + ", '" + source.Text(launch->block) +
                        "', is not known before it runs"};
      }
      most = std::max(most, *threads);
    }
    if (most == 0 || most > 1024) continue;
    const size_t at = source.At(kernel.name_token).begin;
    edits.push_back({at, at, "__launch_bounds__(" + std::to_string(most) + ") "});
    bounds = std::to_string(most);
  }
  if (source.launches().empty()) return {"", kNoLaunch};
  if (edits.empty()) return {"", "already applied: its kernels have __launch_bounds__"};
  return {source.Edited(edits), "__launch_bounds__(" + bounds + ")"};
}

}  // namespace kgrpo::coder_offline
