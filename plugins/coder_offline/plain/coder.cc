// The offline coder on a kernel without a schedule line: techniques that need only the source's tokens.

#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <iterator>
#include <string>

#include "coder_offline/form/form.h"
#include "coder_offline/plain/techniques.h"

namespace kgrpo::coder_offline {
namespace {

// The order of application: later techniques depend on the code that earlier ones write.
constexpr Technique kOrder[] = {Technique::kNarrow,     Technique::kPrivatize, Technique::kTile,
                                Technique::kRegister,   Technique::kCoalesce,  Technique::kCooperate,
                                Technique::kShuffle,    Technique::kGridStride, Technique::kRestrict,
                                Technique::kVectorize,  Technique::kFast,      Technique::kUnroll,
                                Technique::kBlock,      Technique::kLaunchBounds};

// The value nearest to `asked`; `preferred` if none was asked for.
int NearestOf(int asked, std::initializer_list<int> values, int preferred) {
  if (asked <= 0) return preferred;
  return *std::min_element(values.begin(), values.end(),
                           [&](int a, int b) { return std::abs(a - asked) < std::abs(b - asked); });
}

// The first of these rewrites that applies, or the reason of the first.
PlainResult FirstOf(std::initializer_list<PlainResult> results) {
  for (const PlainResult& result : results) {
    if (!result.source.empty()) return result;
  }
  return *results.begin();
}

PlainResult ApplyTo(const PlainSource& source, const Ask& ask) {
  switch (ask.technique) {
    case Technique::kNarrow: return NarrowIndices(source);
    case Technique::kRestrict: return ReadOnlyPointers(source);
    case Technique::kGridStride: return GridStride(source);
    case Technique::kVectorize: return VectorElements(source, NearestOf(ask.value, {2, 4}, 4));
    case Technique::kShuffle: return FirstOf({ShuffleReduction(source), Cooperate(source, 32)});
    case Technique::kCooperate: return Cooperate(source, 128);
    case Technique::kCoalesce: return FirstOf({ExchangeAxes(source), Cooperate(source, 32)});
    case Technique::kTile: return TileProduct(source, NearestOf(ask.value, {16, 32}, 32), 1);
    case Technique::kRegister: {
      const int outputs = NearestOf(ask.value, {4, 8}, 4);
      return FirstOf({TileProduct(source, 16 * outputs, outputs), SeveralPoints(source, outputs)});
    }
    case Technique::kPrivatize: return GatherAtomics(source);
    case Technique::kFast: return FastIntrinsics(source);
    case Technique::kUnroll: return UnrollLoops(source, NearestOf(ask.value, {2, 4, 8, 16}, 4));
    case Technique::kBlock: {
      const int threads = NearestOf(ask.value, {64, 128, 256, 512, 1024}, 256);
      return FirstOf({BlockSize(source, threads), BlockShape(source, threads)});
    }
    case Technique::kLaunchBounds: return LaunchBounds(source);
    default:
      return {"",
              "it needs a kernel with a '// schedule:' line, and this one has none: docs/coder_offline.md says what "
              "applies to any kernel"};
  }
}

}  // namespace

Answer ImplementPlain(std::string_view source, const std::vector<Ask>& asks) {
  std::vector<Ask> ordered;
  for (const Technique technique : kOrder) {
    std::copy_if(asks.begin(), asks.end(), std::back_inserter(ordered),
                 [&](const Ask& ask) { return ask.technique == technique; });
  }
  std::copy_if(asks.begin(), asks.end(), std::back_inserter(ordered), [](const Ask& ask) {
    return std::find(std::begin(kOrder), std::end(kOrder), ask.technique) == std::end(kOrder);
  });
  std::string text(source), done, left_out, reason;
  for (const Ask& ask : ordered) {
    std::string why;
    const PlainSource read(text, &why);
    if (!why.empty())
      return {Status::kNotApplicable, "", "", "not applicable: this coder can't read the kernel: " + why};
    PlainResult result = ApplyTo(read, ask);
    if (!result.source.empty()) {
      text = std::move(result.source);
      done += (done.empty() ? "" : "; ") + result.words;
      continue;
    }
    reason = result.words;
    left_out += (left_out.empty() ? "" : "; ") + std::string(NameOf(ask.technique)) + " is not applicable: " + reason;
  }
  if (done.empty()) return {Status::kNotApplicable, "", "", asks.size() == 1 ? "not applicable: " + reason : left_out};
  if (!left_out.empty()) done += " (" + left_out + ")";
  return {Status::kOk, text, done, ""};
}

}  // namespace kgrpo::coder_offline
