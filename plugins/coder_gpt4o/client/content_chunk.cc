#include "coder_gpt4o/client/content_chunk.h"

#include <optional>

#include "coder_gpt4o/client/json_scanner.h"

namespace kgrpo::coder_gpt4o {
namespace {

// Follows the chunk down to the content. Every function returns whether to go on: false at the first thing that a plain
// chunk has not.
class Follower {
 public:
  explicit Follower(std::string_view event) : scanner_(event) {}

  // The content, with its escapes.
  std::optional<std::string_view> Content() {
    if (!Object(&Follower::MemberOfRoot) || !scanner_.TakeEnd()) return std::nullopt;
    return content_;
  }

 private:
  using Member = bool (Follower::*)(std::string_view key);

  // A key with an escape in it might be any.
  bool Object(Member member) {
    if (!scanner_.Take('{')) return false;
    if (scanner_.Take('}')) return true;
    do {
      std::string_view key;
      if (!scanner_.TakeString(&key) || key.find('\\') != std::string_view::npos) return false;
      if (!scanner_.Take(':') || !(this->*member)(key)) return false;
    } while (scanner_.Take(','));
    return scanner_.Take('}');
  }

  bool MemberOfRoot(std::string_view key) {
    if (key == "choices") return Choices();
    if (key == "error" || key == "usage") return scanner_.TakeWord("null");
    return scanner_.TakeValue();
  }

  // A single one. Of two keys of one name the last would count: none stands twice.
  bool Choices() {
    if (has_choices_ || !scanner_.Take('[')) return false;
    has_choices_ = true;
    return Object(&Follower::MemberOfChoice) && scanner_.Take(']');
  }

  bool MemberOfChoice(std::string_view key) {
    if (key == "delta") {
      if (has_delta_) return false;
      has_delta_ = true;
      return Object(&Follower::MemberOfDelta);
    }
    if (key == "index") return scanner_.TakeWord("0");
    if (key == "finish_reason") return scanner_.TakeWord("null");
    return scanner_.TakeValue();
  }

  bool MemberOfDelta(std::string_view key) {
    if (key == "content") {
      if (content_) return false;
      content_.emplace();
      return scanner_.TakeString(&*content_);
    }
    if (key == "refusal") return scanner_.TakeWord("null");
    return scanner_.TakeValue();
  }

  JsonScanner scanner_;
  bool has_choices_ = false, has_delta_ = false;
  std::optional<std::string_view> content_;
};

}  // namespace

bool TakeContentChunk(std::string_view event, std::string& text) {
  const std::optional<std::string_view> content = Follower(event).Content();
  if (!content) return false;
  AppendUnescaped(*content, text);
  return true;
}

}  // namespace kgrpo::coder_gpt4o
