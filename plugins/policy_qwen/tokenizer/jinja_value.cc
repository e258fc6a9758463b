#include "policy_qwen/tokenizer/jinja_value.h"

#include <kgrpo/sdk/error.h>
#include <utf8proc.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "policy_qwen/tokenizer/unicode.h"

namespace kgrpo::jinja {
namespace {

constexpr char kMark = '\1';  // before a key that is no text

// Bytes of a value, about; fails if it is nested too deeply to be walked.
int64_t Weigh(const Json& json, int depth) {
  if (depth > 200) Fail("a value is nested too deeply");
  int64_t weight = 8 + (json.is_string() ? static_cast<int64_t>(json.get_ref<const std::string&>().size()) : 0);
  if (json.is_structured()) {
    for (const auto& item : json.items()) weight += Weigh(item.value(), depth + 1);
  }
  return weight;
}

// repr(float): the shortest digits that give the number back, with an exponent below 1e-4 and from 1e16 on.
std::string FloatText(double value, bool python) {
  if (std::isnan(value)) return python ? "nan" : "NaN";
  if (std::isinf(value)) return std::string(value < 0 ? "-" : "") + (python ? "inf" : "Infinity");
  const double size = std::abs(value);
  const bool scientific = size != 0 && (size < 1e-4 || size >= 1e16);
  char buffer[64];
  const auto format = scientific ? std::chars_format::scientific : std::chars_format::fixed;
  std::string text(buffer, std::to_chars(buffer, buffer + sizeof(buffer), value, format).ptr);
  return scientific || text.find('.') != std::string::npos ? text : text + ".0";
}

void AppendText(const std::string& text, const Style& style, std::string& out) {
  const bool single = style.python && (text.find('\'') == text.npos || text.find('"') != text.npos);
  const char quote = single ? '\'' : '"';
  const std::string escaped = std::string("\\\n\r\t") + quote + (style.python ? "" : "\b\f");
  const auto code = [&](const char* format, uint32_t value) {
    char buffer[16];
    out.append(buffer, static_cast<size_t>(snprintf(buffer, sizeof(buffer), format, value)));
  };
  out += quote;
  for (const char32_t c : CodePoints(text)) {
    const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
    const bool hidden = c != ' ' && (category == UTF8PROC_CATEGORY_CN || category >= UTF8PROC_CATEGORY_ZS);
    if (const size_t at = c < 0x80 ? escaped.find(static_cast<char>(c)) : std::string::npos; at != std::string::npos) {
      out += {'\\', (std::string("\\nrt") + quote + "bf")[at]};
    } else if (style.python && hidden) {
      code(c < 0x100 ? "\\x%02x" : c < 0x10000 ? "\\u%04x" : "\\U%08x", c);
    } else if (!style.python && style.ensure_ascii && c >= 0x10000) {
      code("\\u%04x", 0xD800 + ((c - 0x10000) >> 10));
      code("\\u%04x", 0xDC00 + ((c - 0x10000) & 0x3FF));
    } else if (!style.python && (c < 0x20 || (style.ensure_ascii && c >= 0x7F))) {
      code("\\u%04x", c);
    } else {
      tokenizer::AppendUtf8(c, out);
    }
  }
  out += quote;
}

void Append(const Json& json, const Style& style, int level, std::string& out) {
  if (json.is_null()) out += style.python ? "None" : "null";
  if (json.is_boolean()) out += style.python ? (json.get<bool>() ? "True" : "False") : json.dump();
  if (json.is_number_integer()) out += json.dump();
  if (json.is_number_float()) out += FloatText(json.get<double>(), style.python);
  if (json.is_string()) AppendText(json.get_ref<const std::string&>(), style, out);
  if (json.is_discarded()) style.python ? out += "Undefined" : throw Error(KGRPO_ERROR_INVALID, "undefined is no JSON");
  if (out.size() > size_t{1} << 27) Fail("a value is too large to be written");
  if (!json.is_structured()) return;
  const auto new_line = [&](int depth) {
    if (!style.multiline) return;
    out += '\n';
    for (int i = 0; i < depth; ++i) out += style.indent;
  };
  std::vector<std::pair<std::string, const Json*>> items;
  for (const auto& item : json.items()) items.emplace_back(item.key(), &item.value());
  if (style.sort_keys && json.is_object()) std::sort(items.begin(), items.end());
  out += json.is_array() ? '[' : '{';
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out += style.item_separator;
    new_line(level + 1);
    if (json.is_object()) {
      const bool marked = items[i].first.starts_with(kMark);
      const std::string key = marked ? Dump(Json::parse(items[i].first.substr(1)), style) : items[i].first;
      marked&& style.python ? (void)(out += key) : AppendText(key, style, out);
      out += style.key_separator;
    }
    Append(*items[i].second, style, level + 1, out);
  }
  if (!items.empty()) new_line(level);
  out += json.is_array() ? ']' : '}';
}

}  // namespace

