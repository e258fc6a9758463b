// coder_gpt4o/options.h: the values read from options, and mistakes refused before a run starts, without quoting a key.
#include "coder_gpt4o/options.h"

#include "asked.h"
#include "config/schema.h"
#include "test.h"

namespace kgrpo::coder_gpt4o {
namespace {

std::string Refusal(const json& changes, const char* key = "secret-key") {
  json options = DefaultOptions();
  for (const auto& [name, value] : changes.items()) {
    if (name == "prompt")
      options[name].update(value);
    else
      options[name] = value;
  }
  try {
    ReadOptions(options.dump(), [key](const std::string&) { return key; });
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), KGRPO_ERROR_INVALID);
    return error.what();
  }
  return "";
}

TEST(OptionsTest, TheSchemaIsSound) {
  EXPECT_THAT(FindSchemaMistakes(nlohmann::ordered_json::parse(OptionsSchema())), IsEmpty());
}

// The client does not check ranges again.
TEST(OptionsTest, TheSchemaRefusesNumbersOutOfRange) {
  const auto schema = nlohmann::ordered_json::parse(OptionsSchema());
  const auto takes = [&](const char* name, const json& value) {
    json options = DefaultOptions();
    options[name] = value;
    return Satisfies(options, schema);
  };
  for (const char* name : {"total_timeout_seconds", "max_concurrency", "max_attempts"}) {
    for (const double value : {0.0, -1.0, 1e300}) EXPECT_FALSE(takes(name, value)) << name << value;
    EXPECT_TRUE(takes(name, 1)) << name;
  }
  EXPECT_FALSE(takes("max_outage_seconds", -1));
  EXPECT_LE(schema["properties"].size(), 25u) << "each option is a decision of the user";
}

TEST(OptionsTest, TheDefaults) {
  const CoderOptions options = OptionsWith(json::object());
  EXPECT_EQ(options.model, "gpt-4o");
  EXPECT_EQ(options.temperature, 0.0);
  EXPECT_EQ(options.max_tokens, 4096u);
  EXPECT_EQ(options.max_tokens_field, "max_tokens");
  EXPECT_EQ(options.prompt.system_role, "system");
  EXPECT_FALSE(options.seed || options.seed_of_sample || options.max_cost || options.price_known);
  EXPECT_EQ(options.mode, Mode::kLive);
  EXPECT_EQ(options.client.api_key, "secret-key");
  // The client's defaults are those of the schema.
  const ClientOptions defaults;
  EXPECT_EQ(options.client.base_url, defaults.base_url);
  EXPECT_EQ(options.client.max_concurrency, defaults.max_concurrency);
  EXPECT_EQ(options.client.response_timeout_seconds, defaults.response_timeout_seconds);
  EXPECT_EQ(options.client.total_timeout_seconds, defaults.total_timeout_seconds);
  EXPECT_EQ(options.client.max_attempts, defaults.max_attempts);
  EXPECT_EQ(options.client.max_outage_seconds, defaults.max_outage_seconds);
  EXPECT_EQ(options.client.max_first_outage_seconds, defaults.max_first_outage_seconds);
  EXPECT_EQ(OptionsWith({{"max_outage_seconds", 5}}).client.max_first_outage_seconds, 5);
}

TEST(OptionsTest, ReasoningModelsGetTheirOwnKey) {
  for (const char* model : {"o1", "o3-mini", "openai/o4-mini", "gpt-5", "gpt-5-nano"})
    EXPECT_EQ(OptionsWith({{"model", model}}).max_tokens_field, "max_completion_tokens") << model;
  for (const char* model : {"gpt-4o", "olmo", "llama"})
    EXPECT_EQ(OptionsWith({{"model", model}}).max_tokens_field, "max_tokens") << model;
  const CoderOptions named = OptionsWith({{"extra_body", {{"max_completion_tokens", 9000}}}});
  EXPECT_EQ(named.max_tokens_field, "max_completion_tokens");
  EXPECT_EQ(named.max_tokens, 9000u);
  EXPECT_THAT(Refusal({{"extra_body", {{"max_completion_tokens", "many"}}}}), HasSubstr("max_completion_tokens"));
}

