#include "policy_qwen/tokenizer/chat_template_recognition.h"

#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "policy_qwen/tokenizer/jinja_program.h"

// A program is recognised statement by statement. First the parts for function calling are removed, because our
// conversations offer no functions. Then each statement, with the conditions it stands under, must be one of those
// listed below, whose rendering is known. So a fine-tune's template may differ in spelling, order of cases and default
// system prompt; a template that differs in anything else is refused.
namespace kgrpo::tokenizer {
namespace {

// The role of a known statement, as the lists give it.
enum class Part {
  kNothing,         // helps another statement
  kEveryMessage,    // each message alike
  kFirstSystem,     // a system message at the start, apart from the loop
  kOtherTurns,      // in the loop: user, and system unless it is first
  kAssistantTurns,  // in the loop: assistant
  kGeneration,      // the opening of the answer
  kQueryIndex,      // Qwen3: where the last question is
  kThoughtsApart,   // Qwen3: thoughts from reasoning_content
  kThoughtsInside,  // Qwen3: thoughts from the content
  kThoughtsShown,   // Qwen3: thoughts after the last question
  kThinkingSwitch,  // Qwen3: enable_thinking
};

struct KnownStatement {
  std::string_view path;
  Part part;
};

// Begin and end of a statement that writes the default system prompt, which may be any text.
constexpr std::string_view kSystemStart = "out '<|im_start|>system\\n";
constexpr std::string_view kSystemEnd = "<|im_end|>\\n'";

#define KGRPO_LOOP "for message in messages / "
#define KGRPO_ASSISTANT KGRPO_LOOP "if message.role=='assistant' / "
#define KGRPO_AFTER_QUERY KGRPO_ASSISTANT "if loop.index0>ns.last_query_index / "
#define KGRPO_SHOWN "if loop.last or not loop.last and reasoning_content / "
#define KGRPO_TURN "out '<|im_start|>'+message.role+'\\n'+content+'<|im_end|>\\n'"
#define KGRPO_OPEN_TURN "out '<|im_start|>'+message.role+'\\n'+content"
#define KGRPO_QUERY "for message in messages[::-1] / "
#define KGRPO_NO_RESPONSE "not(content.startswith('<tool_response>') and content.endswith('</tool_response>')) / "
#define KGRPO_SPLIT_THOUGHTS \
  "set reasoning_content=content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n')"
#define KGRPO_SPLIT_ANSWER "set content=content.split('</think>')[-1].lstrip('\\n')"

constexpr std::array kKnown = {
    // ChatML.
    KnownStatement{KGRPO_LOOP KGRPO_TURN, Part::kEveryMessage},
    KnownStatement{"if add_generation_prompt / out '<|im_start|>assistant\\n'", Part::kGeneration},
    // Qwen since 2.5: the roles are told apart. Of two system messages the first stands outside the loop.
    KnownStatement{"if messages[0].role=='system' / out '<|im_start|>system\\n'+messages[0].content+'<|im_end|>\\n'",
                   Part::kFirstSystem},
    KnownStatement{KGRPO_LOOP "if message.role=='user' or message.role=='system' and not loop.first / " KGRPO_TURN,
                   Part::kOtherTurns},
    KnownStatement{KGRPO_LOOP "if message.role=='user' or message.role=='system' and not loop.first or "
                              "message.role=='assistant' / " KGRPO_TURN,
                   Part::kOtherTurns},
    KnownStatement{KGRPO_ASSISTANT KGRPO_TURN, Part::kAssistantTurns},
    KnownStatement{KGRPO_ASSISTANT "out '<|im_start|>assistant\\n'+content+'<|im_end|>\\n'", Part::kAssistantTurns},
    // An assistant's turn in parts. The middle part is skipped for an empty content, but only with functions: without
    // them, the case above takes the turn.
    KnownStatement{KGRPO_ASSISTANT "out '<|im_start|>'+message.role", Part::kAssistantTurns},
    KnownStatement{KGRPO_ASSISTANT "if content / out '\\n'+content", Part::kNothing},
    KnownStatement{KGRPO_ASSISTANT "out '<|im_end|>\\n'", Part::kNothing},
    KnownStatement{KGRPO_LOOP "set content=content", Part::kNothing},
    KnownStatement{KGRPO_ASSISTANT "set content=content", Part::kNothing},
    // Qwen3: where the last question is.
    KnownStatement{"set ns=namespace(multi_step_tool=true,last_query_index=messages|length-1)", Part::kNothing},
    KnownStatement{KGRPO_QUERY "set index=messages|length-1-loop.index0", Part::kNothing},
    KnownStatement{KGRPO_QUERY "if ns.multi_step_tool and message.role=='user' and " KGRPO_NO_RESPONSE
                               "set ns.multi_step_tool=false",
                   Part::kNothing},
    KnownStatement{KGRPO_QUERY "if ns.multi_step_tool and message.role=='user' and " KGRPO_NO_RESPONSE
                               "set ns.last_query_index=index",
                   Part::kQueryIndex},
    // Qwen3: an assistant's thoughts.
    KnownStatement{KGRPO_ASSISTANT "set reasoning_content=''", Part::kNothing},
    KnownStatement{KGRPO_ASSISTANT
                   "if message.reasoning_content is string / set reasoning_content=message.reasoning_content",
                   Part::kThoughtsApart},
    KnownStatement{KGRPO_ASSISTANT
                   "if message.reasoning_content is defined and message.reasoning_content is not none / "
                   "set reasoning_content=message.reasoning_content",
                   Part::kThoughtsApart},
    KnownStatement{KGRPO_ASSISTANT "else / if '</think>' in content / " KGRPO_SPLIT_THOUGHTS, Part::kThoughtsInside},
    KnownStatement{KGRPO_ASSISTANT "else / if '</think>' in content / " KGRPO_SPLIT_ANSWER, Part::kNothing},
    KnownStatement{KGRPO_AFTER_QUERY KGRPO_SHOWN
                   "out '<|im_start|>'+message.role+'\\n<think>\\n'+reasoning_content.strip('\\n')+"
                   "'\\n</think>\\n\\n'+content.lstrip('\\n')",
                   Part::kThoughtsShown},
    KnownStatement{KGRPO_AFTER_QUERY "else / " KGRPO_OPEN_TURN, Part::kNothing},
    KnownStatement{KGRPO_ASSISTANT "else / " KGRPO_OPEN_TURN, Part::kAssistantTurns},
    KnownStatement{"if add_generation_prompt / if enable_thinking is defined and enable_thinking is false / "
                   "out '<think>\\n\\n</think>\\n\\n'",
                   Part::kThinkingSwitch},
};

// Outputs of a message of role tool within a user's turn.
constexpr std::array<std::string_view, 5> kToolTurn = {
    "out '<|im_start|>user'", "out '\\n<tool_response>\\n'+content+'\\n</tool_response>'", "out '<|im_end|>\\n'",
    "out '<|im_start|>user\\n<tool_response>\\n'+content+'\\n</tool_response>'",
    "out '\\n</tool_response><|im_end|>\\n'"};

// Spells message.content like the variable that some templates copy it to. Drops tests that it is a string and that
// there are no tool calls.
std::string SpellPlain(const JinjaExpression& expression) {
  std::string text = Spell(expression);
  const auto replace_all = [&](std::string_view what, std::string_view by) {
    for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size()))
      text.replace(at, what.size(), by);
  };
  replace_all("message.content", "content");
  replace_all(" and content is string", "");
  replace_all(" and not message.tool_calls", "");
  return text;
}

