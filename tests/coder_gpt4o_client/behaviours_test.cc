// What services and servers really send (behaviours.json, one row each), through the whole coder: outcome, failure,
// tokens, cost, attempts. The service has answered once before, so a failure is not a wrong base_url.
//
// Keys of a row: `of`, its name; `status`, `headers`, and `body` or `stream` (a list of events), `gzip` compressed: the
// response. Expected: `outcome` of the coder, or "fatal" for an error that ends the run; `failure`, the client's word;
// `attempts` (1), of at most 2; `tokens`, prompt and completion; `cost` in dollars; `lost` attempts; `says`, a part of
// the message; `text`, the whole answer. $KERNEL stands for an answer with a kernel.
#include <zlib.h>

#include "../coder_gpt4o/asked.h"
#include "server.h"
#include "test.h"

namespace kgrpo::coder_gpt4o {
namespace {

std::string WithKernel(std::string text, const std::string& kernel) {
  constexpr std::string_view kPlace = "$KERNEL";
  for (size_t at = text.find(kPlace); at != std::string::npos; at = text.find(kPlace, at + kernel.size()))
    text.replace(at, kPlace.size(), kernel);
  return text;
}

// The kernel as it stands within a JSON string.
std::string Dumped(const json& value) {
  const std::string quoted = json(Fenced(kKernelC)).dump();
  return WithKernel(value.dump(), quoted.substr(1, quoted.size() - 2));
}

std::string Gzipped(const std::string& text) {
  z_stream stream = {};
  deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string packed(deflateBound(&stream, text.size()), '\0');
  std::string plain = text;
  stream.next_in = reinterpret_cast<Bytef*>(plain.data());
  stream.avail_in = static_cast<uInt>(plain.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

void Respond(const json& row, httplib::Response& response) {
  std::string body;
  if (row.contains("stream")) {
    for (const json& event : row["stream"])
      body += "data: " + (event.is_string() ? event.get<std::string>() : Dumped(event)) + "\n\n";
  } else {
    body = row["body"].is_string() ? row["body"].get<std::string>() : Dumped(row["body"]);
  }
  if (row.value("gzip", false)) {
    body = Gzipped(body);
    response.set_header("Content-Encoding", "gzip");
  }
  const json headers = row.value("headers", json::object());
  for (const auto& [name, value] : headers.items()) response.set_header(name, value.get<std::string>());
  response.status = row.value("status", 200);
  response.set_content(body, row.contains("stream") ? "text/event-stream" : "application/json");
}

std::vector<json> Rows() {
  std::ifstream file(std::string(KGRPO_SOURCE_DIR) + "/tests/coder_gpt4o_client/behaviours.json");
  return json::parse(file).get<std::vector<json>>();
}

std::string NameOf(const Answered& answered) {
  constexpr const char* kNames[] = {"ok", "not_applicable", "unclear", "refused", "truncated", "no_code", "failed"};
  if (answered.error) return "fatal";
  return answered.outcome < std::size(kNames) ? kNames[answered.outcome] : "?";
}

class Behaviours : public testing::TestWithParam<json> {};

TEST_P(Behaviours, HasItsOutcome) {
  const json& row = GetParam();
  const Server server([&](const auto& request, auto& response, int) {
    if (request.body.find("are you there") != std::string::npos) return AnswerRight(request, response, "yes");
    Respond(row, response);
  });
  ClientOptions options = QuickOptions(server.Url());
  options.max_attempts = 2;
  Completion completion;
  std::promise<void> done;
  Answered answered;
  Asked asked;
  {
    CompletionClient client(options);
    EXPECT_EQ(Ask(client, "are you there").text, "yes");
    Coder coder(OptionsWith({{"base_url", server.Url()},
                             {"prices", {{"gpt-4o", {{"prompt", 2.5}, {"completion", 10}, {"cached_prompt", 1.25}}}}}}),
                {[&](CompletionRequest request, std::function<void(Completion)> answer) {
                   client.Send(std::move(request), [&, answer = std::move(answer)](Completion received) {
                     completion = received;
                     answer(std::move(received));
                     done.set_value();
                   });
                 },
                 {},
                 server.Url()},
                {}, {});
    coder.Implement(asked.request(), answered.done());
    done.get_future().wait();
  }
  const std::string message = answered.error ? answered.error->what() : answered.message;
  EXPECT_EQ(NameOf(answered), row["outcome"]) << message;
  EXPECT_EQ(completion.failure, row.value("failure", "")) << message;
  EXPECT_EQ(completion.attempts, row.value("attempts", 1U)) << message;
  EXPECT_EQ(completion.lost.attempts, row.value("lost", 0U)) << message;
  EXPECT_THAT(message, HasSubstr(row.value("says", "")));
  if (row.contains("text")) {
    EXPECT_EQ(answered.text, WithKernel(row["text"], Fenced(kKernelC)));
  }
  if (row.contains("cost")) {
    EXPECT_NEAR(answered.cost, row["cost"], 1e-12);
  }
  if (!row.contains("tokens")) return;
  if (!row["tokens"][0].is_null()) {
    EXPECT_EQ(answered.prompt_tokens, row["tokens"][0]);
  }
  EXPECT_EQ(answered.completion_tokens, row["tokens"][1]);
}

INSTANTIATE_TEST_SUITE_P(All, Behaviours, testing::ValuesIn(Rows()), [](const auto& info) {
  std::string name = info.param["of"];
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return name + "_" + std::to_string(info.index);
});

}  // namespace
}  // namespace kgrpo::coder_gpt4o
