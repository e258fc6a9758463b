// A reward that links kgrpo::support: it keeps each score in a database, under the digest of its inputs.
#include <kgrpo/reward.h>
#include <kgrpo/sdk/plugin.h>
#include <kgrpo/support/evaluation_json.h>
#include <kgrpo/support/number_text.h>
#include <kgrpo/support/sha256.h>
#include <kgrpo/support/sqlite.h>

#include <mutex>
#include <string>

struct kgrpo_reward {
  kgrpo_reward(const kgrpo_host* c, double failure_option) : host(c), failure(failure_option), database(":memory:") {
    database.Execute("CREATE TABLE scores(digest TEXT PRIMARY KEY, score REAL)");
  }
  kgrpo::Host host;
  double failure;
  std::mutex mutex;
  kgrpo::Database database;  // guarded
};

namespace {

kgrpo_str OptionsSchema() {
  return kgrpo::Str(R"({"type": "object", "additionalProperties": false, "properties": {
    "failure": {"type": "number", "default": -1, "description": "Paid for a kernel that is not correct."}}})");
}

kgrpo_error* Create(const kgrpo_host* host, kgrpo_str options, kgrpo_reward** out) {
  return kgrpo::Guard([&] {
    const auto json = nlohmann::json::parse(kgrpo::View(options));
    *out = new kgrpo_reward(host, json.at("failure").get<double>());
  });
}

void Destroy(kgrpo_reward* self) { delete self; }

kgrpo_error* Score(const kgrpo_reward* self, const kgrpo_reward_request* request, kgrpo_metric_sink parts,
                   double* score) {
  return kgrpo::Guard([&] {
    if (request->candidate == nullptr || request->candidate->correct == 0) {
      *score = self->failure;
      parts.add(parts.context, kgrpo::Measured("failure", *score));
      return;
    }
    const kgrpo::Evaluation candidate = kgrpo::Evaluation::FromC(*request->candidate);
    const std::string digest =
        kgrpo::Sha256OfParts({kgrpo::EvaluationToJson(candidate).dump(), std::to_string(request->baseline->seconds)});
    auto* own = const_cast<kgrpo_reward*>(self);
    const std::lock_guard lock(own->mutex);
    (kgrpo::Statement(own->database, "INSERT OR IGNORE INTO scores VALUES (?, ?)")
     << digest << request->baseline->seconds / candidate.seconds)
        .Run();
    kgrpo::Statement select(own->database, "SELECT score FROM scores WHERE digest = ?");
    select << digest;
    if (!select.Step()) throw kgrpo::Error(KGRPO_ERROR_INTERNAL, "a score that was kept is gone");
    *score = select.Real(0);
    parts.add(parts.context, kgrpo::Measured("kept", *score));
    own->host.Log(KGRPO_LOG_DEBUG, "a kernel of " + kgrpo::FormatSeconds(candidate.seconds));
  });
}

constexpr kgrpo_reward_interface kInterface = {
    sizeof(kgrpo_reward_interface), OptionsSchema, Create, Destroy, Score, nullptr, /*get_extension=*/nullptr};

}  // namespace

KGRPO_PLUGIN("reward_supported", "0.1.0", "uses the support library", {KGRPO_REWARD_INTERFACE, &kInterface});
