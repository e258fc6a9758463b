#include "trainer_sft/pairs.h"

#include <kgrpo/sdk/error.h>
#include <kgrpo/sdk/text.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>

namespace kgrpo::sft {
namespace {

using json = nlohmann::ordered_json;

// A mistake in a line; ReadPairs puts file and line number before it.
class BadLine : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A chat as the policy's template sees it.
struct Chat {
  json messages = json::array();
  json arguments = json::object();  // tools and the like
};

// The policy's tokenizer, as C++.
class Encoder {
 public:
  Encoder(const kgrpo_policy_interface& api, kgrpo_policy* policy) : api_(api), policy_(policy) {}

  // The ids of the first `count` messages.
  std::vector<int32_t> Encode(const Chat& chat, size_t count, bool add_generation_prompt) const {
    std::vector<kgrpo_message> views(count);
    std::vector<std::string> members(count);
    bool rich = !chat.arguments.empty();
    for (size_t i = 0; i < count; ++i) {
      const auto text = [&](const char* key) {
        const auto found = chat.messages[i].find(key);
        return found != chat.messages[i].end() && found->is_string() ? Str(found->get_ref<const std::string&>())
                                                                     : kgrpo_str{};
      };
      json others = chat.messages[i];
      others.erase("role");
      if (others["content"].is_string()) others.erase("content");  // null if it is absent
      if (!others.empty()) members[i] = others.dump();
      views[i] = {text("role"), text("content"), Str(members[i])};
      rich = rich || !others.empty();
    }
    const std::string given = chat.arguments.empty() ? "" : chat.arguments.dump();
    if (rich && api_.info(policy_)->reads_chat_arguments == 0) {
      throw BadLine("the policy takes a chat's roles and texts alone: no tools, and no other keys of messages");
    }
    const kgrpo_chat_options options = {sizeof(kgrpo_chat_options), add_generation_prompt ? 1 : 0, -1, Str(given)};
    std::vector<int32_t> ids;
    Check(api_.encode_chat(policy_, views.data(), views.size(), &options, SinkOf(ids)));
    return ids;
  }

  std::vector<int32_t> Text(std::string_view text) const {
    std::vector<int32_t> ids;
    Check(api_.encode(policy_, Str(text), SinkOf(ids)));
    return ids;
  }

  std::span<const int32_t> end_ids() const {
    const kgrpo_policy_info* info = api_.info(policy_);
    return {info->end_ids, info->end_id_count};
  }

  size_t context_length() const { return api_.info(policy_)->context_length; }

 private:
  static kgrpo_token_sink SinkOf(std::vector<int32_t>& ids) {
    return {&ids, [](void* context, const int32_t* added, size_t count) {
              auto* all = static_cast<std::vector<int32_t>*>(context);
              all->insert(all->end(), added, added + count);
            }};
  }

