// The fake coder: applies a technique by writing its name into the text; answers at once, or from threads after delays.
#include "fake_table.h"
#include "fakes.h"

#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

struct kgrpo_coder {
  std::mutex mutex;
  std::vector<std::thread> threads;
};

namespace kgrpo::fakes {
namespace {

// The first request of all is answered last, where the knobs say so; after ten seconds in any case, so that a test
// which waits for what depends on it fails.
void WaitWhileHeld(uint64_t seed) {
  if (knobs().first_answer_after == 0 || knobs().held_seed != seed) return;
  for (int i = 0; i < 10000 && knobs().coder_calls < knobs().first_answer_after; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  knobs().calls_at_first_answer = knobs().coder_calls.load();
}

void Answer(const kgrpo_coder_request& request, kgrpo_coder_done done) {
  const std::string suggestion = Copy(request.suggestion);
  const std::string code = Copy(request.code_b);
  Delay(code + suggestion);
  WaitWhileHeld(request.seed);
  if (knobs().coder_error) {
    done.done(done.context, nullptr, MakeError(KGRPO_ERROR_BUDGET, "the money is spent"));
    return;
  }
  CoderAnswer answer;
  answer.seconds = 0.001;
  answer.attempts = 1;
  answer.cost = knobs().coder_cost;
  answer.prompt_tokens = static_cast<uint64_t>(1000 * answer.cost);
  const int reuses_every = knobs().coder_reuses_every;
  answer.reused = reuses_every > 0 && Hash(suggestion, request.seed) % static_cast<uint64_t>(reuses_every) == 0;
  if (answer.reused) answer.cost = 0;
  knobs().coder_paid += answer.cost;
  const int fails_every = knobs().coder_fails_every;
  const bool known = std::find(kTechniques.begin(), kTechniques.end(), suggestion) != kTechniques.end();
  if (fails_every > 0 && Hash(code + suggestion, request.seed) % static_cast<uint64_t>(fails_every) == 0) {
    constexpr kgrpo_coder_outcome kFaults[] = {KGRPO_CODER_REFUSED, KGRPO_CODER_TRUNCATED, KGRPO_CODER_NO_CODE,
                                               KGRPO_CODER_FAILED};
    answer.outcome = knobs().policy_fails ? KGRPO_CODER_NO_KERNEL : kFaults[Hash(suggestion) % 4];
    answer.message = "the line was cut";
  } else if (!known) {
    answer.outcome = KGRPO_CODER_UNCLEAR;
    answer.message = "no such technique";
  } else if (code.find("// " + suggestion) != std::string::npos) {
    answer.outcome = KGRPO_CODER_NOT_APPLICABLE;
    answer.message = "it is there already";
  } else {
    answer.outcome = KGRPO_CODER_OK;
    answer.source = code + "// " + suggestion + "\n";
    answer.summary = suggestion + " applied";
    if (knobs().coder_doubts) answer.message = "// ...";
    if (knobs().coder_counts) answer.source += "/* answer " + std::to_string(knobs().coder_calls) + " */\n";
  }
  const kgrpo_coder_answer c = answer.ToC();
  done.done(done.context, &c, nullptr);
}

kgrpo_error* Implement(kgrpo_coder* self, const kgrpo_coder_request* request, kgrpo_coder_done done) {
  return Guard([&] {
    if (++knobs().coder_calls == 1) knobs().held_seed = request->seed;
    if (knobs().coder_calls == knobs().cancel_after_calls) knobs().cancelled = true;
    if (knobs().delay_seed == 0 && knobs().first_answer_after == 0)
      return Answer(*request, done);  // before Implement returned: that is allowed
    const std::lock_guard lock(self->mutex);
    self->threads.emplace_back([request, done] { Answer(*request, done); });
  });
}

}  // namespace

const kgrpo_coder_interface kCoder = {sizeof(kgrpo_coder_interface),
                                      Schema,
                                      [](const kgrpo_host*, kgrpo_str, kgrpo_coder** out) -> kgrpo_error* {
                                        return Guard([&] { *out = new kgrpo_coder; });
                                      },
                                      [](kgrpo_coder* self) {
                                        if (self == nullptr) return;
                                        for (std::thread& thread : self->threads) thread.join();
                                        delete self;
                                      },
                                      Implement,
                                      [](kgrpo_coder*) {},
                                      [](const kgrpo_coder*, kgrpo_text_sink sink) -> kgrpo_error* {
                                        return Guard([&] {
                                          for (const std::string& technique : kTechniques)
                                            sink.put(sink.context, Str(technique));
                                        });
                                      },
                                      nullptr,
                                      nullptr,
                                      [](const kgrpo_coder*, kgrpo_coder_spending* out) -> kgrpo_error* {
                                        out->cost = knobs().coder_accounts ? knobs().coder_paid : knobs().coder_spent;
                                        out->lost_cost = knobs().coder_lost;
                                        return nullptr;
                                      },
                                      /*get_extension=*/nullptr};

}  // namespace kgrpo::fakes
