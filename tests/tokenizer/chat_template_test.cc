// ChatTemplate against transformers' apply_chat_template (tests/golden/tokenizer/make_chat_golden.py), the choice of a
// template, and what is written for other programs.
#include "policy_qwen/tokenizer/chat_template.h"

#include "policy_qwen/files.h"
#include "test.h"
#include "test_files.h"

namespace kgrpo::tokenizer {
namespace {

const Json kNone = Json::object();

std::string TemplateText(const std::string& name) { return policy::ReadFile(TemplatesFolder() / (name + ".jinja")); }

Json User(const std::string& text) { return {{"role", "user"}, {"content", text}}; }
Json Assistant(const std::string& text) { return {{"role", "assistant"}, {"content", text}}; }

const Json kAsk = Json::array({User("q")});

// A model folder with a template.
class ChatTemplateTest : public testing::Test {
 protected:
  std::string Render(const Json& messages, bool generate = true, const Json& arguments = kNone,
                     const std::string& choice = "auto", const Json& of_all = kNone) {
    return ChatTemplate::Load(folder_.path(), choice, of_all)->Render(messages, generate, arguments);
  }
  std::string ErrorOf(const Json& messages, const Json& arguments = kNone, const std::string& choice = "auto",
                      const Json& of_all = kNone) {
    return MessageOf([&] { Render(messages, true, arguments, choice, of_all); }, folder_.path());
  }
  void Write(const std::string& jinja) { folder_.Write("chat_template.jinja", jinja); }

