// A reward is pure, finite, and adds up.
#include <kgrpo/sdk/text.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <optional>
#include <vector>

#include "validate/calls.h"
#include "validate/made_up.h"

namespace kgrpo::validate {
namespace {

// A NaN with bits that no computation yields: it marks an output that the call has not set.
double Unset() {
  const uint64_t bits = 0x7ff8'6b67'7270'6f00;
  double value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
bool IsUnset(double value) { return std::bit_cast<uint64_t>(value) == std::bit_cast<uint64_t>(Unset()); }

// A score, or the words of a refusal.
struct Said {
  std::optional<double> score;
  std::string refusal;
  bool broken = false;  // the error is a failure of the reward, not a refusal of the request
  bool none = false;    // KGRPO_ERROR_NO_SCORE
  bool operator==(const Said&) const = default;
};
std::string SaidText(const Said& said) { return said.score ? Shown(*said.score) : "refused: " + said.refusal; }

// Checks the result of a call of score or idle.
Said Read(kgrpo_error* error, double score, const char* what) {
  if (error != nullptr) {
    const bool broken = error->code == KGRPO_ERROR_UNAVAILABLE || error->code == KGRPO_ERROR_INTERNAL;
    const bool none = error->code == KGRPO_ERROR_NO_SCORE;
    Said said = {std::nullopt, TakeMessage(error), broken, none};
    if (!IsUnset(score)) Fail(std::string("it returned an error and yet set the ") + what);
    return said;
  }
  if (IsUnset(score)) Fail(std::string("success without a ") + what);
  if (!std::isfinite(score)) Fail(std::string("the ") + what + " is " + Shown(score) + ": it must be finite");
  return {score, "", false, false};
}

Said Score(const kgrpo_reward_interface& api, const kgrpo_reward* reward, const kgrpo_reward_request& request) {
  struct Parts {
    double sum = 0;
    size_t count = 0;
  } parts;
  const kgrpo_metric_sink sink = {&parts, [](void* context, kgrpo_metric part) {
                                    static_cast<Parts*>(context)->sum += part.value;
                                    ++static_cast<Parts*>(context)->count;
                                  }};
  double score = Unset();
  kgrpo_error* error = api.score(reward, &request, sink, &score);
  Said said = Read(error, score, "score");
  const double tolerance = 1e-6 * std::max(1.0, std::abs(score));
  if (said.score && parts.count > 0 && !(std::abs(parts.sum - score) <= tolerance))
    Fail("the parts sum up to " + Shown(parts.sum) + ", the score is " + Shown(score));
  return said;
}

Said Idle(const kgrpo_reward_interface& api, const kgrpo_reward* reward, const kgrpo_reward_request& request) {
  double score = Unset();
  kgrpo_error* error = api.idle(reward, &request, &score);
  return Read(error, score, "idle score");
}

// The same answer from call to call, and from two threads at once.
template <typename Call>
std::string CallPure(Call call) {
  const Said first = call();
  // The requests are ordinary, so a failure here would end a run.
  if (first.broken) Fail("it failed: " + first.refusal);
  if (!first.refusal.empty() && !first.none) Warn("it refused: " + first.refusal);
  const auto again = [&] {
    const Said other = call();
    if (!(other == first))
      Fail("the same request gave " + SaidText(first) + ", then " + SaidText(other) + ": a reward keeps no state");
  };
  again();
  OnTwoThreads(again);
  return SaidText(first);
}

}  // namespace

void CheckReward(Session& session, const kgrpo_reward_interface& api, kgrpo_reward* reward) {
  const kgrpo_evaluation reference = CorrectKernel(1e-3), faster = CorrectKernel(5e-4), slower = CorrectKernel(4e-3),
                         fastest = CorrectKernel(2.5e-4);
  const kgrpo_evaluation wrong = WrongKernel("wrong"), broken = WrongKernel("not_compiled");
  const kgrpo_coder_answer written = AnswerWith(MadeUpFasterKernel()), unclear = AnswerWithout(KGRPO_CODER_UNCLEAR),
                           failed = AnswerWithout(KGRPO_CODER_FAILED);
  const kgrpo_evaluation* const history[] = {&slower, nullptr};
  const kgrpo_evaluation* const wrong_before[] = {&wrong};
  const kgrpo_evaluation* const fastest_before[] = {&fastest};

  struct Case {
    const char* name;
    const kgrpo_coder_answer* answer;
    const kgrpo_evaluation* candidate;
    bool unchanged = false;
    uint32_t round = 0;
    const kgrpo_evaluation* current = nullptr;  // null: the reference
    const kgrpo_evaluation* const* history = nullptr;
  };
  const Case cases[] = {
      {"a kernel of speedup 2", &written, &faster},
      {"a kernel of speedup 0.25", &written, &slower},
      {"a wrong kernel", &written, &wrong},
      {"a kernel that does not compile", &written, &broken},
      {"the kernel that it started from", &written, &reference, true},
      {"an unclear suggestion", &unclear, nullptr},
      {"a coder that failed", &failed, nullptr},
      {"a kernel of speedup 2 in the third round, after one of 0.25", &written, &faster, false, 2, &slower, history},
      {"a kernel of speedup 2 in the second round, after one of 4", &written, &faster, false, 1, &fastest,
       fastest_before},
      {"a kernel of speedup 2 made from a wrong one", &written, &faster, false, 1, &wrong, wrong_before}};
  for (const Case& made_up : cases) {
    kgrpo_reward_request request{};
    request.struct_size = sizeof(request);
    request.baseline = &reference;
    request.answer = made_up.answer;
    request.candidate = made_up.candidate;
    request.current = made_up.current != nullptr ? made_up.current : &reference;
    request.unchanged = made_up.unchanged ? 1 : 0;
    request.round = made_up.round;
    request.rounds = 3;
    request.suggestion = KGRPO_LITERAL("Use shared memory.");
    request.suggestion_tokens = 5;
    request.history = made_up.history;
    session.Check(std::string("reward: score of ") + made_up.name,
                  [&] { return CallPure([&] { return Score(api, reward, request); }); });
    if (api.idle == nullptr || made_up.answer == &failed) continue;
    session.Check(std::string("reward: idle reward instead of ") + made_up.name, [&] {
      kgrpo_reward_request nothing = request;
      nothing.answer = nullptr;
      nothing.candidate = nullptr;
      return CallPure([&] { return Idle(api, reward, nothing); });
    });
  }
}

}  // namespace kgrpo::validate
