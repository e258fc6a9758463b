#include "policy_qwen/tokenizer/chat_template.h"

#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <utility>

#include "policy_qwen/files.h"
#include "policy_qwen/tokenizer/jinja_value.h"
#include "policy_qwen/tokenizer/tokenizer_config.h"
#include "policy_qwen/tokenizer/unicode.h"

namespace kgrpo::tokenizer {
namespace {

constexpr const char* kChatml = R"({%- if default_system is defined and messages[0].role != 'system' %}
    {{- '<|im_start|>system\n' + default_system + '<|im_end|>\n' }}
{%- endif %}
{%- for m in messages %}
    {{- '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}
{%- endfor %}
{{- '<|im_start|>assistant\n' if add_generation_prompt }})";

// Thoughts are shown after the last message in which a user asks something.
constexpr const char* kQwen3 = R"({%- if default_system is defined and messages[0].role != 'system' %}
    {{- '<|im_start|>system\n' + default_system + '<|im_end|>\n' }}
{%- endif %}
{%- set ns = namespace(query=messages|length - 1) %}
{%- for m in messages %}
    {%- set answers = m.content.startswith('<tool_response>') and m.content.endswith('</tool_response>') %}
    {%- set ns.query = loop.index0 if m.role == 'user' and not answers else ns.query %}
{%- endfor %}
{%- for m in messages %}
    {%- set content = m.content %}
    {%- set thoughts = m.reasoning_content if m.role == 'assistant' and m.reasoning_content is string else '' %}
    {%- if m.role == 'assistant' and m.reasoning_content is not string and '</think>' in content %}
        {%- set thoughts = content.split('</think>')[0].rstrip('\n').split('<think>')[-1].lstrip('\n') %}
        {%- set content = content.split('</think>')[-1].lstrip('\n') %}
    {%- endif %}
    {%- if m.role == 'assistant' and loop.index0 > ns.query and (loop.last or thoughts) %}
        {%- set content = '<think>\n' + thoughts.strip('\n') + '\n</think>\n\n' + content.lstrip('\n') %}
    {%- endif %}
    {%- if m.role == 'tool' %}
        {{- '<|im_start|>user' if loop.first or loop.previtem.role != 'tool' }}
        {{- '\n<tool_response>\n' + content + '\n</tool_response>' }}
        {{- '<|im_end|>\n' if loop.last or loop.nextitem.role != 'tool' }}
    {%- else %}
        {{- '<|im_start|>' + m.role + '\n' + content + '<|im_end|>\n' }}
    {%- endif %}
{%- endfor %}
{{- '<|im_start|>assistant\n' if add_generation_prompt }}
{{- '<think>\n\n</think>\n\n' if add_generation_prompt and enable_thinking is defined and enable_thinking is false }})";

[[noreturn]] void Refuse(const std::string& what) { throw Error(KGRPO_ERROR_INVALID, what); }

// What transformers gives to a template for a message: no key without a value, and thoughts under both of their names.
Json Prepared(const Json& message) {
  Json made = Json::object();
  for (const char* key : {"reasoning_content", "thinking", "reasoning"}) {
    const auto found = message.find(key);
    if (made.empty() && found != message.end() && !found->is_null()) made["thinking"] = *found;
  }
  const Json thoughts = made;
  for (const auto& [key, value] : message.items()) {
    if (!value.is_null()) made[key] = value;
  }
  if (!thoughts.empty()) made["reasoning_content"] = thoughts["thinking"];
  return made;
}

}  // namespace

std::optional<ChatTemplate> ChatTemplate::Load(const std::filesystem::path& folder, const std::string& choice,
                                               const Json& arguments) {
  ChatTemplate made(folder, arguments);
  const TokenizerConfig config = ReadTokenizerConfig(folder);
  for (const auto& [key, token] : config.named_tokens) made.tokens_[key] = token;
  if (choice == "auto") {
    if (config.chat_templates.empty()) return std::nullopt;
    for (const auto& [name, found] : config.chat_templates) made.Add(name, found.jinja, found.source);
  } else if (choice == "chatml" || choice == "qwen3") {
    made.Add("default", choice == "chatml" ? kChatml : kQwen3, "the template " + choice);
  } else {
    made.Add("default", ReplaceInvalidUtf8(policy::ReadFile(choice)), choice);
  }
  made.own_ = choice == "auto" && arguments.empty();
  for (const auto& argument : arguments.items()) {
    const std::string& key = argument.key();
    const bool taken = std::any_of(made.templates_.begin(), made.templates_.end(), [&](const auto& named) {
      return named.second.parsed && named.second.parsed->Mentions(key);
    });
    if (!taken) Refuse("chat_template_arguments: the chat template of " + folder.string() + " takes no '" + key + "'");
  }
  return made;
}

void ChatTemplate::Add(const std::string& name, const std::string& jinja, const std::string& source) {
  Named& named = templates_[name];
  named.jinja = jinja;
  if (name == "default" || name == "tool_use") named.parsed.emplace(jinja, source);
}

std::string ChatTemplate::Render(const Json& messages, bool add_generation_prompt, const Json& arguments) const {
  if (!messages.is_array() || messages.empty()) Refuse("a conversation needs at least one message");
  const bool tools = arguments.contains("tools") && !arguments["tools"].is_null();
  auto chosen = templates_.find(tools && templates_.contains("tool_use") ? "tool_use" : "default");
  if (chosen == templates_.end()) Refuse(folder_.string() + ": none of the chat templates is named default");
  const jinja::Template& parsed = *chosen->second.parsed;

  Json variables = {{"messages", Json::array()}, {"tools", nullptr}, {"documents", nullptr}};
  variables["add_generation_prompt"] = add_generation_prompt;
  for (const Json* given : {&tokens_, &arguments_, &arguments}) {
    for (const auto& [key, value] : given->items()) variables[key] = value;
  }
  for (const auto& [key, value] : arguments.items()) {
    const bool read = key == "enable_thinking" || value.is_null() || parsed.Mentions(key);
    if (!read) Refuse("the chat template does not read '" + key + "', which would be dropped");
  }
  Json list = Json::array();
  std::vector<size_t> others;  // messages whose role the template does not name
  for (size_t i = 0; i < messages.size(); ++i) {
    const std::string where = "messages[" + std::to_string(i) + "]";
    if (!messages[i].is_object()) Refuse(where + " is not an object");
    list.push_back(Prepared(messages[i]));
    const std::string role = list[i].contains("role") && list[i]["role"].is_string() ? list[i]["role"] : Json("");
    const bool known = role == "system" || role == "user" || role == "assistant" || role == "tool";
    if (!known && !parsed.Mentions(role)) others.push_back(i);
    const bool thoughts = parsed.Mentions("reasoning_content") || parsed.Mentions("thinking");
    for (const auto& [key, value] : messages[i].items()) {
      const bool thought = key == "reasoning_content" || key == "thinking" || key == "reasoning";
      const bool read =
          value.is_null() || key == "role" || key == "content" || parsed.Mentions(key) || (thought && thoughts);
      if (!read) Refuse(where + "." + key + ": the chat template does not read it, so it would be dropped");
    }
  }
  variables["messages"] = std::move(list);
  std::string text;
  try {
    text = parsed.Render(variables, now_);
  } catch (const Error& error) {  // Gemma's: "System role not supported"
    const std::string why = error.what();
    if (why.find("ystem") == std::string::npos || messages[0].value("role", Json()) != "system") throw;
    throw Error(error.code(), why +
                                  ": leave prompt.system empty, or for a coder set prompt.system_role to user, which "
                                  "puts it at the beginning of the user's message");
  }
  for (const size_t i : others) {  // a template may write any role
    const Json role = std::exchange(variables["messages"][i]["role"], "another");
    if (role.is_string() && parsed.Render(variables, now_) != text) continue;
    Refuse("messages[" + std::to_string(i) + "].role is " + role.dump() +
           ": must be system, user, assistant or tool, or one that the template reads");
  }
  return text;
}

std::map<std::string, std::string> ChatTemplate::Files() const {
  std::map<std::string, std::string> files;
  if (own_) return files;
  std::string defaults;
  for (const auto& [key, value] : arguments_.items()) {
    defaults += "{%- set " + key + " = " + key + " if " + key + " is defined else " + jinja::Dump(value) + " %}\n";
  }
  for (const auto& [name, named] : templates_) {
    const std::string file = name == "default" ? "chat_template.jinja" : "additional_chat_templates/" + name + ".jinja";
    files[file] = (named.jinja.starts_with(defaults) ? "" : defaults) + named.jinja;
  }
  return files;
}

std::vector<std::string> ChatTemplate::Markers() const {
  std::string text;
  try {
    text =
        Render({{{"role", "user"}, {"content", "q"}}, {{"role", "assistant"}, {"content", "a"}}}, true, Json::object());
  } catch (const Error&) {  // of the conversation: a template may want more of it
    return {};
  }
  std::vector<std::string> markers;
  for (size_t at = 0; (at = text.find("<|", at)) != std::string::npos; at += 2) {
    const size_t end = text.find("|>", at);
    const std::string marker = text.substr(at, end == std::string::npos ? end : end + 2 - at);
    const bool plain = end != std::string::npos && marker.find_first_of(" \n", 0) == std::string::npos;
    if (plain && std::find(markers.begin(), markers.end(), marker) == markers.end()) markers.push_back(marker);
  }
  return markers;
}

}  // namespace kgrpo::tokenizer