void Fail(const std::string& what) {
  throw Error(KGRPO_ERROR_INVALID, what);
}

Value Value::Undefined(std::string what) {
  Value value;
  value.what = std::make_shared<const std::string>(std::move(what));
  return value;
}

const Json& Value::json() const {
  if (undefined()) Fail(what == nullptr ? "the value is undefined" : *what);
  if (object != nullptr) Fail(std::string("a ") + object->type + " is neither a text nor JSON");
  return *data;
}

const std::string& Value::str() const {
  if (!json().is_string()) Fail("expected a str, found " + TypeName(*this));
  return json().get_ref<const std::string&>();
}

int64_t Value::Int() const {
  if (boolean()) return json().get<bool>() ? 1 : 0;
  const bool large = json().is_number_unsigned() && json().get<uint64_t>() > std::numeric_limits<int64_t>::max();
  if (!json().is_number_integer() || large) Fail("expected an integer, found " + TypeName(*this));
  return json().get<int64_t>();
}

void Run::Spend(int64_t steps) {
  steps_left -= steps;
  if (steps_left < 0) Fail("the template runs for too long");
}

Value Run::Charge(Value value) {
  Spend(value.data == nullptr ? 1 : 1 + Weigh(*value.data, 0) / 8);
  return value;
}

Object& Run::Make(const char* type) {
  Spend(40);
  return objects.emplace_back(Object{type, {}, {}});
}

Value Run::Function(std::function<Value(const Arguments&)> call) {
  Object& made = Make("function");
  made.call = std::move(call);
  return &made;
}

std::string TypeName(const Value& value) {
  if (value.undefined() || value.object != nullptr) return value.undefined() ? "Undefined" : value.object->type;
  if (value.text() || value.none()) return value.text() ? "str" : "NoneType";
  if (value.list() || value.dict()) return value.dict() ? "dict" : value.tuple ? "tuple" : "list";
  return value.boolean() ? "bool" : value.real() ? "float" : "int";
}

bool Truth(const Value& value) {
  if (value.undefined() || value.none()) return false;
  if (value.number()) return value.Double() != 0;
  return value.object != nullptr || (value.text() ? !value.str().empty() : !value.data->empty());
}

bool Equal(const Value& a, const Value& b) {
  if (a.integer() && b.integer()) return a.boolean() == b.boolean() ? *a.data == *b.data : a.Int() == b.Int();
  if (a.number() && b.number()) return a.Double() == b.Double();
  if (a.data == nullptr || b.data == nullptr) return a.data == b.data && a.object == b.object;
  if (!a.dict() || !b.dict()) return a.tuple == b.tuple && *a.data == *b.data;
  return a.data->size() == b.data->size() &&
         std::all_of(a.data->items().begin(), a.data->items().end(), [&](const auto& item) {
           return b.data->contains(item.key()) && Equal(Value(a, item.value()), Value(b, b.data->at(item.key())));
         });
}

bool Less(const Value& a, const Value& b) {
  if (a.number() && b.number()) return a.integer() && b.integer() ? a.Int() < b.Int() : a.Double() < b.Double();
  if (a.text() && b.text()) return a.str() < b.str();  // UTF-8 sorts as its code points do
  if (!a.list() || !b.list()) Fail("'<' is not supported between '" + TypeName(a) + "' and '" + TypeName(b) + "'");
  const Values x = Elements(a), y = Elements(b);
  const auto [i, j] = std::mismatch(x.begin(), x.end(), y.begin(), y.end(), Equal);
  return j != y.end() && (i == x.end() || Less(*i, *j));
}

bool Contains(const Value& in, const Value& a) {
  if (in.text()) return in.str().find(a.str()) != std::string::npos;
  if (in.dict()) return in.data->contains(KeyOf(a));
  const Values elements = Elements(in);
  return std::any_of(elements.begin(), elements.end(), [&](const Value& element) { return Equal(element, a); });
}

int64_t Length(const Value& value) {
  if (value.text()) return static_cast<int64_t>(CodePoints(value.str()).size());
  if (!value.undefined() && !value.list() && !value.dict())
    Fail("object of type '" + TypeName(value) + "' has no len()");
  return value.undefined() ? 0 : static_cast<int64_t>(value.data->size());
}

