#include "program_shared/message.h"

namespace kgrpo::program {
namespace {

using nlohmann::json;

// Returns how deep arrays and objects nest. Checked before the text is parsed, since code that reads a tree may
// recurse.
int NestingOf(std::string_view text) {
  int depth = 0, deepest = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      if (c == '"') quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == '{' || c == '[') {
      deepest = std::max(deepest, ++depth);
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return deepest;
}

constexpr int kInvalidParams = -32602;

constexpr const char* kStandardOutput = "; standard output is for answers alone: print to standard error";

}  // namespace

std::string RequestLine(uint64_t id, std::string_view method, std::string_view params) {
  std::string line = R"({"jsonrpc":"2.0","id":)" + std::to_string(id) + R"(,"method":")";
  line.append(method).append(R"(","params":)").append(params).append("}\n");
  return line;
}

std::string CancelLine(uint64_t id) {
  return R"({"jsonrpc":"2.0","method":"cancel","params":{"id":)" + std::to_string(id) + "}}\n";
}

std::string Excerpt(std::string_view line) {
  std::string text;
  for (const char c : line.substr(0, 60)) text += c < ' ' || c > '~' ? '?' : c;
  return "\"" + text + (line.size() > 60 ? "\"..." : "\"");
}

Answer ParseAnswer(std::string_view line) {
  const int nesting = NestingOf(line);
  if (nesting > kDeepestNesting) {
    throw Broken("wrote JSON that is nested " + std::to_string(nesting) + " deep; at most " +
                 std::to_string(kDeepestNesting) + " is read");
  }
  const json message = json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (message.is_discarded()) throw Broken("wrote a line that is not JSON: " + Excerpt(line) + kStandardOutput);
  if (!message.is_object() || !message.contains("id"))
    throw Broken("wrote a line that is not an answer (expected an object with an \"id\"): " + Excerpt(line) +
                 kStandardOutput);
  if (!message["id"].is_number_unsigned())
    throw Broken("answered with the id " + Excerpt(message["id"].dump()) + ", which is no request's");
  Answer answer;
  answer.id = message["id"].get<uint64_t>();
  const bool has_result = message.contains("result"), has_error = message.contains("error");
  if (has_result == has_error)
    throw Broken("wrote an answer that needs either \"result\" or \"error\": " + Excerpt(line));
  answer.failed = has_error;
  if (has_result) {
    answer.result = message["result"];
  } else {
    const json& error = message["error"];
    answer.refused = error.is_object() && error.value("code", json()) == kInvalidParams;
    const bool has_message = error.is_object() && error.contains("message") && error["message"].is_string();
    answer.error = has_message ? error["message"].get<std::string>() : error.dump();
  }
  return answer;
}

}  // namespace kgrpo::program
