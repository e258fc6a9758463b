// Half of schema.h: describes in words the values that a schema accepts.
#include <string>
#include <vector>

#include <kgrpo/support/closest.h>  // JoinedText
#include "config/schema.h"
#include "config/schema_internal.h"

namespace kgrpo {
namespace {

std::string TypeWords(const std::string& type) {
  if (type == "integer") return "an integer";
  if (type == "number") return "a number";
  if (type == "string") return "text";
  if (type == "boolean") return "true or false";
  if (type == "array") return "a list";
  if (type == "object") return "a mapping";
  return "nothing";
}

// " >= 1", " > 0 and <= 1"; empty without bounds.
std::string RangeWords(const Schema& schema) {
  std::string words;
  const bool between = schema.contains("minimum") && schema.contains("maximum");
  if (between) words = " from " + schema["minimum"].dump() + " to " + schema["maximum"].dump();
  const auto add = [&](const char* keyword, const char* sign) {
    if (between && (sign[1] == '=')) return;  // said
    if (!schema.contains(keyword)) return;
    words += words.empty() ? " " : " and ";
    words += sign;
    words += " " + schema[keyword].dump();
  };
  add("minimum", ">=");
  add("exclusiveMinimum", ">");
  add("maximum", "<=");
  add("exclusiveMaximum", "<");
  if (schema.contains("multipleOf")) words += " that is a multiple of " + schema["multipleOf"].dump();
  return words;
}

// " of 2 items", " of at least 1 item"; empty without bounds.
std::string LengthWords(const Schema& schema, const char* least, const char* most, const std::string& unit) {
  const auto count = [&](const char* keyword) {
    const std::string number = schema[keyword].dump();
    return number + " " + unit + (number == "1" ? "" : "s");
  };
  if (!schema.contains(most)) return schema.contains(least) ? " of at least " + count(least) : "";
  if (!schema.contains(least)) return " of at most " + count(most);
  if (schema[least] == schema[most]) return " of " + count(least);
  return " of " + schema[least].dump() + " to " + count(most);
}

std::string WordsFor(const std::string& type, const Schema& schema, const Schema& root) {
  std::string words = TypeWords(type);
  if (type == "integer" || type == "number") words += RangeWords(schema);
  if (type == "string") {
    if (schema.value("minLength", 0) == 1 && !schema.contains("maxLength")) {
      words += " that is not empty";
    } else {
      words += LengthWords(schema, "minLength", "maxLength", "character");
    }
    if (schema.contains("pattern")) words += " that matches " + schema["pattern"].get<std::string>();
  }
  if (type == "array") {
    words += LengthWords(schema, "minItems", "maxItems", "item");
    if (schema.contains("items") && schema["items"].is_object()) {
      const std::string inner = DescribeExpected(schema["items"], root);
      if (!inner.empty()) words += ", each " + inner;
    }
  }
  return words;
}

}  // namespace

std::string DescribeExpected(const Schema& unresolved, const Schema& root) {
  const Schema& schema = ResolveReference(unresolved, root);
  if (!schema.is_object()) return "";
  if (schema.contains("const")) return schema["const"].dump();
  if (schema.contains("enum")) {
    std::string words = schema["enum"].size() > 1 ? "one of " : "";
    for (const Schema& value : schema["enum"]) words += (&value == &schema["enum"].front() ? "" : ", ") + value.dump();
    return words;
  }
  std::vector<std::string> parts;
  const auto add = [&](const std::string& part) {
    for (const std::string& seen : parts) {
      if (seen == part) return;
    }
    if (!part.empty()) parts.push_back(part);
  };
  for (const char* keyword : {"anyOf", "oneOf"}) {
    if (!schema.contains(keyword)) continue;
    for (const Schema& branch : schema[keyword]) add(DescribeExpected(branch, root));
  }
  if (schema.contains("type")) {
    const Schema& type = schema["type"];
    if (type.is_array()) {
      for (const Schema& one : type) add(WordsFor(one.get<std::string>(), schema, root));
    } else {
      add(WordsFor(type.get<std::string>(), schema, root));
    }
  }
  return JoinedText(parts, " or ");
}

}  // namespace kgrpo
