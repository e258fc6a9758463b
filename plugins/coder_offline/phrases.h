// The phrases that name techniques in a suggestion. Used by techniques.cc, which finds them in a text.
#pragma once

#include <span>
#include <string_view>

#include "coder_offline/techniques.h"

namespace kgrpo::coder_offline {

// A phrase is a sequence of words; a word that ends in '*' stands for every word that starts so. Small words ("the",
// "of", "in") are dropped from texts before they are compared, so phrases leave them out.
struct Phrase {
  std::string_view words;
  Technique technique;
  int value = 0;  // a value in the phrase itself, such as 4 in "float4"
};

// A longer match wins over a shorter one that starts at the same word, so "register tiling" is not "tiling".
std::span<const Phrase> Phrases();

}  // namespace kgrpo::coder_offline
