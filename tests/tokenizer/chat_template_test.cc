// ChatTemplate against transformers' apply_chat_template (tests/golden/tokenizer/make_chat_golden.py), and
// refusals.
#include "policy_qwen/tokenizer/chat_template.h"

#include <gmock/gmock.h>

#include <fstream>
#include <map>

#include "policy_qwen/tokenizer/json_reader.h"
#include "test_files.h"

namespace kgrpo::tokenizer {
namespace {

using nlohmann::json;
using testing::HasSubstr;

std::string TemplateText(const std::string& name) {
  return ReadTextFile(GoldenFolder() / "templates" / (name + ".jinja"));
}

std::string Replace(std::string text, std::string_view what, std::string_view by) {
  const size_t first = text.find(what);
  EXPECT_NE(first, std::string::npos) << what;
  for (size_t at = first; at != std::string::npos; at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
  return text;
}

std::vector<Message> MessagesOf(const json& conversation) {
  std::vector<Message> messages;
  for (const json& message : conversation) {
    Message& made = messages.emplace_back(Message{message.at("role"), message.at("content"), std::nullopt});
    if (message.contains("reasoning_content")) made.reasoning_content = message["reasoning_content"].get<std::string>();
  }
  return messages;
}

TEST(ChatTemplateTest, RendersAsTransformersDoes) {
  const json golden = ReadJsonFile(GoldenFolder() / "chat.json");
  std::map<std::string, ChatTemplate> templates;
  size_t compared = 0;
  for (const json& test : golden.at("cases")) {
    const std::string name = test.at("template");
    if (!templates.contains(name)) templates.emplace(name, ChatTemplate::Recognise(TemplateText(name), name));
    const std::vector<Message> messages =
        MessagesOf(golden.at("conversations").at(test.at("conversation").get<size_t>()));
    std::optional<bool> thinking;
    if (!test.at("enable_thinking").is_null()) thinking = test["enable_thinking"].get<bool>();
    EXPECT_EQ(templates.at(name).Render(messages, test.at("add_generation_prompt").get<bool>(), thinking),
              test.at("text").get<std::string>())
        << name << ", conversation " << test.at("conversation");
    ++compared;
  }
  EXPECT_GE(compared, 1000u);
  EXPECT_EQ(templates.size(), 9u);
}

TEST(ChatTemplateTest, FindsTheModelsOwnDefaultSystemPrompt) {
  const auto prompt = [](const std::string& name) {
    return ChatTemplate::Recognise(TemplateText(name), name).default_system();
  };
  EXPECT_EQ(prompt("qwen2"), "You are a helpful assistant.");
  EXPECT_EQ(prompt("qwen2_5"), "You are Qwen, created by Alibaba Cloud. You are a helpful assistant.");
  EXPECT_EQ(prompt("smollm2"), "You are a helpful AI assistant named SmolLM, trained by Hugging Face");
  EXPECT_EQ(prompt("qwen3"), std::nullopt);
  EXPECT_EQ(prompt("chatml"), std::nullopt);
}

TEST(ChatTemplateTest, KnowsTheThinkingSwitch) {
  for (const char* name : {"qwen3", "qwen3_first"})
    EXPECT_TRUE(ChatTemplate::Recognise(TemplateText(name), name).thinking()) << name;
  for (const char* name : {"qwen2", "qwen2_5", "qwen3_instruct_2507"}) {
    EXPECT_FALSE(ChatTemplate::Recognise(TemplateText(name), name).thinking()) << name;
  }
}

// Changes that a fine-tune makes without changing the format.
TEST(ChatTemplateTest, RecognisesOtherSpellings) {
  const std::vector<Message> messages = {{"user", "Hi", {}}};
  const std::string qwen = TemplateText("qwen2_5");
  const std::string expected = ChatTemplate::Recognise(qwen, "qwen").Render(messages, true);
  for (const std::string& text :
       {Replace(qwen, "message.role", "message['role']"), Replace(qwen, "messages[0]['role']", "messages[0].role"),
        Replace(qwen, "{%- ", "{%-"), Replace(qwen, "    ", "\t"),
        Replace(qwen, "'<|im_start|>assistant\\n'", "\"<|im_start|>\" + \"assistant\\n\""),
        Replace(qwen, "{%- if add_generation_prompt", "{#- a remark: }} %} -#}\n{%- if (add_generation_prompt)")}) {
    EXPECT_EQ(ChatTemplate::Recognise(text, "qwen").Render(messages, true), expected);
  }
  const std::string pirate =
      Replace(qwen, "You are Qwen, created by Alibaba Cloud. You are a helpful assistant.", "Ahoy, it\\'s me!");
  EXPECT_EQ(ChatTemplate::Recognise(pirate, "qwen").default_system(), "Ahoy, it's me!");
}

// Whatever would be rendered otherwise must not be taken for something known.
TEST(ChatTemplateTest, RefusesWhatItDoesNotKnow) {
  const std::string chatml = TemplateText("chatml"), qwen = TemplateText("qwen2_5"), qwen3 = TemplateText("qwen3");
  const std::vector<std::string> unknown = {
      "",
      "{{ bos_token }}{% for m in messages %}[INST]{{ m.content }}[/INST]{% endfor %}",
      Replace(chatml, "message['content'] +", "message['content'] | trim +"),
      Replace(chatml, "'<|im_end|>'", "'<|im_end|> '"),
      Replace(chatml, "{% if add_generation_prompt %}", "{% if add_generation_prompt and not loop.last %}"),
      Replace(chatml, "'<|im_start|>assistant\\n'", "'<|im_start|>assistant\\n<think>\\n'"),
      Replace(chatml, "{% for message in messages %}", "{% for message in messages[1:] %}"),
      Replace(chatml, "{% for message in messages %}", "Hello{% for message in messages %}"),
      Replace(chatml, "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}", ""),
      Replace(qwen, "message.role == \"system\" and not loop.first", "message.role == \"system\""),
      Replace(qwen, "{%- if messages[0]['role'] == 'system' %}", "{%- if messages[0]['role'] == 'developer' %}"),
      Replace(qwen3, "loop.index0 > ns.last_query_index", "loop.index0 >= ns.last_query_index"),
      Replace(qwen3, "enable_thinking is false", "enable_thinking is true"),
      Replace(qwen3, "not loop.last and reasoning_content", "reasoning_content"),
      Replace(qwen3, "not(message.content.startswith('<tool_response>') and ",
              "not message.content.startswith('<tool_response>') and ("),
      Replace(qwen3, "'<think>\\n\\n</think>\\n\\n'", "''"),
  };
  for (const std::string& text : unknown) {
    EXPECT_THAT(MessageOf([&] { ChatTemplate::Recognise(text, "chat.jinja"); }),
                testing::AllOf(HasSubstr("chat.jinja: "), HasSubstr("the template"), HasSubstr("option chat_template")))
        << text;
  }
}

TEST(ChatTemplateTest, RefusesBrokenPrograms) {
  for (const char* text : {"{{", "{% if", "{% if a %}", "{% endif %}", "{% else %}", "{% for %}",
                           "{% if %}{% for %}{% endif %}", "{{ 'a }}", "{% elif %}", "{# no end", "{%%}", "{{}}", "{%",
                           "{", "{% if a %}{% else %}{% elif b %}{% endif %}", "{{ ')' ) ]['x'] }}"}) {
    EXPECT_THAT(MessageOf([&] { ChatTemplate::Recognise(text, "chat.jinja"); }), HasSubstr("chat.jinja: the template"))
        << text;
  }
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += "{% if a %}";
  EXPECT_THAT(MessageOf([&] { ChatTemplate::Recognise(deep, "chat.jinja"); }), HasSubstr("is nested too deeply"));
}

TEST(ChatTemplateTest, QuotesThePartThatIsNew) {
  const std::string text = Replace(TemplateText("chatml"), "'<|im_end|>'", "'<|end|>'");
  EXPECT_EQ(MessageOf([&] { ChatTemplate::Recognise(text, "chat.jinja"); }),
            "chat.jinja: the template is not one of those known here; the first part that is new: for message in "
            "messages / out "
            "'<|im_start|>'+message.role+'\\n'+content+'<|end|>\\n'; set the policy's option chat_template to the "
            "format that the model "
            "was trained with (chatml or qwen3)");
}

TEST(ChatTemplateTest, DetectsFromTheModelFolder) {
  const TemporaryFolder folder;
  const std::string way_out =
      "; set the policy's option chat_template to the format that the model was trained with (chatml or qwen3)";
  EXPECT_EQ(MessageOf([&] { ChatTemplate::Detect(folder.path()); }, folder.path()),
            "DIR/tokenizer_config.json: chat_template: is missing, and there is no chat_template.jinja" + way_out);
  folder.Write("tokenizer_config.json", json{{"chat_template", TemplateText("qwen2")}}.dump());
  EXPECT_EQ(ChatTemplate::Detect(folder.path()).default_system(), "You are a helpful assistant.");
  folder.Write("tokenizer_config.json", json{{"chat_template",
                                              {{{"name", "tool_use"}, {"template", "{{ tools }}"}},
                                               {{"name", "default"}, {"template", TemplateText("smollm2")}}}}}
                                            .dump());
  EXPECT_THAT(ChatTemplate::Detect(folder.path()).default_system().value_or(""), HasSubstr("SmolLM"));
  folder.Write("chat_template.jinja", TemplateText("qwen3"));
  EXPECT_EQ(ChatTemplate::Detect(folder.path()).name(), "qwen3");
  folder.Write("chat_template.jinja", "{{ messages }}");
  EXPECT_EQ(
      MessageOf([&] { ChatTemplate::Detect(folder.path()); }, folder.path()),
      "DIR/chat_template.jinja: the template is not one of those known here; the first part that is new: out messages" +
          way_out);
}

TEST(ChatTemplateTest, ByNameIsTheSameFormat) {
  const std::vector<Message> messages = {
      {"user", "q", {}}, {"assistant", "<think>\nt\n</think>\n\na", {}}, {"user", "r", {}}};
  EXPECT_EQ(ChatTemplate::ByName("chatml").Render(messages, true),
            ChatTemplate::Recognise(TemplateText("chatml"), "").Render(messages, true));
  EXPECT_EQ(ChatTemplate::ByName("chatml", "You are a helpful assistant.").Render(messages, true),
            ChatTemplate::Recognise(TemplateText("qwen2"), "").Render(messages, true));
  EXPECT_EQ(ChatTemplate::ByName("qwen3").Render(messages, true, false),
            ChatTemplate::Recognise(TemplateText("qwen3"), "").Render(messages, true, false));
  EXPECT_EQ(MessageOf([] { ChatTemplate::ByName("llama3"); }),
            "there is no chat template 'llama3': chatml and qwen3 are there");
}

TEST(ChatTemplateTest, RefusesBadConversations) {
  const ChatTemplate chatml = ChatTemplate::ByName("chatml");
  EXPECT_EQ(MessageOf([&] { chatml.Render({}, true); }), "a conversation needs at least one message");
  const std::vector<Message> messages = {{"user", "q", {}}, {"User", "q", {}}};
  EXPECT_EQ(MessageOf([&] { chatml.Render(messages, true); }),
            "messages[1].role is 'User': must be system, user or assistant, or tool");
}

}  // namespace
}  // namespace kgrpo::tokenizer
