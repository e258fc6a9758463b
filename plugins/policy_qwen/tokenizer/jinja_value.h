// The values of a Jinja template: JSON, with Python's rules for truth, equality, order and text. Used by jinja.cc,
// which evaluates, and jinja_library.cc, the filters, tests, methods and functions. Values never change, as in jinja2's
// ImmutableSandboxedEnvironment. Errors are kgrpo::Error without a place, which Template::Render adds.
#ifndef KGRPO_PLUGINS_POLICY_QWEN_TOKENIZER_JINJA_VALUE_H_
#define KGRPO_PLUGINS_POLICY_QWEN_TOKENIZER_JINJA_VALUE_H_
#include <concepts>
#include <cstdint>
#include <ctime>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace kgrpo::jinja {

using Json = nlohmann::ordered_json;
struct Object;

[[noreturn]] void Fail(const std::string& what);

struct Value {
  Value() = default;  // undefined
  template <typename T>
  requires(std::constructible_from<Json, T> && !std::is_pointer_v<std::remove_cvref_t<T>> &&
           !std::same_as<std::remove_cvref_t<T>, Value>) Value(T&& value)
      : data(std::make_shared<const Json>(std::forward<T>(value))) {}
  Value(Object* made) : object(made) {}
  // A part of `whole`, which it keeps alive.
  Value(const Value& whole, const Json& part) {
    if (!part.is_discarded()) data = {whole.data, &part};
  }
  static Value Undefined(std::string what);

  bool undefined() const { return data == nullptr && object == nullptr; }
  bool none() const { return data != nullptr && data->is_null(); }
  bool boolean() const { return data != nullptr && data->is_boolean(); }
  bool text() const { return data != nullptr && data->is_string(); }
  bool list() const { return data != nullptr && data->is_array(); }
  bool dict() const { return data != nullptr && data->is_object(); }
  bool real() const { return data != nullptr && data->is_number_float(); }
  bool integer() const { return data != nullptr && (data->is_number_integer() || data->is_boolean()); }
  bool number() const { return integer() || real(); }
  const Json& json() const;        // fails for what is undefined or an object
  const std::string& str() const;  // fails unless it is a text
  int64_t Int() const;             // fails unless it is an integer or bool
  double Double() const { return real() ? json().get<double>() : static_cast<double>(Int()); }

  std::shared_ptr<const Json> data;
  Object* object = nullptr;
  std::shared_ptr<const std::string> what;  // of an undefined value: the error of its use
  bool safe = false;                        // a text that the filter `safe` made: + escapes what is joined to it
  bool tuple = false;                       // a list that is a tuple
};
using Values = std::vector<Value>;

struct Arguments {
  Values list;
  std::vector<std::pair<std::string, Value>> named;
};

// What has an identity. Owned by the Run that made it.
struct Object {
  const char* type;  // namespace, loop or function
  std::map<std::string, Value, std::less<>> members;
  std::function<Value(const Arguments&)> call;  // of a function
};

// The limits of one rendering, and what it owns.
struct Run {
  void Spend(int64_t steps);  // fails when the template has run for too long
  Value Charge(Value value);  // spends the value's size; fails if it is nested too deeply
  Object& Make(const char* type);
  Value Function(std::function<Value(const Arguments&)> call);

  int64_t steps_left = int64_t{1} << 24;
  std::deque<Object> objects;
  std::time_t now = 0;  // of strftime_now
};

std::string TypeName(const Value& value);  // as Python's error messages name it
bool Truth(const Value& value);
bool Equal(const Value& a, const Value& b);
bool Less(const Value& a, const Value& b);  // fails if Python's < does
bool Contains(const Value& in, const Value& a);
int64_t Length(const Value& value);
Values Elements(const Value& value);  // of a loop over the value: a dict's keys, a text's characters
// The value within a list or dict: a namespace as the dict that it is now, undefined as a discarded value, and a tuple
// as a list. Fails for a function.
Json JsonOf(const Value& value, int depth = 0);
Json ListOf(const Values& values);
// The key of a dict's member: keys that are no texts are marked.
std::string KeyOf(const Value& value);
// value[key] and value[start:stop:step]; undefined if Jinja's subscript is.
Value Item(const Value& value, const Value& key);
Value Slice(const Value& value, const Value& start, const Value& stop, const Value& step);

// a op b; op is one of ~ + - * / %, 'f' for floor division, 'p' for powers.
Value Operate(char op, const Value& a, const Value& b);
bool Compare(const std::string& op, const Value& a, const Value& b);  // == != < > <= >= in, not in

std::string Str(const Value& value);  // str(value); "" if undefined
// repr(value), or json.dumps(value) with the options of transformers' tojson.
struct Style {
  bool python = true, ensure_ascii = false, sort_keys = false, multiline = false;
  std::string indent, item_separator = ", ", key_separator = ": ";
};
std::string Dump(const Json& json, const Style& style = {});

std::u32string CodePoints(std::string_view text);
std::string FromCodePoints(std::u32string_view code_points);
bool IsSpace(char32_t code_point);  // str.isspace

// Filters '|', tests 'i' and methods '.' of jinja_library.cc.
bool IsKnown(char kind, const Value& subject, std::string_view name);
Value Call(Run& run, char kind, std::string_view name, const Value& subject, const Arguments& arguments);
void AddFunctions(Run& run, std::map<std::string, Value, std::less<>>& names);  // range, namespace and the like

}  // namespace kgrpo::jinja
#endif  // KGRPO_PLUGINS_POLICY_QWEN_TOKENIZER_JINJA_VALUE_H_