TEST(OptionsTest, Headers) {
  const CoderOptions options = OptionsWith(
      {{"extra_headers", {{"x-portkey-provider", "openai"}, {"x-portkey-api-key", {{"env", "PORTKEY_API_KEY"}}}}},
       {"api_key_header", "api-key"}});
  using Pair = std::pair<std::string, std::string>;
  EXPECT_THAT(options.client.headers,
              testing::ElementsAre(Pair("x-portkey-api-key", "secret-key"), Pair("x-portkey-provider", "openai")));
  EXPECT_THAT(options.client.secrets, testing::ElementsAre("secret-key"));
  EXPECT_EQ(options.client.api_key_header, "api-key");
  for (const json& value : {json(7), json{{"env", 7}}, json{{"env", "A"}, {"more", "b"}}})
    EXPECT_THAT(Refusal({{"extra_headers", {{"X-Title", value}}}}), HasSubstr("X-Title: expected text")) << value;
  EXPECT_THAT(Refusal({{"extra_headers", {{"X-A", {{"env", "sk-hush"}}}}}}),
              AllOf(HasSubstr("extra_headers.X-A: expected the name"), Not(HasSubstr("hush"))));
  EXPECT_THAT(Refusal({{"extra_headers", {{"X-A", {{"env", "OTHER"}}}}}, {"api_key_env", nullptr}}, nullptr),
              HasSubstr("extra_headers.X-A: the environment variable OTHER is not set"));
}

TEST(OptionsTest, AKeyOfACommand) {
  const json command = {{"api_key_command", "gcloud auth print-access-token"}};
  EXPECT_EQ(Refusal(command, nullptr), "");
  EXPECT_EQ(OptionsWith(command).client.api_key, "");
  EXPECT_EQ(OptionsWith(command).client.api_key_command, "gcloud auth print-access-token");
}

TEST(OptionsTest, AnUnsetVariable) {
  EXPECT_THAT(Refusal({}, nullptr), HasSubstr("OPENAI_API_KEY is not set"));
  EXPECT_THAT(Refusal({}, ""), HasSubstr("OPENAI_API_KEY is empty"));
  EXPECT_THAT(Refusal({}, "two words"), AllOf(HasSubstr("blanks"), Not(HasSubstr("two"))));
  EXPECT_EQ(Refusal({{"api_key_env", nullptr}}, nullptr), "");
  EXPECT_EQ(OptionsWith({{"api_key_env", nullptr}}).client.api_key, "");
}

TEST(OptionsTest, WhatComesAlongWithAKeyIsRefusedAndNotRepeated) {
  for (const char* value : {"Bearer sk-abcdefgh", "bearer: sk-abcdefgh", "Authorization: Bearer sk-abcdefgh",
                            "OPENAI_API_KEY=sk-abcdefgh", "\"sk-abcdefgh\"", "'sk-abcdefgh'", "sk-abcdefgh\"",
                            "sk\xe2\x80\x93"
                            "abcdefgh",
                            "\xe2\x80\x9csk-abcdefgh", "two abcdefgh", "sk-...", "<your key>", "sk-abcdefgh****"})
    EXPECT_THAT(Refusal({}, value), AllOf(HasSubstr("the value of OPENAI_API_KEY "), Not(HasSubstr("abcd")))) << value;
  for (const char* value :
       {"sk-abcdefgh", "sk-proj-Ab_9", "bearerabc", "eyJhbGciOi.eyJz.SflK-w", "a+b/c==", "sk-abcdefgh\n"})
    EXPECT_EQ(Refusal({}, value), "") << value;
}

