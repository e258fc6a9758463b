// The offline coder on a kernel without a schedule line: techniques that need only the source's tokens.

#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <iterator>
#include <string>
#include <utility>

#include "coder_offline/form/form.h"
#include "coder_offline/plain/techniques.h"

namespace kgrpo::coder_offline {
namespace {

// The order of application: later techniques depend on the code that earlier ones write.
constexpr Technique kOrder[] = {Technique::kNarrow,    Technique::kPrivatize,   Technique::kTile,
                                Technique::kRegister,  Technique::kCoalesce,    Technique::kCooperate,
                                Technique::kShuffle,   Technique::kGridStride,  Technique::kRestrict,
                                Technique::kVectorize, Technique::kFast,        Technique::kUnroll,
                                Technique::kBlock,     Technique::kLaunchBounds};

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

// A rewrite of a kernel by its form, also of one that strides over its grid.
template <typename Rewrite>
PlainResult ByForm(const PlainSource& source, Rewrite rewrite) {
  const std::string one_point = OnePointAThread(source);
  if (one_point.empty()) return rewrite(source);
  std::string why;
  const PlainSource read(one_point, &why);
  return why.empty() ? rewrite(read) : rewrite(source);
}

PlainResult ApplyTo(const PlainSource& source, const Ask& ask) {
  switch (ask.technique) {
    case Technique::kNarrow: return NarrowIndices(source);
    case Technique::kRestrict: return ReadOnlyPointers(source);
    case Technique::kGridStride: return GridStride(source);
    case Technique::kVectorize: return VectorElements(source, NearestOf(ask.value, {2, 4}, 4));
    case Technique::kShuffle:
      return FirstOf({ShuffleReduction(source), ByForm(source, [](const PlainSource& s) { return Cooperate(s, 32); })});
    case Technique::kCooperate: return ByForm(source, [](const PlainSource& s) { return Cooperate(s, 128); });
    case Technique::kCoalesce:
      return FirstOf(
          {ByForm(source, ExchangeAxes), ByForm(source, [](const PlainSource& s) { return Cooperate(s, 32); })});
    case Technique::kTile: {
      const int edge = NearestOf(ask.value, {16, 32}, 32);
      return ByForm(source, [edge](const PlainSource& s) { return TileProduct(s, edge, 1); });
    }
    case Technique::kRegister: {
      const int outputs = NearestOf(ask.value, {4, 8}, 4);
      return ByForm(source, [outputs](const PlainSource& s) {
        return FirstOf({TileProduct(s, 16 * outputs, outputs), SeveralPoints(s, outputs)});
      });
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

// What to try in place of a suggestion that does not apply, in order of the usual gain.
constexpr std::pair<const char*, Ask> kNearest[] = {{"privatize histogram", {Technique::kPrivatize}},
                                                    {"one block per row", {Technique::kCooperate}},
                                                    {"tile in shared memory 32", {Technique::kTile, 32}},
                                                    {"coalesce by loop interchange", {Technique::kCoalesce}},
                                                    {"register blocking 4", {Technique::kRegister, 4}},
                                                    {"warp shuffle reduction", {Technique::kShuffle}},
                                                    {"vectorize loads 4", {Technique::kVectorize, 4}},
                                                    {"grid stride loop", {Technique::kGridStride}},
                                                    {"unroll 4", {Technique::kUnroll, 4}},
                                                    {"read only restrict", {Technique::kRestrict}}};

std::string NearestThatApplies(const PlainSource& source) {
  for (const auto& [words, ask] : kNearest) {
    if (!ApplyTo(source, ask).source.empty()) return std::string("; what applies: ") + words;
  }
  return "";
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
  if (done.empty()) {
    std::string why;
    const std::string instead = NearestThatApplies(PlainSource(text, &why));
    return {Status::kNotApplicable, "", "", (asks.size() == 1 ? "not applicable: " + reason : left_out) + instead};
  }
  if (!left_out.empty()) done += " (" + left_out + ")";
  return {Status::kOk, text, done, ""};
}

}  // namespace kgrpo::coder_offline