  const kgrpo_policy_interface& api_;
  kgrpo_policy* policy_;
};

bool IsEnd(const Encoder& encoder, int32_t id) {
  const auto ends = encoder.end_ids();
  return std::find(ends.begin(), ends.end(), id) != ends.end();
}

void AppendEnd(const Encoder& encoder, std::vector<int32_t>& ids) {
  if (!ids.empty() && IsEnd(encoder, ids.back())) return;
  if (encoder.end_ids().empty()) throw BadLine("the policy has no end token that could end the completion");
  ids.push_back(encoder.end_ids().front());
}

// Returns the tokens that the policy would have to sample after the prompt: the answer and the end token, without the
// text that the template puts after them. Some templates render an answered chat differently from the prompt for
// generation, for example with an empty thought. The prompt is then not a prefix, and the result is the answer's own
// tokens and the end token that the template writes after it.
std::vector<int32_t> CompletionOf(const Encoder& encoder, const Chat& chat, const std::vector<int32_t>& prompt) {
  const std::vector<int32_t> whole = encoder.Encode(chat, chat.messages.size(), false);
  const auto is_end = [&](int32_t id) { return IsEnd(encoder, id); };
  if (whole.size() > prompt.size() && std::equal(prompt.begin(), prompt.end(), whole.begin())) {
    const auto start = whole.begin() + static_cast<std::ptrdiff_t>(prompt.size());
    const auto end = std::find_if(start, whole.end(), is_end);
    if (end != whole.end()) return {start, end + 1};
  }
  const json& answer = chat.messages.back();
  if (answer.size() != 2 || !answer.contains("content") || !answer["content"].is_string()) {
    throw BadLine(
        "the chat template does not write the answer as a continuation of the prompt, so the answer can only "
        "have a \"role\" and a text as \"content\"");
  }
  std::vector<int32_t> completion = encoder.Text(answer["content"].get_ref<const std::string&>());
  const auto end = std::find_if(whole.rbegin(), whole.rend(), is_end);
  if (end != whole.rend() && (completion.empty() || !is_end(completion.back()))) completion.push_back(*end);
  AppendEnd(encoder, completion);
  return completion;
}

std::string TextField(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) throw BadLine(std::string("\"") + key + "\" is missing");
  if (!found->is_string()) throw BadLine(std::string("\"") + key + "\" is not a text");
  return found->get<std::string>();
}

// Appends the messages of `list`, the value of `key`.
void AppendMessages(const json& list, const std::string& key, Chat* chat) {
  if (!list.is_array()) throw BadLine("\"" + key + "\" is not a list");
  for (const json& message : list) {
    if (!message.is_object()) throw BadLine("a message is not an object with \"role\" and \"content\"");
    const std::string role = TextField(message, "role");
    if (role != "system" && role != "user" && role != "assistant" && role != "tool") {
      throw BadLine("role \"" + role + "\" is none of system, user, assistant, tool");
    }
    const bool calls = message.contains("tool_calls");  // these may stand instead of a content
    if (!calls && (!message.contains("content") || !message["content"].is_array())) TextField(message, "content");
    chat->messages.push_back(message);
  }
}

Pair ChatPair(const Encoder& encoder, const Chat& chat) {
  const size_t size = chat.messages.size();
  if (size < 2) throw BadLine("\"messages\" needs at least a prompt and the assistant's answer");
  if (const std::string role = chat.messages.back()["role"]; role != "assistant") {
    throw BadLine("the last message is the " + role + "'s; it must be the assistant's, which is what is learned");
  }
  Pair pair;
  pair.prompt_ids = encoder.Encode(chat, size - 1, true);
  pair.completion_ids = CompletionOf(encoder, chat, pair.prompt_ids);
  return pair;
}

// {"prompt": [messages], "completion": [message] or its text}
void PromptAndAnswer(const json& object, Chat* chat) {
  AppendMessages(object.at("prompt"), "prompt", chat);
  const size_t prompt_size = chat->messages.size();
  const auto completion = object.find("completion");
  if (completion == object.end() || !completion->is_array()) {
    chat->messages.push_back({{"role", "assistant"}, {"content", TextField(object, "completion")}});
  } else {
    AppendMessages(*completion, "completion", chat);
  }
  if (prompt_size == 0 || chat->messages.size() != prompt_size + 1) {
    throw BadLine("\"prompt\" needs at least one message, and \"completion\" exactly one");
  }
}

Pair TextPair(const Encoder& encoder, const json& object) {
  Pair pair;
  pair.prompt_ids = encoder.Text(TextField(object, "prompt"));
  pair.completion_ids = encoder.Text(TextField(object, "completion"));
  AppendEnd(encoder, pair.completion_ids);
  return pair;
}

Pair ParseLine(const Encoder& encoder, const std::string& line) {
  json object;
  try {
    object = json::parse(line);
  } catch (const json::parse_error& error) {
    throw BadLine("not JSON, at byte " + std::to_string(error.byte) + " of the line");
  }
  if (!object.is_object()) throw BadLine("not a JSON object");
  Pair pair;
  const auto prompt = object.find("prompt");
  Chat chat;
  if (const auto given = object.find("chat_template_kwargs"); given != object.end() && !given->is_null()) {
    if (!given->is_object()) throw BadLine("\"chat_template_kwargs\" is not an object");
    chat.arguments = *given;
  }
  if (const auto tools = object.find("tools"); tools != object.end() && !tools->is_null())
    chat.arguments["tools"] = *tools;
  if (const auto messages = object.find("messages"); messages != object.end()) {
    AppendMessages(*messages, "messages", &chat);
    pair = ChatPair(encoder, chat);
  } else if (prompt != object.end() && prompt->is_array()) {
    PromptAndAnswer(object, &chat);
    pair = ChatPair(encoder, chat);
  } else if (object.contains("prompt") || object.contains("completion")) {
    pair = TextPair(encoder, object);
  } else {
    throw BadLine("neither \"messages\" nor \"prompt\" and \"completion\"");
  }
  if (pair.prompt_ids.empty()) throw BadLine("the prompt is empty");
  const size_t tokens = pair.prompt_ids.size() + pair.completion_ids.size();
  if (tokens > encoder.context_length()) {
    throw BadLine("prompt and completion have " + std::to_string(tokens) + " tokens, the policy's context holds " +
                  std::to_string(encoder.context_length()));
  }
  return pair;
}

}  // namespace

std::vector<Pair> ReadPairs(const kgrpo_policy_interface& api, kgrpo_policy* policy, const std::string& path) {
  std::ifstream file(path);
  if (!file) {
    throw Error(KGRPO_ERROR_NOT_FOUND, "cannot open the training pairs " + path + ": " + std::strerror(errno));
  }
  const Encoder encoder(api, policy);
  std::vector<Pair> pairs;
  std::string line;
  for (size_t number = 1; std::getline(file, line); ++number) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const std::string where = path + ":" + std::to_string(number) + ": ";
    try {
      pairs.push_back(ParseLine(encoder, line));
    } catch (const BadLine& problem) {
      throw Error(KGRPO_ERROR_INVALID, where + problem.what());
    } catch (const Error& failure) {  // of the policy's tokenizer
      throw Error(failure.code(), where + failure.what());
    }
  }
  if (file.bad()) throw Error(KGRPO_ERROR_UNAVAILABLE, "cannot read the training pairs " + path);
  if (pairs.empty()) throw Error(KGRPO_ERROR_INVALID, "the training pairs " + path + " hold no pair");
  return pairs;
}

}  // namespace kgrpo::sft