TEST(OptionsTest, AKeyInAFileIsRefusedAndNotRepeated) {
  for (const char* key : {"sk-proj-abc123", "a1b2c3d4e5f6a7b8", "sk_live_abc", "4F5"}) {
    EXPECT_THAT(Refusal({{"api_key_env", key}}),
                AllOf(HasSubstr("api_key_env"), HasSubstr("revoked"), Not(HasSubstr(key))));
  }
  for (const char* header : {"Authorization", "api-key", "X-API-Key", "Cookie", "X-Auth-Token", "X-Auth", "Auth"}) {
    EXPECT_THAT(Refusal({{"extra_headers", {{header, "hush"}}}}), AllOf(HasSubstr(header), Not(HasSubstr("hush"))))
        << header;
  }
  EXPECT_THAT(Refusal({{"extra_body", {{"api_key", "hush"}}}}), AllOf(HasSubstr("api_key"), Not(HasSubstr("hush"))));
  for (const char* header : {"X-Author", "x-portkey-provider", "X-Monkeys"})
    EXPECT_EQ(Refusal({{"extra_headers", {{header, "me"}}}}), "") << header;
  EXPECT_EQ(Refusal({{"extra_body", {{"max_output_tokens", 5}, {"top_p", 0.5}}}}), "");
  // At any depth.
  EXPECT_THAT(Refusal({{"extra_body", json::parse(R"({"tools": [{"server": {"access_token": "hush"}}]})")}}),
              AllOf(HasSubstr("tools.server.access_token"), Not(HasSubstr("hush"))));
  EXPECT_THAT(Refusal({{"extra_body", json::parse(R"({"secrets": [{"of": "hush"}]})")}}),
              AllOf(HasSubstr("secrets"), Not(HasSubstr("hush"))));
  EXPECT_EQ(Refusal({{"extra_body", json::parse(R"({"stop_token_ids": [1, 2], "kwargs": {"thinking": "off"}})")}}), "");
}

TEST(OptionsTest, ReasoningModelsMayThinkBeforeTheyWrite) {
  EXPECT_EQ(OptionsWith({{"model", "gpt-4o"}}).client.response_timeout_seconds, 120);
  EXPECT_EQ(OptionsWith({{"model", "o3"}}).client.response_timeout_seconds, 600);
  EXPECT_EQ(OptionsWith({{"model", "gpt-5"}, {"total_timeout_seconds", 1800}}).client.response_timeout_seconds, 1800);
}

TEST(OptionsTest, WhatThePluginSendsIsNotForExtraBody) {
  for (const char* key : {"model", "messages", "temperature", "max_tokens", "stream", "n", "seed"})
    EXPECT_THAT(Refusal({{"extra_body", {{key, 1}}}}), HasSubstr(key)) << key;
}

TEST(OptionsTest, Money) {
  EXPECT_THAT(Refusal({{"max_cost", 5}}), AllOf(HasSubstr("max_cost"), HasSubstr("gpt-4o: {prompt:")));
  EXPECT_THAT(Refusal({{"max_cost", 5}, {"prices", {{"other", {{"prompt", 1}, {"completion", 2}}}}}}),
              HasSubstr("gpt-4o"));
  EXPECT_THAT(
      Refusal({{"max_cost", 0.04}, {"prices", {{"gpt-4o", {{"prompt", 2.5}, {"completion", 10}}}}}}),
      HasSubstr("options.max_cost: it has room for no call: an answer of max_tokens (4096) alone can cost $0.04096; "));
  const CoderOptions options =
      OptionsWith({{"max_cost", 5}, {"prices", {{"gpt-4o", {{"prompt", 2.5}, {"completion", 10}}}}}});
  EXPECT_EQ(options.max_cost, 5.0);
  EXPECT_DOUBLE_EQ(options.price.Of(1000, 200), 0.0045);
  EXPECT_DOUBLE_EQ(options.price.Of(1000, 200, 600), 0.0045);
  const json cached = {{"gpt-4o", {{"prompt", 2.5}, {"completion", 10}, {"cached_prompt", 1.25}}}};
  EXPECT_DOUBLE_EQ(OptionsWith({{"prices", cached}}).price.Of(1000, 200, 600), 0.00375);
}