Values Elements(const Value& value) {
  Values elements;
  if (value.list()) {
    for (const Json& item : *value.data) elements.emplace_back(value, item);
  } else if (value.dict()) {
    for (const auto& [key, member] : value.data->items()) {
      elements.emplace_back(key.starts_with(kMark) ? Json::parse(key.substr(1)) : Json(key));
    }
  } else if (value.text()) {
    for (const char32_t c : CodePoints(value.str())) elements.emplace_back(FromCodePoints({&c, 1}));
  } else if (!value.undefined()) {
    Fail("'" + TypeName(value) + "' object is not iterable");
  }
  return elements;
}

Json JsonOf(const Value& value, int depth) {
  if (value.undefined()) return Json(Json::value_t::discarded);
  if (value.object == nullptr || value.object->call || depth > 50) return value.json();
  Json made = Json::object();
  for (const auto& [name, member] : value.object->members) made[name] = JsonOf(member, depth + 1);
  return made;
}

Json ListOf(const Values& values) {
  Json list = Json::array();
  for (const Value& value : values) list.push_back(JsonOf(value));
  return list;
}

std::string KeyOf(const Value& value) {
  if (value.list() || value.dict()) Fail("unhashable type: '" + TypeName(value) + "'");
  return value.text() ? value.str() : kMark + value.json().dump();
}

Value Item(const Value& value, const Value& key) {
  if (value.dict() && key.data != nullptr && !key.list() && !key.dict()) {
    if (const auto found = value.data->find(KeyOf(key)); found != value.data->end()) return Value(value, *found);
  } else if (key.integer() && (value.list() || value.text())) {
    const int64_t size = Length(value), at = key.Int() + (key.Int() < 0 ? size : 0);
    if (at >= 0 && at < size && value.list()) return Value(value, (*value.data)[static_cast<size_t>(at)]);
    if (at >= 0 && at < size) return FromCodePoints(CodePoints(value.str()).substr(static_cast<size_t>(at), 1));
  }
  return Value::Undefined("'" + TypeName(value) + " object' has no attribute " +
                          (key.data == nullptr ? "" : Dump(*key.data)));
}

Value Slice(const Value& value, const Value& start, const Value& stop, const Value& step) {
  if (!value.list() && !value.text()) return Value::Undefined("a " + TypeName(value) + " has no slices");
  const Values elements = Elements(value);
  const auto size = static_cast<int64_t>(elements.size());
  const int64_t by = step.none() ? 1 : std::clamp<int64_t>(step.Int(), -size - 1, size + 1);
  if (by == 0) Fail("slice step cannot be zero");
  const auto place = [&](const Value& given, int64_t otherwise) {
    if (given.none()) return otherwise;
    const int64_t at = std::clamp<int64_t>(given.Int(), -size - 1, size + 1);
    return std::clamp<int64_t>(at < 0 ? at + size : at, by > 0 ? 0 : -1, by > 0 ? size : size - 1);
  };
  const int64_t end = place(stop, by > 0 ? size : -1);
  Values taken;
  for (int64_t i = place(start, by > 0 ? 0 : size - 1); by > 0 ? i < end : i > end; i += by)
    taken.push_back(elements[static_cast<size_t>(i)]);
  std::string text;
  for (const Value& element : taken) text += value.text() ? element.str() : "";
  Value made = value.text() ? Value(text) : Value(ListOf(taken));
  made.tuple = value.tuple;
  return made;
}

std::string Str(const Value& value) {
  if (value.undefined() || value.text()) return value.undefined() ? "" : value.str();
  std::string text = Dump(value.json());
  if (value.tuple) text = "(" + text.substr(1, text.size() - 2) + (value.data->size() == 1 ? ",)" : ")");
  return text;
}

std::string Dump(const Json& json, const Style& style) {
  std::string out;
  Append(json, style, 0, out);
  return out;
}

std::u32string CodePoints(std::string_view text) {
  std::u32string out;
  for (size_t at = 0; at < text.size();) {
    const tokenizer::CodePoint c = tokenizer::CodePointAt(text, at);
    out += static_cast<char32_t>(c.value);
    at += c.length;
  }
  return out;
}

std::string FromCodePoints(std::u32string_view code_points) {
  std::string out;
  for (const char32_t c : code_points) tokenizer::AppendUtf8(c, out);
  return out;
}

bool IsSpace(char32_t code_point) {
  return tokenizer::IsWhiteSpace(code_point) || (code_point >= 0x1C && code_point <= 0x1F);
}

}  // namespace kgrpo::jinja