// The value of a condition, if the absence of functions (and every content being a string) decides it.
enum class Decided { kOpen, kNever, kAlways };
Decided Decide(const std::string& condition) {
  if (condition == "tools" || condition == "message.tool_calls" || condition == "tools is defined")
    return Decided::kNever;
  if (condition == "not message.tool_calls" || condition == "content is string" || condition == "not tools")
    return Decided::kAlways;
  return Decided::kOpen;
}

class Recogniser {
 public:
  ChatTemplate::Format Run(std::string_view jinja) {
    Visit(ParseJinja(jinja), "");
    return Conclude();
  }

 private:
  // Removes the branches that never run, and moves those that always run into the enclosing block.
  std::vector<JinjaNode> Reduce(std::vector<JinjaNode> nodes) {
    std::vector<JinjaNode> out;
    const auto append = [&](JinjaNode node) {
      const bool joins =
          node.kind == JinjaNode::Kind::kOutput && !out.empty() && out.back().kind == JinjaNode::Kind::kOutput;
      if (!joins) return out.push_back(std::move(node));
      out.back().expression.push_back({JinjaToken::Kind::kPunctuation, "+"});
      out.back().expression.insert(out.back().expression.end(), node.expression.begin(), node.expression.end());
    };
    for (JinjaNode& node : nodes) {
      if (node.kind == JinjaNode::Kind::kFor && SpellPlain(node.expression) == "tool_call in message.tool_calls")
        continue;
      if (node.kind != JinjaNode::Kind::kIf) {
        append(std::move(node));
        continue;
      }
      JinjaNode reduced{JinjaNode::Kind::kIf, {}, {}};
      for (JinjaNode::Branch& branch : node.branches) {
        const std::string condition = SpellPlain(branch.condition);
        if (condition == "message.role=='tool'") {
          VisitToolTurn(std::move(branch.body));
          continue;
        }
        const Decided decided = branch.condition.empty() ? Decided::kAlways : Decide(condition);
        if (decided == Decided::kNever) continue;
        if (decided == Decided::kAlways) branch.condition.clear();
        reduced.branches.push_back(std::move(branch));
        if (decided == Decided::kAlways) break;
      }
      if (reduced.branches.empty()) continue;
      if (!reduced.branches[0].condition.empty()) {
        append(std::move(reduced));
        continue;
      }
      for (JinjaNode& inner : Reduce(std::move(reduced.branches[0].body))) append(std::move(inner));
    }
    return out;
  }

