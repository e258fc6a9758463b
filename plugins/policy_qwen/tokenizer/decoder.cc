#include <charconv>
#include <optional>

#include "policy_qwen/tokenizer/json_reader.h"
#include "policy_qwen/tokenizer/regex.h"
#include "policy_qwen/tokenizer/steps.h"
#include "policy_qwen/tokenizer/unicode.h"

namespace kgrpo::tokenizer {
namespace {

using Tokens = std::vector<std::string>;

std::string Joined(const Tokens& tokens) {
  std::string text;
  for (const std::string& token : tokens) text += token;
  return text;
}

// The byte that a token such as <0x0A> stands for.
std::optional<char> ByteOf(const std::string& token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token.back() != '>') return std::nullopt;
  uint8_t byte = 0;
  const auto [end, error] = std::from_chars(token.data() + 3, token.data() + 5, byte, 16);
  if (error != std::errc() || end != token.data() + 5) return std::nullopt;
  return static_cast<char>(byte);
}

// Each run of byte tokens becomes its text or, if it is no UTF-8, as many U+FFFD as it has bytes.
void FallBackToBytes(Tokens& tokens) {
  Tokens out;
  std::string run;
  const auto end_run = [&] {
    if (IsValidUtf8(run)) {
      if (!run.empty()) out.push_back(run);
    } else {
      out.insert(out.end(), run.size(), "\xEF\xBF\xBD");
    }
    run.clear();
  };
  for (std::string& token : tokens) {
    if (const std::optional<char> byte = ByteOf(token)) {
      run.push_back(*byte);
      continue;
    }
    end_run();
    out.push_back(std::move(token));
  }
  end_run();
  tokens = std::move(out);
}

// `text` without up to `start` characters `content` at its beginning and up to `stop` at its end.
std::string Stripped(std::string_view text, const std::string& content, size_t start, size_t stop) {
  for (; start > 0 && text.starts_with(content); --start) text.remove_prefix(content.size());
  for (; stop > 0 && text.ends_with(content); --stop) text.remove_suffix(content.size());
  return std::string(text);
}

void DecodeMetaspace(Tokens& tokens, const Metaspace& metaspace) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    const bool drops = i == 0 && metaspace.prepend_scheme != "never";
    std::string text;
    for (size_t at = 0; at < tokens[i].size();) {
      const bool replaced = tokens[i].compare(at, metaspace.replacement.size(), metaspace.replacement) == 0;
      if (!replaced) text.push_back(tokens[i][at]);
      if (replaced && !drops) text.push_back(' ');
      at += replaced ? metaspace.replacement.size() : 1;
    }
    tokens[i] = std::move(text);
  }
}

}  // namespace

Decoder::Decoder(const std::string& file, const nlohmann::json& value) : spaced_(value.is_null()) {
  for (ObjectReader& step : ReadSteps(file, "decoder", value, "decoders")) {
    const std::string type = step.String("type");
    if (type == "ByteLevel") {
      for (const char* key : {"add_prefix_space", "trim_offsets", "use_regex"})
        step.Find(key);  // none concerns decoding
      steps_.emplace_back([](Tokens& tokens) {
        std::string bytes;
        for (const std::string& token : tokens) AppendBytesOfSpelling(token, bytes);
        tokens = {ReplaceInvalidUtf8(bytes)};
      });
    } else if (type == "Replace") {
      steps_.emplace_back([pattern = ReadPattern(step), content = step.String("content")](Tokens& tokens) {
        for (std::string& token : tokens) token = pattern.ReplaceAll(token, content);
      });
    } else if (type == "ByteFallback") {
      steps_.emplace_back(FallBackToBytes);
    } else if (type == "Fuse") {
      steps_.emplace_back([](Tokens& tokens) { tokens = {Joined(tokens)}; });
    } else if (type == "Strip") {
      steps_.emplace_back([content = step.Character("content"), start = step.Count("start"),
                           stop = step.Count("stop")](Tokens& tokens) {
        for (std::string& token : tokens) token = Stripped(token, content, start, stop);
      });
    } else if (type == "Metaspace") {
      steps_.emplace_back([metaspace = Metaspace(step)](Tokens& tokens) { DecodeMetaspace(tokens, metaspace); });
    } else {
      step.RefuseType("decoder", "ByteFallback, ByteLevel, Fuse, Metaspace, Replace, Strip");
    }
    step.RefuseOthers();
  }
}

std::string Decoder::Decode(Tokens tokens) const {
  for (const auto& step : steps_) step(tokens);
  if (spaced_) {
    for (size_t i = 1; i < tokens.size(); ++i) tokens[i].insert(0, " ");
  }
  return Joined(tokens);
}

}  // namespace kgrpo::tokenizer
