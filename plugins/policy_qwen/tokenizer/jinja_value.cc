#include "policy_qwen/tokenizer/jinja_value.h"

#include <kgrpo/sdk/error.h>
#include <utf8proc.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "policy_qwen/tokenizer/unicode.h"

namespace kgrpo::jinja {
namespace {

constexpr char kMark = '\1';                  // before a key that is no text
constexpr size_t kLargest = size_t{1} << 22;  // weight of a value

// Bytes / 8, about; fails if the value is nested too deeply to be walked.
size_t Weigh(const Json& json, int depth) {
  if (depth > 200) Fail("a value is nested too deeply");
  size_t weight = 1 + (json.is_string() ? json.get_ref<const std::string&>().size() / 8 : 0);
  if (json.is_structured()) {
    for (const Json& part : json) weight += Weigh(part, depth + 1);
  }
  return weight;
}

// The shortest digits that give the number back, with an exponent below 1e-4 and from 1e16 on.
std::string FloatText(double value, bool python) {
  if (std::isnan(value)) return python ? "nan" : "NaN";
  if (std::isinf(value)) return std::string(value < 0 ? "-" : "") + (python ? "inf" : "Infinity");
  const bool scientific = value != 0 && (std::abs(value) < 1e-4 || std::abs(value) >= 1e16);
  char text[64];
  const auto format = scientific ? std::chars_format::scientific : std::chars_format::fixed;
  const std::string_view digits(text, std::to_chars(text, text + sizeof(text), value, format).ptr - text);
  return std::string(digits) + (scientific || digits.find('.') != digits.npos ? "" : ".0");
}

void AppendText(const std::string& text, bool python, bool ascii, std::string& out) {
  if (!python) return static_cast<void>(out += Json(text).dump(-1, ' ', ascii));
  const char quote = text.find('\'') == text.npos || text.find('"') != text.npos ? '\'' : '"';
  const std::string escaped = std::string("\\\n\r\t") + quote, letters = std::string("\\nrt") + quote;
  out += quote;
  for (const char32_t c : CodePoints(text)) {
    const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
    const bool hidden = c != ' ' && (category == UTF8PROC_CATEGORY_CN || category >= UTF8PROC_CATEGORY_ZS);
    const size_t at = c < 0x80 ? escaped.find(static_cast<char>(c)) : escaped.npos;
    char code[16];
    snprintf(code, sizeof(code), c < 0x100 ? "\\x%02x" : c < 0x10000 ? "\\u%04x" : "\\U%08x", unsigned{c});
    out += at != escaped.npos ? std::string{'\\', letters[at]} : hidden ? code : FromCodePoints({&c, 1});
  }
  out += quote;
}

void Append(const Json& json, const DumpStyle& style, size_t level, std::string& out) {
  const bool python = style.python;
  if (out.size() > size_t{1} << 27) Fail("a value is too large to be written");
  if (json.is_discarded() && !python) Fail("Object of type Undefined is not JSON serializable");
  if (json.is_string()) return AppendText(json.get_ref<const std::string&>(), python, style.ascii, out);
  if (json.is_number_float()) return (void)(out += FloatText(json.get<double>(), python));
  if (python && json.is_boolean()) return (void)(out += json.get<bool>() ? "True" : "False");
  if (python && (json.is_null() || json.is_discarded())) return (void)(out += json.is_null() ? "None" : "Undefined");
  if (!json.is_structured()) return (void)(out += json.dump());
  const auto new_line = [&](size_t depth) {
    for (size_t i = 0; style.indent && i <= depth; ++i) out += i == 0 ? "\n" : *style.indent;
  };
  std::vector<std::pair<std::string, const Json*>> parts;
  for (const auto& [key, value] : json.items()) parts.emplace_back(key, &value);
  if (style.sorted && json.is_object()) std::ranges::sort(parts, {}, [](const auto& part) { return part.first; });
  out += json.is_array() ? '[' : '{';
  for (size_t i = 0; i < parts.size(); ++i) {
    const auto& [key, value] = parts[i];
    if (i > 0) out += style.comma;
    new_line(level + 1);
    const bool marked = key.starts_with(kMark);
    if (json.is_object())
      marked&& python ? void(out += key.substr(1)) : AppendText(key.substr(marked ? 1 : 0), python, style.ascii, out);
    out += json.is_object() ? style.colon : "";
    Append(*value, style, level + 1, out);
  }
  if (!parts.empty()) new_line(level);
  out += json.is_array() ? ']' : '}';
}

bool Equal(const Value& a, const Value& b) {
  if (a.number() && b.number())
    return a.boolean() == b.boolean() ? *a.data == *b.data : a.real_value() == b.real_value();
  if (a.data == nullptr || b.data == nullptr) return a.undefined() == b.undefined() && a.object == b.object;
  if (a.list() && b.list()) {
    const Values x = Elements(a), y = Elements(b);
    return std::ranges::equal(x, y, Equal);
  }
  if (!a.dict() || !b.dict()) return *a.data == *b.data;
  const Values keys = Elements(a);  // in any order
  return a.data->size() == b.data->size() && std::all_of(keys.begin(), keys.end(), [&](const Value& key) {
           return b.data->contains(MemberKey(key)) && Equal(Item(a, key), Item(b, key));
         });
}

bool Less(const Value& a, const Value& b) {
  if (a.number() && b.number()) return *a.data < *b.data;
  if (a.text() && b.text()) return a.str() < b.str();  // UTF-8 sorts as its code points do
  if (!a.list() || !b.list()) Fail("'<' is not supported between '" + TypeName(a) + "' and '" + TypeName(b) + "'");
  const Values x = Elements(a), y = Elements(b);
  const auto [i, j] = std::mismatch(x.begin(), x.end(), y.begin(), y.end(), Equal);
  return j != y.end() && (i == x.end() || Less(*i, *j));
}

bool Contains(const Value& in, const Value& a) {
  if (in.text()) return in.str().find(a.str()) != std::string::npos;
  const Values elements = Elements(in);
  return std::any_of(elements.begin(), elements.end(), [&](const Value& element) { return Equal(element, a); });
}

std::string Escaped(const Value& value) {
  static constexpr const char* kEntities[] = {"&amp;", "&lt;", "&gt;", "&#39;", "&#34;"};
  std::string out;
  for (const char c : value.str()) {
    const size_t at = value.safe ? std::string_view::npos : std::string_view("&<>'\"").find(c);
    out += at == std::string_view::npos ? std::string(1, c) : kEntities[at];
  }
  return out;
}

Value Repeat(const Value& value, int64_t times) {
  const double weight =
      value.text() ? static_cast<double>(value.str().size()) / 8 : static_cast<double>(Weigh(*value.data, 0));
  if (weight * static_cast<double>(times) > kLargest) Fail("a value is too large");
  std::string text;
  Json list = Json::array();
  for (int64_t i = 0; i < times; ++i) {
    value.text() ? (void)(text += value.str()) : (void)list.insert(list.end(), value.data->begin(), value.data->end());
  }
  return value.text() ? Value(std::move(text)) : Value(std::move(list));
}

Value Calculate(char op, const Value& a, const Value& b) {
  const double x = a.real_value(), y = b.real_value();
  if (y == 0 && (op == '/' || op == '%' || op == 'f')) Fail("division by zero");
  const bool power = op == '^' && !a.real() && !b.real() && y >= 0;  // of integers
  if (op == '^' && (!power || std::abs(std::pow(x, y)) > 9e15))
    return power ? (Fail("an integer is too large"), Value()) : Value(std::pow(x, y));
  if (power) return static_cast<int64_t>(std::pow(x, y));
  if (a.real() || b.real() || op == '/') {
    return op == '+'   ? x + y
           : op == '-' ? x - y
           : op == '*' ? x * y
           : op == '/' ? x / y
           : op == 'f' ? std::floor(x / y)
                       : x - y * std::floor(x / y);
  }
  int64_t i = a.whole(), j = b.whole(), result = 0;
  if (op == 'f' || op == '%') {
    const int64_t rest = j == -1 ? 0 : i % j, down = rest != 0 && (i < 0) != (j < 0) ? 1 : 0;
    if (op == '%') return rest + down * j;
    return j == -1 ? Calculate('*', a, b) : Value(i / j - down);
  }
  if (op == '+'   ? __builtin_add_overflow(i, j, &result)
      : op == '-' ? __builtin_sub_overflow(i, j, &result)
                  : __builtin_mul_overflow(i, j, &result))
    Fail("an integer is too large");
  return result;
}

}  // namespace

void Fail(const std::string& what) { throw Error(KGRPO_ERROR_INVALID, what); }

Value Undefined(const std::string& what) {
  Value value;
  value.what = what;
  return value;
}

const Json& Value::json() const {
  if (undefined()) Fail(what.empty() ? "the value is undefined" : what);
  if (object != nullptr) Fail("a " + object->type + " is neither a text nor JSON");
  return *data;
}

const std::string& Value::str() const {
  if (!json().is_string()) Fail("expected a str, found " + TypeName(*this));
  return data->get_ref<const std::string&>();
}

int64_t Value::whole() const {
  if (boolean()) return data->get<bool>() ? 1 : 0;
  if (!json().is_number_integer() || (data->is_number_unsigned() && data->get<int64_t>() < 0))
    Fail("expected an integer, found " + TypeName(*this));
  return data->get<int64_t>();
}

void Run::Spend(size_t steps) {
  if (steps > steps_left) Fail("the template runs for too long");
  steps_left -= steps;
}

void Run::Touch(const Value& value, bool deep) {
  const bool structured = value.list() || value.dict();
  Spend(structured && deep ? Weigh(*value.data, 0)
                           : 1 + (structured     ? value.data->size()
                                  : value.text() ? value.str().size() / 8
                                                 : 0));
}

Value Run::Charge(Value value) {
  if (value.data == nullptr || value.data.use_count() > 1) {  // a part of another value
    Spend(1);
    return value;
  }
  const size_t weight = Weigh(*value.data, 0);
  if (weight > kLargest) Fail("a value is too large");
  Spend(weight);
  return value;
}

Values Run::ElementsOf(const Value& value) {
  const size_t size = value.text() ? value.str().size() : value.list() || value.dict() ? value.data->size() : 0;
  if (size > kLargest / 4) Fail("a value is too large");
  Spend(size);
  return Elements(value);
}

Object& Run::Make(Object object) {
  Spend(40);
  return objects.emplace_back(std::move(object));
}

std::string TypeName(const Value& value) {
  if (value.undefined() || value.object != nullptr) return value.undefined() ? "Undefined" : value.object->type;
  if (value.text() || value.none()) return value.text() ? "str" : "NoneType";
  return value.list() ? "list" : value.dict() ? "dict" : value.boolean() ? "bool" : value.real() ? "float" : "int";
}

bool Truth(const Value& value) {
  if (value.undefined() || value.none()) return false;
  return value.number() ? value.real_value() != 0
                        : value.object != nullptr || (value.text() ? !value.str().empty() : !value.data->empty());
}

Value Operate(const std::string& op, const Value& a, const Value& b) {
  if (op == "==" || op == "!=") return Equal(a, b) == (op == "==");
  if (op == "in" || op == "not") return Contains(b, a) == (op == "in");  // not: not in
  if (op == "~") return Str(a) + Str(b);
  for (const Value* value : {&a, &b}) value->undefined() ? void(value->json()) : void();
  if (op == "<" || op == ">=") return Less(a, b) == (op == "<");
  if (op == ">" || op == "<=") return Less(b, a) == (op == ">");
  if (op == "+" && a.text() && b.text()) {
    Value sum = a.safe || b.safe ? Escaped(a) + Escaped(b) : a.str() + b.str();
    sum.safe = a.safe || b.safe;
    return sum;
  }
  if (op == "+" && a.list() && b.list()) {
    Json items = *a.data;
    items.insert(items.end(), b.data->begin(), b.data->end());
    return items;
  }
  if (op == "*" && (a.text() || a.list()) && b.integer()) return Repeat(a, b.whole());
  if (op == "*" && (b.text() || b.list()) && a.integer()) return Repeat(b, a.whole());
  if (!a.number() || !b.number()) Fail("'" + op + "' is not for " + TypeName(a) + " and " + TypeName(b));
  return Calculate(op == "//" ? 'f' : op == "**" ? '^' : op[0], a, b);
}

size_t Length(const Value& value) {
  if (value.text()) return CodePoints(value.str()).size();
  if (!value.undefined() && !value.list() && !value.dict())
    Fail("object of type '" + TypeName(value) + "' has no len()");
  return value.undefined() ? 0 : value.data->size();
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

Json JsonOf(const Value& value) {
  if (value.undefined()) return Json::value_t::discarded;
  if (value.object == nullptr || value.object->type != "namespace") return value.json();
  Json made = Json::object();
  for (const auto& [name, member] : value.object->members) made[name] = member.json();
  return made;
}

std::string MemberKey(const Value& value) { return value.text() ? value.str() : kMark + value.json().dump(); }

Json ListOf(const Values& values) {
  Json list = Json::array();
  for (const Value& value : values) list.push_back(JsonOf(value));
  return list;
}

Value Item(const Value& value, const Value& key) {
  if (value.dict() && (key.text() || key.number())) {
    if (const auto found = value.data->find(MemberKey(key)); found != value.data->end()) return Value(value, *found);
  } else if (key.integer() && (value.list() || value.text())) {
    const std::u32string points = value.text() ? CodePoints(value.str()) : U"";
    const size_t size = value.text() ? points.size() : value.data->size();
    const size_t at = static_cast<size_t>(key.whole()) + (key.whole() < 0 ? size : 0);
    if (at < size) return value.text() ? Value(FromCodePoints({&points[at], 1})) : Value(value, (*value.data)[at]);
  }
  return Undefined("'" + TypeName(value) + " object' has no attribute " + (key.data == nullptr ? "" : Dump(*key.data)));
}

Value Slice(const Value& value, const Values& bounds) {
  if (!value.list() && !value.text()) return Undefined("a " + TypeName(value) + " has no slices");
  const std::u32string points = value.text() ? CodePoints(value.str()) : U"";
  const auto size = static_cast<int64_t>(value.text() ? points.size() : value.data->size());
  const int64_t step = bounds[2].none() ? 1 : std::clamp<int64_t>(bounds[2].whole(), -size - 1, size + 1);
  if (step == 0) Fail("slice step cannot be zero");
  const int64_t first = step > 0 ? 0 : size - 1, last = step > 0 ? size : -1;
  const auto place = [&](const Value& bound, int64_t otherwise) {
    const int64_t at = bound.none() ? otherwise : bound.whole() < 0 ? bound.whole() + size : bound.whole();
    return bound.none() ? at : std::clamp(at, std::min(first, last), std::max(first, last));
  };
  std::u32string text;
  Json list = Json::array();
  for (int64_t i = place(bounds[0], first), end = place(bounds[1], last); step > 0 ? i < end : i > end; i += step) {
    const auto at = static_cast<size_t>(i);
    value.text() ? text.push_back(points[at]) : list.push_back((*value.data)[at]);
  }
  return value.text() ? Value(FromCodePoints(text)) : Value(std::move(list));
}

std::string Str(const Value& value) { return value.undefined() ? "" : value.text() ? value.str() : Dump(value.json()); }

std::string Dump(const Json& json, const DumpStyle& style) {
  std::string out;
  Append(json, style, 0, out);
  return out;
}

std::u32string CodePoints(std::string_view text) {
  std::u32string out;
  for (size_t at = 0, size = 0; at < text.size(); at += size) {
    const tokenizer::CodePoint c = tokenizer::CodePointAt(text, at);
    out += static_cast<char32_t>(c.value);
    size = c.length;
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