  void Visit(std::vector<JinjaNode> nodes, const std::string& path) {
    for (JinjaNode& node : Reduce(std::move(nodes))) {
      switch (node.kind) {
        case JinjaNode::Kind::kOutput:
          Take(path + "out " + SpellPlain(node.expression), node.expression);
          break;
        case JinjaNode::Kind::kSet:
          Take(path + "set " + SpellPlain(node.expression), node.expression);
          break;
        case JinjaNode::Kind::kFor:
          Visit(std::move(node.branches[0].body), path + "for " + SpellPlain(node.expression) + " / ");
          break;
        case JinjaNode::Kind::kIf:
          for (JinjaNode::Branch& branch : node.branches) {
            Visit(std::move(branch.body),
                  path + (branch.condition.empty() ? "else / " : "if " + SpellPlain(branch.condition) + " / "));
          }
          break;
      }
    }
  }

  // Tool turns differ in nothing but the cases under which their first and last line are written.
  void VisitToolTurn(std::vector<JinjaNode> nodes) {
    tool_ = tool_ == ChatTemplate::Format::Tool::kRefused ? tool_ : ChatTemplate::Format::Tool::kInUserTurn;
    for (JinjaNode& node : Reduce(std::move(nodes))) {
      if (node.kind == JinjaNode::Kind::kIf) {
        for (JinjaNode::Branch& branch : node.branches) VisitToolTurn(std::move(branch.body));
      } else if (node.kind != JinjaNode::Kind::kOutput ||
                 std::find(kToolTurn.begin(), kToolTurn.end(), "out " + SpellPlain(node.expression)) ==
                     kToolTurn.end()) {
        tool_ = ChatTemplate::Format::Tool::kRefused;
      }
    }
  }

  void Take(const std::string& path, const JinjaExpression& expression) {
    for (const KnownStatement& known : kKnown) {
      if (known.path == path) {
        parts_.insert(known.part);
        return;
      }
    }
    // A default system prompt: in the loop before the first message, or as the other case of the system message's.
    for (const std::string_view place : {KGRPO_LOOP "if loop.first and messages[0].role!='system' / ", "else / ",
                                         "if messages[0].role!='system' / "}) {
      if (!path.starts_with(place) || !IsOneLiteral(expression)) continue;
      const std::string_view statement = std::string_view(path).substr(place.size());
      if (!statement.starts_with(kSystemStart) || !statement.ends_with(kSystemEnd)) continue;
      TakeDefaultSystem(expression);
      return;
    }
    throw Error(KGRPO_ERROR_UNSUPPORTED,
                "the template is not one of those known here; the first part that is new: " + path);
  }

  static bool IsOneLiteral(const JinjaExpression& expression) {
    return std::all_of(expression.begin(), expression.end(), [](const JinjaToken& token) {
      return token.kind == JinjaToken::Kind::kString ||
             (token.kind == JinjaToken::Kind::kPunctuation && token.text == "+");
    });
  }

  void TakeDefaultSystem(const JinjaExpression& expression) {
    std::string literal;
    for (const JinjaToken& token : expression) {
      if (token.kind == JinjaToken::Kind::kString) literal += token.text;
    }
    const size_t start = std::string_view("<|im_start|>system\n").size(), end = std::string_view("<|im_end|>\n").size();
    std::string prompt = literal.substr(start, literal.size() - start - end);
    if (prompt.find("<|im_") != std::string::npos || (default_system_ && *default_system_ != prompt)) {
      throw Error(KGRPO_ERROR_UNSUPPORTED, "the template has several default system prompts");
    }
    default_system_ = std::move(prompt);
  }

  bool Has(Part part) const { return parts_.contains(part); }

  ChatTemplate::Format Conclude() const {
    const bool by_role = Has(Part::kFirstSystem) && Has(Part::kOtherTurns);
    const bool any_by_role = Has(Part::kFirstSystem) || Has(Part::kOtherTurns) || Has(Part::kAssistantTurns);
    if (!Has(Part::kGeneration) || Has(Part::kEveryMessage) == by_role || by_role != any_by_role) {
      throw Error(KGRPO_ERROR_UNSUPPORTED, "the template is not one of those known here; it lacks a part of ChatML");
    }
    int thinking_parts = 0;
    for (const Part part : {Part::kQueryIndex, Part::kThoughtsApart, Part::kThoughtsInside, Part::kThoughtsShown,
                            Part::kThinkingSwitch}) {
      thinking_parts += Has(part) ? 1 : 0;
    }
    if (thinking_parts != 0 && thinking_parts != 5) {
      throw Error(KGRPO_ERROR_UNSUPPORTED,
                  "the template is not one of those known here; it has some but not all parts of Qwen3's");
    }
    return {thinking_parts == 0 ? "chatml" : "qwen3", default_system_, thinking_parts != 0,
            by_role && tool_ == ChatTemplate::Format::Tool::kLikeOthers ? ChatTemplate::Format::Tool::kRefused : tool_};
  }

  std::set<Part> parts_;
  std::optional<std::string> default_system_;
  ChatTemplate::Format::Tool tool_ = ChatTemplate::Format::Tool::kLikeOthers;
};

}  // namespace

ChatTemplate::Format RecogniseChatTemplate(std::string_view jinja) {
  return Recogniser().Run(jinja);
}

}  // namespace kgrpo::tokenizer
