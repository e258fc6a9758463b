// Coder of instances.h.
#include <kgrpo/sdk/error.h>
#include <kgrpo/sdk/text.h>

#include <memory>
#include <utility>

#include "plugin/instances.h"
#include "plugin/sinks.h"

namespace kgrpo {

namespace {

struct PendingAnswer {
  std::shared_ptr<InFlight> in_flight;
  Coder::Done done;
};

// The callback that plugins call. It owns the PendingAnswer from then on.
void DeliverAnswer(void* context, const kgrpo_coder_answer* answer, kgrpo_error* error) {
  std::unique_ptr<PendingAnswer> pending(static_cast<PendingAnswer*>(context));
  std::optional<CoderAnswer> copied;
  std::exception_ptr failure;
  try {
    Check(error);
    if (answer == nullptr) throw Error(KGRPO_ERROR_INTERNAL, "the coder delivered neither an answer nor an error");
    copied = CoderAnswer::FromC(*answer);
  } catch (...) {
    failure = std::current_exception();
  }
  pending->done(std::move(copied), failure);
  pending->in_flight->Remove(1);
}

}  // namespace

Coder::Coder(const kgrpo_coder_interface* api, const kgrpo_host* host, const nlohmann::json& options)
    : Instance(api, host, options), in_flight_(std::make_shared<InFlight>()) {}

Coder::~Coder() {
  if (raw() == nullptr || !in_flight_->any()) return;  // moved from, or idle
  Cancel();
  in_flight_->WaitForNone();
}

void Coder::Implement(const kgrpo_coder_request& request, Done done) {
  auto pending = std::make_unique<PendingAnswer>(PendingAnswer{in_flight_, std::move(done)});
  in_flight_->Add(1);
  kgrpo_error* error = api()->implement(raw(), &request, {pending.get(), DeliverAnswer});
  if (error == nullptr) {
    pending.release();  // NOLINT(bugprone-unused-return-value): DeliverAnswer owns it, and may have freed it already
    return;
  }
  in_flight_->Remove(1);
  Check(error);
}

void Coder::Cancel() {
  api()->cancel(raw());
}

std::string Coder::Describe() const {
  if (api()->describe == nullptr) return "";
  return CollectText([&](kgrpo_text_sink sink) { return api()->describe(raw(), sink); });
}

std::string Coder::DescribeRequest(const kgrpo_coder_request& request) const {
  if (api()->describe_request == nullptr) return "";
  return CollectText([&](kgrpo_text_sink sink) { return api()->describe_request(raw(), &request, sink); });
}

std::vector<std::string> Coder::Suggestions() const {
  std::vector<std::string> suggestions;
  if (!has_suggestions()) return suggestions;
  Receiver receiver{Carrier(), [&](std::string_view text) { suggestions.emplace_back(text); }};
  receiver.carrier.Finish(api()->suggestions(raw(), TextSink(receiver)));
  return suggestions;
}

std::optional<CoderSpending> Coder::Spending() const {
  if (api()->spending == nullptr) return std::nullopt;
  kgrpo_coder_spending c{};
  c.struct_size = sizeof(c);
  Check(api()->spending(raw(), &c));
  return CoderSpending{c.cost, c.lost_cost};
}

}  // namespace kgrpo