TEST(OptionsTest, PricesOfFewerTokensThanAMillion) {
  const auto warning = [](double completion, json more = json::object()) {
    more["prices"] = {{"gpt-4o", {{"prompt", 0.001}, {"completion", completion}}}};
    return PriceWarning(OptionsWith(more));
  };
  EXPECT_THAT(warning(0.01), HasSubstr("$0.00004"));
  EXPECT_THAT(warning(1e-5), HasSubstr("$0.00000004"));
  EXPECT_THAT(warning(0, {{"max_cost", 5}}), HasSubstr("max_cost has no effect"));
  for (const double fine : {0.0, 0.011, 10.0}) EXPECT_EQ(warning(fine), "") << fine;
  EXPECT_EQ(PriceWarning(OptionsWith(json::object())), "");  // that none is known is said elsewhere
}

TEST(OptionsTest, Modes) {
  EXPECT_THAT(Refusal({{"mode", "replay"}}), HasSubstr("mode replay needs it"));
  EXPECT_THAT(Refusal({{"mode", "replay"}, {"recording", "no/such/run"}}), HasSubstr("no recording at no/such/run"));
  EXPECT_THAT(Refusal({{"recording", "runs/one"}}), HasSubstr("mode live reads none"));
  // A run's recording is its own.
  for (const char* run : {"runs/one/artifacts/coder/exchanges.sqlite", "runs/one/artifacts/coder/../coder/x.sqlite"}) {
    EXPECT_THAT(Refusal({{"mode", "cache"}, {"recording", run}}), HasSubstr("is the recording of a run")) << run;
  }
  const std::filesystem::path run = TestFolder("options_run");
  EXPECT_THAT(Refusal({{"mode", "cache"}, {"recording", run.string()}}), HasSubstr("is the recording of a run"));
  EXPECT_EQ(Refusal({{"mode", "cache"}, {"recording", "cache.sqlite"}}), "");
  // Replaying needs no key.
  const std::filesystem::path folder = TestFolder("options");
  { const Recording recording(folder / kRecordingName, Recording::Access::kReadWrite); }
  EXPECT_EQ(Refusal({{"mode", "replay"}, {"recording", folder.string()}}, nullptr), "");
  EXPECT_EQ(Refusal({{"mode", "replay"}, {"recording", folder.string()}, {"max_cost", 5}}), "");  // nothing is paid
}

TEST(OptionsTest, Templates) {
  EXPECT_THAT(Refusal({{"prompt", {{"system", nullptr}, {"user", "{{sugestion}}"}}}}),
              HasSubstr("options.prompt.user: 1:1: unknown variable"));
  EXPECT_THAT(Refusal({{"prompt", {{"system", nullptr}, {"user", ""}}}}), HasSubstr("empty"));
  const auto user = [](const char* text, const json& system = nullptr) {
    return Refusal({{"prompt", {{"system", system}, {"user", text}}}});
  };
  EXPECT_THAT(user("Do it."), AllOf(HasSubstr("mentions {{code_b}} nowhere"), HasSubstr("mentions {{suggestion}}")));
  EXPECT_THAT(user("{{code_b}} {{last_suggestion}}"),
              AllOf(HasSubstr("mentions {{suggestion}}"), Not(HasSubstr("{{code_b}}"))));
  EXPECT_EQ(user("{{{ code_b }}} {{&suggestion}}"), "");
  EXPECT_EQ(user("{{suggestion}}", "{{code_b}}"), "");
}

TEST(OptionsTest, WhatIsNotOfTheSchema) {
  for (const char* text : {"", "[]", "{}", "{\"model\": 7}", "null"}) {
    EXPECT_THROW(ReadOptions(text, [](const std::string&) { return "k"; }), Error) << text;
  }
}

}  // namespace
}  // namespace kgrpo::coder_gpt4o
