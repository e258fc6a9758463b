// Coder of instances.h.
#include <kgrpo/sdk/error.h>
#include <kgrpo/sdk/text.h>

#include <utility>

#include "plugin/instances.h"
#include "plugin/sinks.h"

namespace kgrpo {

namespace {

CoderAnswer TakeAnswer(const kgrpo_coder_answer* answer, kgrpo_error* error) {
  Check(error);
  if (answer == nullptr) throw Error(KGRPO_ERROR_INTERNAL, "the coder delivered neither an answer nor an error");
  return CoderAnswer::FromC(*answer);
}

}  // namespace

Coder::Coder(const kgrpo_coder_interface* api, const kgrpo_host* host, const nlohmann::json& options)
    : Instance(api, host, options), in_flight_(InFlight<kgrpo_coder_answer>::Make(plugin_name())) {}

Coder::~Coder() {
  if (raw() == nullptr || !in_flight_->any()) return;  // moved from, or idle
  Cancel();
  in_flight_->WaitForNone();
}

void Coder::Implement(const kgrpo_coder_request& request, Done done) {
  in_flight_->ThrowFault();
  void* context = in_flight_->Add([done = std::move(done)](const kgrpo_coder_answer* answer, kgrpo_error* error) {
    std::optional<CoderAnswer> copied;
    std::exception_ptr failure;
    try {
      copied = TakeAnswer(answer, error);
    } catch (...) {
      failure = std::current_exception();
    }
    done(std::move(copied), failure);
  });
  const PluginCall call = Calling("implement");
  kgrpo_error* error = api()->implement(raw(), &request, {context, InFlight<kgrpo_coder_answer>::Deliver});
  if (error == nullptr) return;
  if (in_flight_->Drop(context)) return Check(error);
  error->release(error);  // the handler has run and reported the request's end
}

void Coder::Cancel() {
  const PluginCall call = Calling("cancel");
  api()->cancel(raw());
}

std::string Coder::Describe() const {
  if (api()->describe == nullptr) return "";
  const PluginCall call = Calling("describe");
  return CollectText([&](kgrpo_text_sink sink) { return api()->describe(raw(), sink); });
}

std::string Coder::DescribeRequest(const kgrpo_coder_request& request) const {
  if (api()->describe_request == nullptr) return "";
  const PluginCall call = Calling("describe_request");
  return CollectText([&](kgrpo_text_sink sink) { return api()->describe_request(raw(), &request, sink); });
}

std::vector<std::string> Coder::Suggestions() const {
  std::vector<std::string> suggestions;
  if (!has_suggestions()) return suggestions;
  const PluginCall call = Calling("suggestions");
  Receiver receiver{Carrier(), [&](kgrpo_str text) { suggestions.emplace_back(View(text)); }};
  receiver.carrier.Finish(api()->suggestions(raw(), SinkOf(&kgrpo_text_sink::put, receiver)));
  return suggestions;
}

std::optional<CoderSpending> Coder::Spending() const {
  if (api()->spending == nullptr) return std::nullopt;
  kgrpo_coder_spending c{};
  c.struct_size = sizeof(c);
  const PluginCall call = Calling("spending");
  Check(api()->spending(raw(), &c));
  return CoderSpending{c.cost, c.lost_cost};
}

}  // namespace kgrpo
