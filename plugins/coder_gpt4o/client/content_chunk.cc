#include "coder_gpt4o/client/content_chunk.h"

#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>

namespace kgrpo::coder_gpt4o {
namespace {

using nlohmann::json;

// Follows the parser through the chunk. Every function returns whether to go on: false at the first thing that a plain
// chunk has not. The functions' names are nlohmann::json_sax's.
class Follower {
 public:
  std::optional<std::string>& Content() { return content_; }

  // NOLINTBEGIN(readability-identifier-naming)
  bool null() { return true; }  // stands for "absent" wherever something is looked for
  bool boolean(bool) { return Scalar(); }
  bool number_integer(json::number_integer_t) { return Scalar(); }
  bool number_unsigned(json::number_unsigned_t value) { return (At(kChoice, "index") && value == 0) || Scalar(); }
  bool number_float(json::number_float_t, const std::string&) { return Scalar(); }
  bool binary(json::binary_t&) { return false; }
  bool string(std::string& value) {
    if (!At(kDelta, "content")) return Scalar();
    if (content_) return false;
    content_ = std::move(value);
    return true;
  }
  bool start_object(size_t) {
    if (depth_ == 0) return Enter(kRoot);
    if (places_[depth_ - 1] == kChoices) return choices_++ == 0 && Enter(kChoice);
    if (At(kChoice, "delta")) return Enter(kDelta);
    return Scalar() && Enter(kElsewhere);
  }
  bool start_array(size_t) {
    if (depth_ == 0) return false;
    if (At(kRoot, "choices")) return Enter(kChoices);
    return Scalar() && Enter(kElsewhere);
  }
  bool key(std::string& name) {
    key_ = std::move(name);
    return true;
  }
  bool end_object() { return Leave(); }
  bool end_array() { return Leave(); }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception&) { return false; }
  // NOLINTEND(readability-identifier-naming)

 private:
  enum Place : uint8_t { kRoot, kChoices, kChoice, kDelta, kElsewhere };

  bool At(Place place, std::string_view key) const { return depth_ > 0 && places_[depth_ - 1] == place && key_ == key; }

  // A value that isn't null, where it stands: of no matter, or a reason to look closer.
  bool Scalar() const {
    if (depth_ == 0 || places_[depth_ - 1] == kChoices) return false;
    switch (places_[depth_ - 1]) {
      case kRoot:
        return key_ != "error" && key_ != "usage" && key_ != "choices";
      case kChoice:
        return key_ != "finish_reason" && key_ != "delta" && key_ != "index";
      case kDelta:
        return key_ != "content" && key_ != "refusal";
      default:
        return true;
    }
  }

  bool Enter(Place place) {
    if (depth_ == places_.size()) return false;
    places_[depth_++] = place;
    return true;
  }

  bool Leave() {
    --depth_;
    return true;
  }

  std::array<Place, 16> places_;  // where the parser is, from the root down
  size_t depth_ = 0;
  int choices_ = 0;
  std::string key_;
  std::optional<std::string> content_;
};

}  // namespace

bool TakeContentChunk(std::string_view event, std::string& text) {
  Follower follower;
  if (!json::sax_parse(event.begin(), event.end(), &follower) || !follower.Content()) return false;
  text += *follower.Content();
  return true;
}

}  // namespace kgrpo::coder_gpt4o