  TemporaryFolder folder_;
};

TEST_F(ChatTemplateTest, RendersAsTransformersDoes) {
  const Json golden = Json::parse(policy::ReadFile(GoldenFolder() / "chat.json"));
  folder_.Write("tokenizer_config.json", R"({"bos_token": "<s>", "eos_token": {"content": "</s>"}})");
  std::map<std::string, size_t> compared;
  size_t refused = 0;
  for (const Json& test : golden.at("cases")) {
    const std::string name = test[0];
    if (compared[name]++ == 0) Write(TemplateText(name));
    const ChatTemplate chat = ChatTemplate::Load(folder_.path(), "auto", kNone).value();
    Json arguments = kNone;
    if (test[2].get<bool>()) arguments["tools"] = golden["tools"];
    if (!test[3].is_null()) arguments["enable_thinking"] = test[3];
    if (name == "own_turns") arguments["date_string"] = "03 Feb 2026";
    const Json& messages = golden["conversations"].at(test[1].get<size_t>());
    for (const bool generate : {true, false}) {
      Json expected = generate ? test[4] : test[5];
      std::string text;
      try {
        text = chat.Render(messages, generate, arguments);
      } catch (const Error& error) {
        // What the template would drop is refused, too.
        const bool drops = std::string(error.what()).find("would be dropped") != std::string::npos;
        EXPECT_TRUE(expected.is_null() || drops) << name << ", conversation " << test[1] << ": " << error.what();
        ++refused;
        continue;
      }
      if (expected.is_null()) {
        ADD_FAILURE() << name << ", conversation " << test[1] << " is rendered, which transformers refuses";
      } else if (expected.is_string()) {
        EXPECT_EQ(text, expected.get<std::string>()) << name << ", conversation " << test[1];
      } else {  // a number of characters of the text with the prompt
        const std::string full = test[4];
        EXPECT_EQ(text, full.substr(0, text.size())) << name << ", conversation " << test[1];
        EXPECT_EQ(jinja::Template("{{ t | length }}", "").Render({{"t", text}}, 0), expected.dump()) << name;
      }
    }
  }
  EXPECT_EQ(compared.size(), 11u);
  for (const auto& [name, count] : compared) EXPECT_GE(count, 40u) << name;
  EXPECT_LE(refused, 320u);
}

TEST_F(ChatTemplateTest, ChoosesAsTransformersDoes) {
  EXPECT_FALSE(ChatTemplate::Load(folder_.path(), "auto", kNone).has_value());
  const Json tools = {{"tools", Json::array({1})}}, chat = kAsk;
  folder_.Write("tokenizer_config.json", R"({"chat_template": "one {{ tools }}"})");
  EXPECT_EQ(Render(chat), "one None");
  folder_.Write(
      "tokenizer_config.json",
      Json({{"chat_template",
             {{{"name", "tool_use"}, {"template", "with {{ tools }}"}}, {{"name", "default"}, {"template", "plain"}}}}})
          .dump());
  EXPECT_EQ(Render(chat), "plain");
  EXPECT_EQ(Render(chat, true, tools), "with [1]");
  Write("file {{ tools }}");
  EXPECT_EQ(Render(chat, true, tools), "file [1]");
  std::filesystem::create_directory(folder_.path() / "additional_chat_templates");
  folder_.Write("additional_chat_templates/tool_use.jinja", "other {{ tools }}");
  EXPECT_EQ(Render(chat, true, tools), "other [1]");
  EXPECT_EQ(Render(chat), "file None");
  folder_.Write("additional_chat_templates/rag.jinja", "{% include 'never taken' %}");
  EXPECT_EQ(Render(chat), "file None");
  std::filesystem::remove(folder_.path() / "chat_template.jinja");
  EXPECT_EQ(ErrorOf(chat), "DIR: none of the chat templates is named default");
  std::filesystem::remove_all(folder_.path() / "additional_chat_templates");
  folder_.Write("tokenizer_config.json", R"({"chat_template": {"default": "by name", "tool_use": "{{ tools }}"}})");
  EXPECT_EQ(Render(chat), "by name");
  EXPECT_EQ(Render(chat, true, tools), "[1]");
}

TEST_F(ChatTemplateTest, TokensAndArgumentsAreVariables) {
  folder_.Write("tokenizer_config.json",
                R"({"bos_token": "<s>", "unk_token": {"content": "<unk>"}, "pad_token": null})");
  Write("{{ bos_token }}{{ unk_token }}{{ pad_token is defined }}{{ x }}");
  EXPECT_EQ(Render(kAsk, true, {{"x", 1}}), "<s><unk>False1");
  EXPECT_EQ(Render(kAsk, true, kNone, "auto", {{"x", 2}}), "<s><unk>False2");
  EXPECT_EQ(Render(kAsk, true, {{"x", 1}}, "auto", {{"x", 2}}), "<s><unk>False1");
  EXPECT_EQ(ErrorOf(kAsk, kNone, "auto", {{"y", 2}}), "chat_template_arguments: the chat template of DIR takes no 'y'");
}

TEST_F(ChatTemplateTest, BuiltInTemplates) {
  const Json messages = {
      User("q"), Assistant("<think>\nt\n</think>\n\na"), User("r"), {{"role", "tool"}, {"content", "1"}}};
  Write(TemplateText("chatml"));
  EXPECT_EQ(Render(messages, true, kNone, "chatml"), Render(messages));
  Write(TemplateText("qwen2"));
  EXPECT_EQ(Render(messages, true, kNone, "chatml", {{"default_system", "You are a helpful assistant."}}),
            Render(messages));
  Write(TemplateText("qwen3"));
  const Json golden = Json::parse(policy::ReadFile(GoldenFolder() / "chat.json"));
  size_t compared = 0;
  for (const Json& chat : golden["conversations"]) {
    if (chat.dump().find("tool_calls") != std::string::npos || chat[0]["content"].is_array()) continue;
    for (const Json& thinking : {Json(nullptr), Json(true), Json(false)}) {
      const Json arguments = thinking.is_null() ? kNone : Json({{"enable_thinking", thinking}});
      EXPECT_EQ(Render(chat, true, arguments, "qwen3"), Render(chat, true, arguments)) << chat;
      ++compared;
    }
  }
  EXPECT_GE(compared, 90u);
}

TEST_F(ChatTemplateTest, AFileOfTheUsers) {
  folder_.Write("mine.jinja", "mine: {{ messages[0].content }}");
  EXPECT_EQ(Render(kAsk, true, kNone, (folder_.path() / "mine.jinja").string()), "mine: q");
  EXPECT_EQ(ErrorOf(kAsk, kNone, "llama3"), "llama3: cannot open: No such file or directory");
}

TEST_F(ChatTemplateTest, WhatIsNotKnownIsRefusedAtItsLine) {
  Write("{{ messages }}\n{% include 'other' %}");
  EXPECT_EQ(ErrorOf(kAsk), "DIR/chat_template.jinja:2: the statement 'include' is not known here");
  std::filesystem::remove(folder_.path() / "chat_template.jinja");
  folder_.Write("tokenizer_config.json", R"({"chat_template": "a\nb\n{{ x | nope }}"})");
  EXPECT_EQ(ErrorOf(kAsk), "DIR/tokenizer_config.json: chat_template:3: the filter 'nope' is not known here");
}

TEST_F(ChatTemplateTest, NothingIsDropped) {
  Write(TemplateText("chatml"));
  EXPECT_EQ(ErrorOf(Json::array()), "a conversation needs at least one message");
  const Json developer = {User("q"), {{"role", "developer"}, {"content", "be brief, developer"}}};
  EXPECT_THAT(Render(developer), testing::HasSubstr("<|im_start|>developer\nbe brief"));
  EXPECT_EQ(ErrorOf(Json::array({{{"role", "assistant"}, {"content", ""}, {"tool_calls", Json::array({1})}}})),
            "messages[0].tool_calls: the chat template does not read it, so it would be dropped");
  EXPECT_EQ(ErrorOf(kAsk, {{"tools", Json::array({1})}}),
            "the chat template does not read 'tools', which would be dropped");
  Json silent = User("q");
  silent["name"] = nullptr;
  EXPECT_EQ(ErrorOf(Json::array({silent})), "(no error)");
  Write(
      "{% for m in messages %}{{ m.role }}{{ m.reasoning_content }}{% if m.role == 'ipython' %}!{% endif %}{% endfor "
      "%}");
  EXPECT_EQ(Render(Json::array({{{"role", "other"}, {"content", "q"}}})), "other");
  EXPECT_EQ(Render(Json::array({{{"role", "ipython"}, {"content", "q"}, {"thinking", "t"}}})), "ipythont!");
}

TEST_F(ChatTemplateTest, ARoleThatNothingReadsIsRefused) {
  Write("{% for m in messages %}{{ m.content if m.role != 'assistant' }}{% endfor %}");
  EXPECT_EQ(
      ErrorOf({User("q"), {{"role", "developer"}, {"content", "a developer"}}}),
      "messages[1].role is \"developer\": must be system, user, assistant or tool, or one that the template reads");
}

TEST_F(ChatTemplateTest, FilesRenderAlike) {
  const Json messages = kAsk, arguments = {{"default_system", "it's\n\"so\""}, {"enable_thinking", false}};
  const ChatTemplate chosen = ChatTemplate::Load(folder_.path(), "qwen3", arguments).value();
  const std::string text = chosen.Render(messages, true, kNone);
  EXPECT_EQ(text,
            "<|im_start|>system\nit's\n\"so\"<|im_end|>\n<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\n<think>"
            "\n\n</think>\n\n");
  ASSERT_EQ(chosen.Files().size(), 1u);
  Write(chosen.Files().at("chat_template.jinja"));
  const ChatTemplate saved = ChatTemplate::Load(folder_.path(), "auto", kNone).value();
  EXPECT_EQ(saved.Render(messages, true, kNone), text);
  EXPECT_THAT(saved.Render(messages, true, {{"enable_thinking", true}}), testing::EndsWith("assistant\n"));
  EXPECT_THAT(saved.Files(), IsEmpty());
  const ChatTemplate again = ChatTemplate::Load(folder_.path(), "auto", arguments).value();
  EXPECT_EQ(again.Files(), chosen.Files());
  // A template that begins with white space keeps it.
  for (const char* jinja : {"\n\n x", "  {% if true %}\nx{% endif %}", "x"}) {
    Write(std::string(jinja) + "{{ k }}");
    const ChatTemplate own = ChatTemplate::Load(folder_.path(), "auto", {{"k", 1}}).value();
    const std::string expected = own.Render(messages, true, kNone);
    Write(own.Files().at("chat_template.jinja"));
    EXPECT_EQ(Render(messages), expected) << jinja;
  }
}

// As Gemma's.
TEST_F(ChatTemplateTest, ATemplateWithoutASystemRoleNamesTheOption) {
  Write("{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}x");
  const Json messages = {{{"role", "system"}, {"content", "a"}}, {{"role", "user"}, {"content", "b"}}};
  EXPECT_THAT(ErrorOf(messages), AllOf(HasSubstr("System role not supported"), HasSubstr("prompt.system_role")));
}

TEST_F(ChatTemplateTest, MarkersOfAnAnsweredQuestion) {
  EXPECT_THAT(ChatTemplate::Load(folder_.path(), "chatml", kNone)->Markers(),
              ElementsAre("<|im_start|>", "<|im_end|>"));
  Write("{% for m in messages %}[INST]{{ m.content }}<|a b|><|end|><|end|>{% endfor %}<|x");
  EXPECT_THAT(ChatTemplate::Load(folder_.path(), "auto", kNone)->Markers(), ElementsAre("<|end|>"));
  Write("{{ raise_exception('never') }}");
  EXPECT_THAT(ChatTemplate::Load(folder_.path(), "auto", kNone)->Markers(), IsEmpty());
}

}  // namespace
}  // namespace kgrpo::tokenizer
